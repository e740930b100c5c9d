"""The plan of a read: the columns of a query in Spark, the moment whose rows are read, and the tasks that read them.

Runs in processes beside the driver; the tasks themselves load none of this.

=========================================  ===============================================
secateur                                   Spark
=========================================  ===============================================
BOOLEAN, VARCHAR, BLOB, DATE, DECIMAL      the same
TINYINT, SMALLINT, INTEGER, BIGINT         the same
UTINYINT, USMALLINT, UINTEGER              the next larger signed type
UBIGINT, HUGEINT                           DECIMAL(20,0), DECIMAL(38,0)
FLOAT, DOUBLE                              the same
TIMESTAMP, TIMESTAMP WITH TIME ZONE        TIMESTAMP_NTZ, TIMESTAMP
TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS    TIMESTAMP_NTZ; one of a fraction of a microsecond is refused
TIME                                       TIME, which ``spark.sql.timeType.enabled`` allows
UUID, JSON, ENUM                           STRING
lists of any and of a fixed length         ARRAY
STRUCT, MAP                                STRUCT, MAP
INTERVAL                                   INTERVAL DAY TO SECOND, of 24 hours a day; a value with months is refused,
                                           because an interval of Spark has either months or days
=========================================  ===============================================
"""

from __future__ import annotations

import atexit
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from secateur.client.execution import snapshot as snapshots
from secateur.client.execution.snapshot import SnapshotPart
from secateur.client.session import Session
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.read_values import QueryTask, ReadOptions, RowsAtMember, RowsTask, SnapshotTask
from secateur.engine.kernels.duckdb.result_types import arrow_type
from secateur.errors import Error, NotSupportedError, UnknownTableError
from secateur.partitioning.types.arrow_layout import map_leaf_types
from secateur.protocol.arrow_ipc import encode_table
from secateur.protocol.snapshots import SnapshotPiece
from secateur.protocol.statements import ResultColumn

_INLINE_BYTES_MAX: Final = 1 << 20
"""Rows that take no more than this are read while Spark plans, and travel with the one task: it then needs no
connection, and a look-up of one key costs what a task costs. If one member has them, it answers the request that would
open the snapshot.
"""
R = TypeVar("R")

_kept: Final[dict[tuple[int, Endpoint], Session]] = {}
"""By the process, which a fork does not share its sockets with, and the cluster; none while it is in use."""

_WIDER: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


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
    return _with_kept_session(endpoint, lambda session: _tasks(session, options))


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
    table = reader.read([SnapshotPiece(part.partition, 0, part.rows) for part in snapshot.parts])
    snapshots.close_snapshot(session, snapshot)
    return [RowsTask(bytes(encode_table(table)), _plain(snapshot))]


def _plain(snapshot: snapshots.Snapshot) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, column.type) for column in snapshot.statement.columns)


def _with_kept_session(endpoint: Endpoint, work: Callable[[Session], R]) -> R:
    """Do some work over a kept connection, or else over a new one, which is kept if the work succeeds.

    Work that fails over a kept connection is done again over a new one, so it may be done twice: what was at the other
    end may have gone, and an error that is the user's comes again.

    Spark plans every read in a Python process that it uses again, and ends when that has rested for a minute. So the
    next read of the same cluster finds the connection open and the plan of its text known, and asks the owner of one
    key at once: one round trip, where a new connection takes eight, and wakes the controller.

    A kept connection knows no less than that of a client which stays connected: members refuse a plan of a table or
    view that has changed, and the topology that they do not have.

    Raises:
        Error: As the work, and as ``Endpoint.session``.
    """
    place = os.getpid(), endpoint
    kept = _kept.pop(place, None)
    if kept is not None:
        with suppress(Error):
            return _keeping(place, kept, work)
    return _keeping(place, endpoint.connected(timeout_s=None), work)


@atexit.register
def close_kept_sessions() -> None:
    """Close the connections that this process keeps; those that are in use stay open."""
    for place in [place for place in _kept if place[0] == os.getpid()]:
        _kept.pop(place).close()


def _keeping(place: tuple[int, Endpoint], session: Session, work: Callable[[Session], R]) -> R:
    """Do the work, and keep the connection unless it fails."""
    try:
        done = work(session)
    except BaseException:
        session.close()
        raise
    # A kept connection does not wait for a cluster that has changed or gone: a new one is made at once, which does.
    session.retry_s = session.controller_wait_s = 0.0
    if _kept.setdefault(place, session) is not session:  # another thread has kept one meanwhile
        session.close()
    return done


TASK_BYTES: Final = 64 << 20
"""Half of what Spark reads of a file in a task (``spark.sql.files.maxPartitionBytes``), which is compressed."""
REQUEST_BYTES: Final = 8 << 20
"""Bytes that a member is asked to look at with one request: enough that a round trip costs little beside them."""


def tasks_of(
    parts: Iterable[SnapshotPart], task_bytes: int
) -> Iterator[tuple[tuple[SnapshotPart, ...], tuple[SnapshotPiece, ...]]]:
    """Divide the partitions of a snapshot into tasks, each of which looks at about ``task_bytes``.

    A large partition is split between tasks and small ones are joined, so that tasks take about as long as each other.
    A task reads from one member.

    Yields:
        The partitions of a task, and its pieces of them. Each row is in one piece.
    """
    by_member: dict[str, list[SnapshotPart]] = {}
    for part in parts:
        by_member.setdefault(part.member, []).append(part)
    for owned in by_member.values():
        joined: list[SnapshotPart] = []
        joined_bytes = 0
        for part in owned:
            if part.nbytes > task_bytes:
                for piece in _split(part, task_bytes):
                    yield (part,), (piece,)
                continue
            if joined and joined_bytes + part.nbytes > task_bytes:
                yield _task(joined)
                joined, joined_bytes = [], 0
            joined.append(part)
            joined_bytes += part.nbytes
        if joined:
            yield _task(joined)


def pieces_of(
    parts: Sequence[SnapshotPart], pieces: Iterable[SnapshotPiece], request_bytes: int = REQUEST_BYTES
) -> Iterator[list[SnapshotPiece]]:
    """Divide the pieces of a task into requests of about so many bytes: large ones are split, small ones joined."""
    row_bytes = {part.partition: part.nbytes / part.rows for part in parts}
    joined: list[SnapshotPiece] = []
    joined_bytes = 0.0
    for piece in pieces:
        rows_max = max(1, int(request_bytes / max(row_bytes[piece.partition], 1)))
        for offset in range(piece.offset, piece.offset + piece.rows, rows_max):
            some = SnapshotPiece(piece.partition, offset, min(rows_max, piece.offset + piece.rows - offset))
            nbytes = some.rows * row_bytes[piece.partition]
            if joined and joined_bytes + nbytes > request_bytes:
                yield joined
                joined, joined_bytes = [], 0.0
            joined.append(some)
            joined_bytes += nbytes
    if joined:
        yield joined


def _split(part: SnapshotPart, task_bytes: int) -> Iterator[SnapshotPiece]:
    """Divide a partition into pieces of equal size."""
    count = min(ceil(part.nbytes / task_bytes), part.rows)
    bounds = [part.rows * index // count for index in range(count + 1)]
    for start, stop in pairwise(bounds):
        yield SnapshotPiece(part.partition, start, stop - start)


def _task(parts: Sequence[SnapshotPart]) -> tuple[tuple[SnapshotPart, ...], tuple[SnapshotPiece, ...]]:
    return tuple(parts), tuple(SnapshotPiece(part.partition, 0, part.rows) for part in parts)


def spark_schema(columns: Sequence[ResultColumn], never_null: Set[str] = frozenset()) -> StructType:
    """The columns of a query as Spark names their types.

    Args:
        columns: The columns.
        never_null: The folded names of those that are never NULL: Spark spares itself a look at each value of them,
            and reads rows of such columns in three quarters of the time.

    Raises:
        NotSupportedError: Spark has no type for a column.
    """
    return StructType(
        [
            StructField(
                column.name,
                from_arrow_type(_spark_arrow(arrow_type(column.type), column)),
                nullable=column.name.casefold() not in never_null,
            )
            for column in columns
        ]
    )


def _spark_arrow(kind: pa.DataType, column: ResultColumn) -> pa.DataType:
    """The Arrow type of the Spark type that holds every value of an Arrow type."""
    return pa.string() if kind == pa.uuid() else map_leaf_types(kind, partial(_spark_leaf, column=column))


def _spark_leaf(kind: pa.DataType, column: ResultColumn) -> pa.DataType:
    if kind == pa.uuid():
        raise NotSupportedError(
            f"column {column.name!r} is of type {column.type}, which Spark does not have: name other columns, or read"
            f" a query that casts it to VARCHAR",
            column=column.name,
        )
    return pa.duration("us") if pa.types.is_interval(kind) else _WIDER.get(kind, kind)
