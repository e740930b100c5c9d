"""The reading half of the data source: what is pruned, which tasks there are, and what each of them reads.

Spark makes the reader and calls :meth:`QueryReader.partitions` in a Python process of its own, once for each DataFrame;
the tasks call :meth:`QueryReader.read` in others. So everything is pruned, and the moment whose rows all tasks read is
settled, before Spark starts a task.

**Invariant**: all tasks of a DataFrame, first runs, retries and later actions on it alike, read rows of one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from secateur.client.dbapi.connection import Connection
from secateur.client.execution.snapshot import (
    Snapshot,
    SnapshotPart,
    SnapshotReader,
    close_snapshot,
    open_snapshot,
    prepared_query,
)
from secateur.client.session import Session
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.failures import noted_errors
from secateur.connectors.spark.read_tasks import pieces_of, tasks_of
from secateur.connectors.spark.result_schema import spark_batches, spark_schema
from secateur.protocol.snapshots import SnapshotPiece
from secateur.protocol.statements import ResultColumn
from secateur.wire import decode_table, encode_table

__all__ = ["QueryReader", "QueryTask", "ReadOptions", "RowsTask", "SnapshotTask", "query_schema"]

_RESULT_ROWS: Final = 65_536
_INLINE_BYTES_MAX: Final = 1 << 20
"""Rows that take no more than this are read while Spark plans, and travel with the one task: it then needs no
connection, and a look-up of one key costs what a task costs.
"""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What is read, and how.

    Attributes:
        sql: The query.
        params: Its parameters.
        task_bytes: About as many bytes does a task read.
        lease_s: Seconds without a read for which members keep the rows.
    """

    sql: str
    params: Sequence[Any]
    task_bytes: int
    lease_s: float


@dataclass(frozen=True)
class RowsTask(InputPartition):
    """A task whose rows are known.

    Attributes:
        rows: An Arrow IPC stream.
        columns: The columns of the query.
    """

    rows: bytes
    columns: tuple[ResultColumn, ...]


@dataclass(frozen=True)
class SnapshotTask(InputPartition):
    """A task that reads pieces of a snapshot, all of one member.

    Attributes:
        snapshot: The snapshot, with the parts of this task only.
        pieces: The pieces.
    """

    snapshot: Snapshot
    pieces: tuple[SnapshotPiece, ...]


@dataclass(frozen=True)
class QueryTask(InputPartition):
    """The one task of a query that cannot be answered piece by piece: it runs the query."""


def query_schema(endpoint: Endpoint, options: ReadOptions) -> StructType:
    """The columns of a query.

    Raises:
        NotSupportedError: Spark has no type for a column.
        Error: The planner refuses the query, or the cluster cannot be reached.
    """
    with endpoint.session() as session:
        return spark_schema(prepared_query(session, options.sql, options.params).statement.columns)


class QueryReader(DataSourceReader):
    """Reads a query.

    Args:
        endpoint: The cluster.
        options: The query.
        schema: The columns that Spark expects.
    """

    def __init__(self, endpoint: Endpoint, options: ReadOptions, schema: StructType) -> None:
        self._endpoint = endpoint
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Prune, open the snapshot, and divide it into tasks.

        Returns:
            Tasks for partitions that are required and have rows, and no others; possibly none.
        """
        options = self._options
        with noted_errors(), self._endpoint.session(timeout_s=None) as session:
            call = prepared_query(session, options.sql, options.params)
            snapshot = open_snapshot(call, lease_s=options.lease_s)
            if snapshot is None:
                return [QueryTask()]
            if sum(part.nbytes for part in snapshot.parts) <= min(_INLINE_BYTES_MAX, options.task_bytes):
                return _inline(session, snapshot)
        tasks = tasks_of(snapshot.parts, options.task_bytes)
        return [SnapshotTask(snapshot.only(parts), pieces) for parts, pieces in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        with noted_errors():
            match partition:
                case RowsTask(rows=rows, columns=columns):
                    yield from spark_batches(decode_table(rows, ranges=False), columns, self._schema)
                case SnapshotTask(snapshot=snapshot, pieces=pieces):
                    with self._endpoint.session(timeout_s=None) as session:
                        reader = SnapshotReader(session, snapshot)
                        for table in _one_ahead(reader.read, pieces_of(snapshot.parts, pieces)):
                            yield from spark_batches(table, snapshot.columns, self._schema)
                case QueryTask():
                    yield from self._rows_of_query()
                case _:
                    return  # Spark starts one task for no partitions

    def _rows_of_query(self) -> Iterator[pa.RecordBatch]:
        options = self._options
        with self._endpoint.session(timeout_s=None) as session, Connection(session) as connection:
            cursor = connection.execute(options.sql, options.params)
            assert cursor.description is not None
            columns = [ResultColumn(column[0], column[1]) for column in cursor.description]
            for batch in cursor.fetch_record_batch(_RESULT_ROWS):
                yield from spark_batches(pa.Table.from_batches([batch]), columns, self._schema)


def _inline(session: Session, snapshot: Snapshot) -> list[InputPartition]:
    """Read a small snapshot now, in one task."""
    if not snapshot.parts:
        return []
    reader = SnapshotReader(session, snapshot)
    table = reader.read([_whole(part) for part in snapshot.parts])
    close_snapshot(session, snapshot)
    return [RowsTask(bytes(encode_table(table)), snapshot.columns)]


def _one_ahead(
    read: Callable[[list[SnapshotPiece]], pa.Table], requests: Iterable[list[SnapshotPiece]]
) -> Iterator[pa.Table]:
    """The answers to requests, each made by the member while Spark takes the one before."""
    with ThreadPoolExecutor(1) as thread:
        coming: Future[pa.Table] | None = None
        for request in requests:
            before, coming = coming, thread.submit(read, request)
            if before is not None:
                yield before.result()
        if coming is not None:
            yield coming.result()


def _whole(part: SnapshotPart) -> SnapshotPiece:
    return SnapshotPiece(part.partition, 0, part.rows)
