"""The plan of a read: the columns of a query, the moment whose rows are read, and the tasks that read them.

Runs in processes beside the driver; the tasks themselves load none of this.
"""

from __future__ import annotations

import pickle
from typing import Final

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from secateur.client.execution import snapshot as snapshots
from secateur.client.session import Session
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.kept_session import with_kept_session
from secateur.connectors.spark.read_tasks import pieces_of, tasks_of
from secateur.connectors.spark.read_values import QueryTask, ReadOptions, RowsAtMember, RowsTask, SnapshotTask
from secateur.connectors.spark.result_schema import spark_schema
from secateur.errors import UnknownTableError
from secateur.protocol.arrow_ipc import encode_table
from secateur.protocol.snapshots import SnapshotPiece

_INLINE_BYTES_MAX: Final = 1 << 20
"""Rows that take no more than this are read while Spark plans, and travel with the one task: it then needs no
connection, and a look-up of one key costs what a task costs. If one member has them, it answers the request that would
open the snapshot.
"""


def query_schema(endpoint: Endpoint, options: ReadOptions) -> StructType:
    """The columns of a query; those of a table that are NOT NULL are so in Spark as well.

    Raises:
        NotSupportedError: Spark has no type for a column.
        Error: The planner refuses the query, or the cluster cannot be reached.
    """
    with endpoint.session() as session:
        columns = snapshots.prepared_query(session, options.sql, options.params).statement.columns
        return spark_schema(columns, _never_null(session, options.table))


def _never_null(session: Session, table: str | None) -> frozenset[str]:
    """The folded names of the NOT NULL columns of a table; none of a view or a system table."""
    if table is None:
        return frozenset()
    try:
        found = session.outlined_table(table)
    except UnknownTableError:
        return frozenset()
    return frozenset(column.name.casefold() for column in found.columns if not column.nullable)


def plan_tasks(endpoint: Endpoint, options: ReadOptions) -> list[InputPartition]:
    """Prune, open a snapshot, and divide it into tasks.

    Returns:
        Tasks for partitions that are required and have rows, and no others; possibly none.

    Raises:
        Error: The planner refuses the query, or the cluster cannot be reached.
    """
    return with_kept_session(endpoint, lambda session: _tasks(session, options))


def _tasks(session: Session, options: ReadOptions) -> list[InputPartition]:
    inline_bytes = min(_INLINE_BYTES_MAX, options.task_bytes)
    call = snapshots.prepared_query(session, options.sql, options.params)
    snapshot = snapshots.open_snapshot(call, lease_s=options.lease_s, answer_bytes=inline_bytes)
    if snapshot is None:
        return [QueryTask()]
    if sum(part.nbytes for part in snapshot.parts) <= inline_bytes:
        return _inline(session, snapshot)
    places = {member.id: (member.host, member.port) for member in session.topology.members}
    columns = _plain(snapshot)
    tasks: list[InputPartition] = []
    for parts, pieces in tasks_of(snapshot.parts, options.task_bytes):
        requests = tuple(
            tuple((piece.partition, piece.offset, piece.rows) for piece in request)
            for request in pieces_of(parts, pieces)
        )
        rows = RowsAtMember(snapshot.name, *places[parts[0].member], requests, pickle.dumps(snapshot.only(parts)))
        tasks.append(SnapshotTask(rows, columns))
    return tasks


def _inline(session: Session, snapshot: snapshots.Snapshot) -> list[InputPartition]:
    """Read a small snapshot now, in one task."""
    if not snapshot.parts:
        return []
    if snapshot.answer is not None:
        return [RowsTask(snapshot.answer, _plain(snapshot))]
    reader = snapshots.SnapshotReader(session, snapshot)
    table = reader.read([_whole(part) for part in snapshot.parts])
    snapshots.close_snapshot(session, snapshot)
    return [RowsTask(bytes(encode_table(table)), _plain(snapshot))]


def _plain(snapshot: snapshots.Snapshot) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, column.type) for column in snapshot.columns)


def _whole(part: snapshots.SnapshotPart) -> SnapshotPiece:
    return SnapshotPiece(part.partition, 0, part.rows)
