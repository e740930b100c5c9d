"""Loads: rows are staged at the owners of their partitions under one id, and become visible at once or not at all.

A load of a single partition that does not replace the table is one direct write to the primary instead, which is atomic
in itself.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Final, TypeAlias

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from secateur import errors
from secateur.client.execution.execute import Retryable, execute
from secateur.client.loads.arrow_data import as_chunks
from secateur.client.session import Session
from secateur.partitioning.schemes.partial_ranges import EVERY_KEY, unknown_ranges
from secateur.partitioning.schemes.router import ROWS_LOOKED_UP_MAX
from secateur.partitioning.tables.conform import MissingColumns, conform, with_rows_of_key
from secateur.partitioning.tables.row_ids import check_has_key, with_row_ids, without_row_ids
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.owner_routing import OwnerRouting, RoutedBatch, split
from secateur.protocol.changes import AbortLoad, PublishLoad, StageRows, WriteRows
from secateur.protocol.metrics import StageWork
from secateur.tracing import in_this_trace
from secateur.wire import ShortTable, encode_rows, encode_table

Progress = Callable[[int], None]
"""Called with the rows staged so far."""

_ATTEMPT: Final = 0
_WRITE_BYTES_MAX: Final = 16 << 20
_WRITE_ROWS_MAX: Final = 1 << 20
_SENDERS_MAX: Final = 8
_ENDED_ABORT_S: Final = 0.2
"""Seconds that a statement that was ended waits until what it has staged is dropped."""
_OUT_OF_REACH: Final = (errors.MemberLostError, errors.UnreachableError, errors.DeadlineError)


_Conform: TypeAlias = Callable[..., pa.Table]
""":func:`conform` as it is for the rows of one load."""


class LoadMode(StrEnum):
    """The treatment of existing rows by a load."""

    APPEND = "append"
    """Keep them; a key that is there already is an error."""
    OVERWRITE = "overwrite"
    """Replace them all."""
    OVERWRITE_RANGES = "overwrite_ranges"
    """Replace those of each range partition that gets a row, and keep those of others."""
    UPSERT = "upsert"
    """Replace those with the same key."""
    IGNORE = "ignore"
    """Keep them, and leave out the rows whose key is there already."""

    @classmethod
    def of(cls, text: str) -> LoadMode:
        """Read a mode.

        Raises:
            ProgrammingError: There is no such mode.
        """
        try:
            return cls(text)
        except ValueError as error:
            raise errors.ProgrammingError(
                f"load mode {text!r} does not exist; use {', '.join(repr(mode.value) for mode in cls)}"
            ) from error


class LoadResult(msgspec.Struct, frozen=True):
    """The outcome of a load: rows that became visible, and the partitions that got some.

    ``members`` counts those that this client sent rows to; backups get theirs from the primaries.
    """

    rows: int
    members: int
    partitions: int


def load_rows(
    session: Session,
    table: TableDef,
    data: pa.Table | ShortTable | pa.RecordBatchReader,
    mode: LoadMode,
    *,
    missing: MissingColumns = MissingColumns.NULL,
    progress: Progress | None = None,
    same_table: bool = False,
    work: list[StageWork] | None = None,
    now: datetime | None = None,
) -> LoadResult:
    """Load rows into a table: all of them, or none.

    When partitions move meanwhile, the load starts again with the new owners, for at most 10 s; a RecordBatchReader
    cannot be read twice, so there it fails.

    Args:
        session: Where.
        table: Its definition.
        data: Columns matched by name without regard to case, converted where that is exact. Or a few rows as canonical
            plain values of all columns of ``table``, without NULL where that has none.
        mode: The treatment of existing rows.
        missing: The treatment of columns that the data lack.
        progress: Called after each chunk.
        same_table: Refuse to go on with a table that has taken the name of this one since.
        work: Gets what was sent to each member, and what the publication took, for EXPLAIN ANALYZE.
        now: As :func:`~secateur.partitioning.tables.conform.conform`.

    Raises:
        TopologyChangedError: The table is another one by now, with ``same_table``; or partitions kept moving. Nothing
            was loaded.
        DuplicateKeyError: An appended key is there already, or given twice.
        ProgrammingError: Rows with the same key are to be replaced or kept, and the table has no primary key.
        DataError: A value that its column cannot hold. NullKeyError, NoRangeError, UnknownColumnError likewise. All:
            nothing was loaded.
        LoadFailedError: A member could not be reached; nothing was loaded.
        PartitionLostError: Every copy of a partition that rows belong to is lost; nothing was loaded.
        OperationalError: The answer to the publication itself was lost: whether the rows are visible is unknown, and
            the message says so.
    """
    if mode in (LoadMode.UPSERT, LoadMode.IGNORE):
        check_has_key(table, f"a load with mode {mode.value!r} has no keys to compare")
    if now is None and table.defaults:
        now = datetime.now(UTC)  # that of every try
    conformed = partial(conform, missing=missing, now=now)
    try:
        return execute(_LoadExecution(session, table, data, mode, conformed, progress, same_table, work))
    except errors.DuplicateKeyError as error:
        if isinstance(data, pa.Table):
            raise with_rows_of_key(error, conform(data, table, missing), table.primary_key) from error.__cause__
        raise


class _LoadExecution(Retryable[LoadResult]):
    """A load: nothing of it is visible until all of it is.

    A direct write may be repeated even when its answer was lost: it has the same id in every try, and who has it as a
    backup knows the id as well. A load that was staged is given up before its error comes here.
    """

    work = "write"

    def __init__(
        self,
        session: Session,
        table: TableDef,
        data: pa.Table | ShortTable | pa.RecordBatchReader,
        mode: LoadMode,
        conformed: _Conform,
        progress: Progress | None,
        same_table: bool,
        stages: list[StageWork] | None,
    ) -> None:
        self.session = session
        self._table = table
        # The rows have the same ids in every try.
        self._data = with_row_ids(data, table) if isinstance(data, pa.Table) else data
        self._mode = mode
        self._conformed = conformed
        self._progress = progress
        self._same_table = same_table
        self._stages = stages
        self._change_id = os.urandom(16).hex()
        self._written_to: str | None = None

    def attempt(self) -> LoadResult:
        self._written_to = None
        self._table = self._with_ranges_known(self._table)
        if self._stages is not None:
            self._stages.clear()
        try:
            written = self._write_directly()
            return self._stage_and_publish() if written is None else written
        except errors.NoRangeError:
            # The range may have been added after the caller's definition of the table was fetched.
            known, newer = self._table, self.session.outlined_table(self._table.name)
            is_newer = (newer.table_id, newer.version) != (known.table_id, known.version)
            if not is_newer or not self._is_at_hand:
                raise
            self._go_on_with(newer)
            return self.attempt()

    @property
    def _is_at_hand(self) -> bool:
        """Whether the rows can be read again."""
        return not isinstance(self._data, pa.RecordBatchReader)

    @property
    def _is_small(self) -> bool:
        return isinstance(self._data, pa.Table | ShortTable) and self._data.num_rows <= ROWS_LOOKED_UP_MAX

    def _go_on_with(self, newer: TableDef) -> None:
        """The rows are for a newer definition of the table, or for the table that has its name now."""
        if newer.table_id != self._table.table_id and isinstance(self._data, ShortTable):
            self._data = _in_arrow(self._data, self._table)  # whose columns have names
        if newer.has_row_ids is not self._table.has_row_ids and isinstance(self._data, pa.Table):
            self._data = with_row_ids(without_row_ids(self._data), newer)
        self._table = newer

    def _with_ranges_known(self, table: TableDef) -> TableDef:
        """The table with all that this process knows of its ranges; with all ranges for more than a few rows."""
        if table.scheme.partial is None:
            return table
        table = replace(table)  # reads its reference again
        partial = table.scheme.partial
        if partial is not None and partial.unknown and not self._is_small:
            raise unknown_ranges(table.scheme.reference, [EVERY_KEY])
        return table

    def may_repeat(self, error: errors.Error) -> bool:
        match error:
            case errors.MemberLostError() | errors.UnreachableError():
                return self._written_to is not None
            case errors.PartitionLostError() | errors.TopologyChangedError():
                return self._is_at_hand
            case errors.LoadFailedError():  # nothing of it was published, and it was given up with its controller
                return bool(error.details.get("is_aborted")) and self._is_at_hand
            case _:
                return False

    def prepare_again(self, because: errors.Error) -> None:
        if not isinstance(because, errors.TopologyChangedError):
            return
        try:
            newer = self.session.outlined_table(self._table.name, waits=False)
        except (errors.UnreachableError, errors.MemberLostError, errors.DeadlineError):
            # Without a controller no table changes; the owners are those that members name.
            self.session.check_control()
            return
        if self._same_table and newer.table_id != self._table.table_id:
            raise because
        self._go_on_with(newer)

    def given_up(self, error: errors.Error) -> errors.Error:
        if self._written_to is None or not isinstance(error, errors.UnreachableError):
            return error
        name, member = self._table.name, self._written_to
        return errors.LoadFailedError(
            f"{name}: member {member} cannot be reached, and nothing was loaded: {error.message}",
            table=name,
            member=member,
        )

    def _write_directly(self) -> LoadResult | None:
        """Write rows of a single partition with one frame to its primary; None when they are not such rows."""
        table, data, mode = self._table, self._data, self._mode
        replaces = mode in (LoadMode.OVERWRITE, LoadMode.OVERWRITE_RANGES)
        if isinstance(data, ShortTable):
            partition = None if replaces or table.replicated else _partition_of_few(data, table)
            if partition is not None:
                return self._write(table, partition, data)
            self._data = data = _in_arrow(data, table)
        if (
            replaces
            or table.replicated
            or not isinstance(data, pa.Table)
            or (data.get_total_buffer_size() > _WRITE_BYTES_MAX and data.nbytes > _WRITE_BYTES_MAX)
            or data.num_rows > _WRITE_ROWS_MAX
        ):
            return None
        self._data = data = self._conformed(data, table, are_all=True)
        if data.num_rows == 0:
            return LoadResult(0, 0, 0)
        if table.scheme.makes_ranges:
            fetch = self.session.outlined_table if self._is_small else self.session.table
            table = self.session.with_ranges_for(table, data, fetch)
        placed = _in_one_partition(data, table)
        if placed is None:
            return None
        return self._write(table, *placed)

    def _write(self, table: TableDef, partition: int, rows: pa.Table | ShortTable) -> LoadResult:
        """Write rows of one partition, in the schema of the table, at its primary."""
        payload = encode_rows(rows)
        member = self.session.owner(table.scheme.affinity_group(), partition)
        asked = WriteRows(table.table_id, partition, self._mode.value, self._change_id)
        started_s, self._written_to = time.perf_counter(), member
        try:
            answer = self.session.ask_member(member, asked, payload)
        except errors.MemberLostError as error:
            self.lost_answer = error
            raise
        if self._stages is not None:
            self._stages.append(_sent(table, member, 1, rows.num_rows, len(payload), started_s))
        return LoadResult(answer.message.rows, 1, 1)

    def _stage_and_publish(self) -> LoadResult:
        """Bring the rows aside at their owners, and have the controller make all of them visible at once."""
        session, table, mode, work = self.session, self._table, self._mode, self._stages
        load_id = uuid.uuid4().hex
        try:
            partitions, members = session.apart(partial(self._stage, load_id))
        except _OUT_OF_REACH as error:
            _abort(session, load_id)
            if session.control is not None and session.control.error is error:
                raise
            raise errors.LoadFailedError(
                f"the load into {table.name} was aborted, and the table is unchanged: {error.message}", table=table.name
            ) from error
        except BaseException:
            _abort(session, load_id)
            raise
        if not partitions and mode is not LoadMode.OVERWRITE:
            return LoadResult(0, 0, 0)
        parts = {partition: [_ATTEMPT] for partition in sorted(partitions)}
        try:
            answer = session.ask(PublishLoad(load_id, table.name, mode.value, parts, table.table_id))
        except errors.UnreachableError as error:  # so it was not sent
            raise errors.LoadFailedError(
                f"the load into {table.name} could not be published, and the table is unchanged: {error.message}",
                table=table.name,
            ) from error
        except _OUT_OF_REACH as error:
            raise type(error)(
                f"the load into {table.name} was staged, but the answer to its publication was lost: read"
                f" the table to see whether its rows are visible. {error.message}"
            ) from error
        except errors.Error:
            _abort(session, load_id)
            raise
        if work is not None:
            work.extend(answer.message.work)
        return LoadResult(answer.message.rows, len(members), len(partitions))

    def _stage(self, load_id: str) -> tuple[set[int], set[str]]:
        """Send all rows aside; returns the partitions and members that got any."""
        session, table, work = self.session, self._table, self._stages
        topology = session.topology_of(table)
        topology.check_any()
        control = session.control
        partitions: set[int] = set()
        members: set[str] = set()

        def send(share: RoutedBatch) -> None:
            session.work_for(control)
            started_s, rows = time.perf_counter(), share.rows
            asked = StageRows(load_id, table.table_id, _ATTEMPT, share.parts)
            session.ask_member(share.member, asked, encode_table(rows))
            if work is not None:
                work.append(_sent(table, share.member, len(share.parts), rows.num_rows, rows.nbytes, started_s))

        sharing = OwnerRouting.of(table, topology)
        staged = 0
        senders_max = min(_SENDERS_MAX, len(topology.members))
        with ThreadPoolExecutor(senders_max, thread_name_prefix="secateur-load") as senders:
            for rows in self._chunks(table):
                covered = session.with_ranges_for(table, rows)
                if covered is not table:
                    table, sharing = covered, OwnerRouting.of(covered, session.topology_of(covered))
                shares = list(sharing.shares(rows))
                topology.check_live([share.member for share in shares])
                for _ in senders.map(in_this_trace(send), shares):
                    pass
                members.update(share.member for share in shares)
                partitions.update(partition for share in shares for partition, _ in share.parts)
                staged += rows.num_rows
                if self._progress is not None:
                    self._progress(staged)
        return partitions, members

    def _chunks(self, table: TableDef) -> Iterator[pa.Table]:
        first_row, data = 1, self._data
        assert not isinstance(data, ShortTable)
        for chunk in as_chunks(data, check=self.session.check_control):
            yield from as_chunks(self._conformed(chunk, table, first_row=first_row))
            first_row += chunk.num_rows
        if first_row == 1:  # its columns are checked all the same
            self._conformed(data.schema.empty_table(), table, are_all=True)


def _sent(table: TableDef, member: str, partitions: int, rows: int, size: int, started_s: float) -> StageWork:
    """The work of sending rows to one member since ``started_s``, for EXPLAIN ANALYZE."""
    return StageWork(
        f"insert into {table.name}",
        member,
        partitions,
        0,
        rows,
        size,
        0,
        0.0,
        (time.perf_counter() - started_s) * 1000,
    )


def _in_arrow(rows: ShortTable, table: TableDef) -> pa.Table:
    return rows.in_schema([column.type for column in table.columns], table.arrow_schema)


def _partition_of_few(rows: ShortTable, table: TableDef) -> int | None:
    """Return the partition of all rows; None when they belong to several, or the table makes ranges for them."""
    if table.scheme.makes_ranges or not rows.num_rows:
        return None
    placed = set(map(table.partition_of_row, zip(*rows.columns, strict=True)))
    return placed.pop() if len(placed) == 1 else None


def _in_one_partition(data: pa.Table, table: TableDef) -> tuple[int, pa.Table] | None:
    """Return the partition of all rows, which are in the table's schema, with them; None for several partitions."""
    if data.num_rows == 1:
        with suppress(
            OverflowError, ValueError
        ):  # a date outside the years of Python, which only whole columns can have
            key = {name: data.column(name)[0].as_py() for name in table.scheme.columns}
            return table.scheme.partition_of(key), data
    else:
        # Looking at both ends first spares nearly all loads of many partitions from being split twice.
        ends = pa.concat_tables([data.slice(0, 1), data.slice(data.num_rows - 1)])
        first, last = table.scheme.partitions_of(ends, unmatched_allowed=True).tolist()
        if first != last:
            return None
    parts = split(data, table)
    return next(iter(parts.items())) if len(parts) == 1 else None


def _abort(session: Session, load_id: str) -> None:
    """Drop what was staged.

    Members forget a load by themselves in time, so a controller that is out of reach is no reason to hide the first
    error, nor to go on for long with a statement that was ended.
    """
    with suppress(errors.Error):
        if session.control is None or session.control.error is None:
            session.ask(AbortLoad(load_id))
            return
        ended = session.work_for(None)
        try:
            session.ask(AbortLoad(load_id), timeout_s=_ENDED_ABORT_S, waits=False)
        finally:
            session.work_for(ended)
