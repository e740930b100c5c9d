"""The values of a read that travel between Spark's processes: what is read, and the tasks that it is divided into.

They need nothing to be loaded where they are unpickled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import InputPartition


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read: the query, and how it is read.

    Attributes:
        sql: The query.
        table: The table, view or system table of which it selects columns as they are; None for any other query.
        params: Its parameters.
        task_bytes: About as many bytes does a task read.
        lease_s: Seconds without a read for which members keep the rows.
    """

    sql: str
    table: str | None
    params: Sequence[Any]
    task_bytes: int
    lease_s: float


@dataclass(frozen=True)
class RowsTask(InputPartition):
    """A task whose rows are known.

    Attributes:
        rows: An Arrow IPC stream.
        columns: The columns of the query: names and SQL types, as plain pairs, which need nothing to be loaded.
    """

    rows: bytes
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RowsAtMember:
    """Rows of a snapshot that one member keeps, and the host and port where it listens.

    ``requests`` has what is asked for with each request: partition, first row and number of rows of each piece.
    ``whole`` is the snapshot, pickled: who has to look for the rows elsewhere needs it, and loads the client for it.
    """

    snapshot: str
    host: str
    port: int
    requests: tuple[tuple[tuple[int, int, int], ...], ...]
    whole: bytes


@dataclass(frozen=True)
class SnapshotTask(InputPartition):
    """A task that reads pieces of a snapshot, all of one member. The columns are as those of :class:`RowsTask`."""

    rows: RowsAtMember
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class QueryTask(InputPartition):
    """The one task of a query that cannot be answered piece by piece: it runs the query."""
