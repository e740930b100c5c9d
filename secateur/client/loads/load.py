"""Bulk loads: rows go straight to the owners of their partitions, staged under a load id, and become visible at once or
not at all.

A load that has a single partition, and does not replace the table, is one direct write to the primary instead: it is
atomic by itself.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pyarrow as pa

from secateur.client.execution.lost_members import LostMembers
from secateur.client.execution.retry_policy import wait_while_silent
from secateur.client.execution.run_profile import StageWork
from secateur.client.loads.arrow_data import as_chunks
from secateur.client.loads.ranges_on_demand import with_ranges_for
from secateur.client.session import Session
from secateur.errors import (
    DeadlineError,
    Error,
    LoadFailedError,
    MemberLostError,
    NoRangeError,
    PartitionLostError,
    ProgrammingError,
    TopologyChangedError,
    UnreachableError,
)
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.tables.split import split
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.owner_routing import OwnerRouting, RoutedBatch
from secateur.wire import encode_table

__all__ = ["LoadMode", "LoadResult", "Progress", "load_rows"]

Progress = Callable[[int], None]
"""Called with the rows staged so far."""

_ATTEMPT: Final = 0
_RETRY_S: Final = 10.0
_PAUSE_S: Final = 0.1
_WRITE_BYTES_MAX: Final = 16 << 20
_WRITE_ROWS_MAX: Final = 1 << 20
_SENDERS_MAX: Final = 8
_OUT_OF_REACH: Final = (MemberLostError, UnreachableError, DeadlineError)


class LoadMode(StrEnum):
    """What a load does with the rows that are there."""

    APPEND = "append"
    """Keep them; a key that is there already is an error."""
    OVERWRITE = "overwrite"
    """Replace them all."""
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
            raise ProgrammingError(
                f"load mode {text!r} does not exist; use {', '.join(repr(mode.value) for mode in cls)}"
            ) from error


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did.

    Attributes:
        rows: Rows that became visible.
        members: Members that this client sent rows to; backups get theirs from the primaries.
        partitions: Partitions that got rows.
    """

    rows: int
    members: int
    partitions: int


def load_rows(
    session: Session,
    table: TableDef,
    data: pa.Table | pa.RecordBatchReader,
    mode: LoadMode,
    *,
    progress: Progress | None = None,
    same_table: bool = False,
    work: list[StageWork] | None = None,
) -> LoadResult:
    """Load rows into a table: all of them, or none.

    When partitions move meanwhile, the load starts again with the new owners, for at most 10 s; a RecordBatchReader
    cannot be read twice, so there it fails.

    Args:
        session: Where.
        table: Its definition.
        data: Columns matched by name without regard to case, converted where that is exact; nullable columns may be
            missing.
        mode: What happens to the rows that are there.
        progress: Called after each chunk.
        same_table: Refuse to go on with a table that has taken the name of this one since.
        work: Gets what was sent to each member, and what the publication took, for EXPLAIN ANALYZE.

    Raises:
        TopologyChangedError: The table is another one by now, with ``same_table``; or partitions kept moving. Nothing
            was loaded.
        DuplicateKeyError: An appended key is there already, or given twice.
        DataError: A value that its column cannot hold. NullKeyError, NoRangeError, UnknownColumnError likewise. All:
            nothing was loaded.
        LoadFailedError: A member could not be reached; nothing was loaded.
        PartitionLostError: Every copy of a partition that rows belong to is lost; nothing was loaded.
        OperationalError: The answer to the publication itself was lost: whether the rows are visible is unknown, and
            the message says so.
    """
    deadline_s, is_first = time.monotonic() + _RETRY_S, True
    seen = -1
    change_id = uuid.uuid4().hex
    lost: MemberLostError | None = None
    lost_members = LostMembers("write", session.is_gone)
    while True:
        if work is not None:
            work.clear()
        try:
            written = _write_directly(session, table, data, mode, change_id, work)
            return _stage_and_publish(session, table, data, mode, progress, work) if written is None else written
        except NoRangeError:
            # The range may have been added after the caller's definition of the table was fetched.
            newer = session.table(table.name)
            if not isinstance(data, pa.Table) or (newer.table_id, newer.version) == (table.table_id, table.version):
                raise
            table = newer
        except _WriteLostError as error:
            # Asking again is safe: under one id a write is made once, and who has it as a backup knows the id as well.
            if is_first:  # to notice that a member is silent may have taken most of the time
                is_first, deadline_s = False, time.monotonic() + _RETRY_S
            if isinstance(error.cause, MemberLostError):
                lost = error.cause
                lost_members.note(error.member, lost)
            if time.monotonic() >= deadline_s:
                raise lost or error.failure from error.cause
            _wait_for_owners(session)
            wait_while_silent(session, error.member, deadline_s)
        except PartitionLostError:
            # Unless the newest topology says so too, a backup has taken over; nothing was loaded so far.
            if seen == (seen := session.refresh_topology().version) or not isinstance(data, pa.Table):
                raise
        except TopologyChangedError as error:
            if not isinstance(data, pa.Table) or time.monotonic() >= deadline_s:
                raise
            _wait_for_owners(session)
            if error.details.get("lease_ended"):  # says nothing of the table, and the controller may be out of reach
                continue
            try:
                newer = session.table(table.name)
            except UnreachableError:  # then nobody changes tables; the owners are those that members name
                continue
            if same_table and newer.table_id != table.table_id:
                raise
            table = newer


class _WriteLostError(Exception):
    """A direct write was not answered; never leaves this module.

    Attributes:
        cause: The connection broke, or could not be made.
        member: The member that it was to.
        failure: What to say when it never was answered, and certainly never made.
    """

    def __init__(self, cause: MemberLostError | UnreachableError, member: str, failure: LoadFailedError) -> None:
        super().__init__(cause.message)
        self.cause = cause
        self.member = member
        self.failure = failure


def _wait_for_owners(session: Session) -> None:
    """Ask for the owners again; when nothing has changed yet, give the cluster a moment."""
    known = session.topology.version
    if session.refresh_topology().version == known:
        time.sleep(_PAUSE_S)


def _write_directly(
    session: Session,
    table: TableDef,
    data: pa.Table | pa.RecordBatchReader,
    mode: LoadMode,
    change_id: str,
    work: list[StageWork] | None,
) -> LoadResult | None:
    """Write rows of a single partition with one frame to its primary; None when they are not such rows."""
    if (
        mode is LoadMode.OVERWRITE
        or table.replicated
        or not isinstance(data, pa.Table)
        or data.nbytes > _WRITE_BYTES_MAX
        or data.num_rows > _WRITE_ROWS_MAX
    ):
        return None
    if data.num_rows == 0:
        conform(data, table)
        return LoadResult(0, 0, 0)
    if table.scheme.makes_ranges:
        data = conform(data, table)
        table = with_ranges_for(session, table, data)
    placed = _in_one_partition(data, table)
    if placed is None:
        return None
    partition, rows = placed
    topology = session.topology
    member = topology.ownership(table.scheme.affinity_group()).primary(partition)
    topology.check_live([member])
    args = {
        "table_id": table.table_id,
        "partition": partition,
        "mode": mode.value,
        "topology_version": topology.version,
        "change_id": change_id,
    }
    started_s = time.perf_counter()
    try:
        answer = session.ask_member(member, "write", args, encode_table(rows))
    except (MemberLostError, UnreachableError) as error:
        message = f"{table.name}: member {member} is out of reach, nothing was loaded: {error.message}"
        raise _WriteLostError(error, member, LoadFailedError(message, table=table.name, member=member)) from error
    if work is not None:
        work.append(_sent(table, member, 1, rows, started_s))
    return LoadResult(answer.header.get("rows", rows.num_rows), 1, 1)


def _sent(table: TableDef, member: str, partitions: int, rows: pa.Table, started_s: float) -> StageWork:
    """What this client has sent to a member since, for EXPLAIN ANALYZE."""
    return StageWork(
        f"insert into {table.name}",
        member,
        partitions,
        0,
        rows.num_rows,
        rows.nbytes,
        0,
        0.0,
        (time.perf_counter() - started_s) * 1000,
    )


def _in_one_partition(data: pa.Table, table: TableDef) -> tuple[int, pa.Table] | None:
    """The one partition that all rows belong to, and the rows in the table's schema; None when they belong to
    several.
    """
    if data.num_rows == 1:
        row = conform(data, table)
        with suppress(
            OverflowError, ValueError
        ):  # a date outside the years of Python, which only whole columns can have
            return table.scheme.partition_of({name: row.column(name)[0].as_py() for name in table.scheme.columns}), row
    # Looking at both ends first spares nearly all loads of many partitions from being split twice.
    ends = conform(pa.concat_tables([data.slice(0, 1), data.slice(data.num_rows - 1)]), table)
    parts = {} if len(split(ends, table)) > 1 else split(conform(data, table), table)
    return next(iter(parts.items())) if len(parts) == 1 else None


def _stage_and_publish(
    session: Session,
    table: TableDef,
    data: pa.Table | pa.RecordBatchReader,
    mode: LoadMode,
    progress: Progress | None,
    work: list[StageWork] | None,
) -> LoadResult:
    load_id = uuid.uuid4().hex
    partitions: set[int] = set()
    members: set[str] = set()
    try:
        _stage(session, table, data, load_id, partitions, members, progress, work)
    except _OUT_OF_REACH as error:
        _abort(session, load_id)
        if session.control is not None and session.control.error is error:
            raise
        raise LoadFailedError(
            f"the load into {table.name} was given up, the table is as it was: {error.message}", table=table.name
        ) from error
    except BaseException:
        _abort(session, load_id)
        raise
    if not partitions and mode is not LoadMode.OVERWRITE:
        return LoadResult(0, 0, 0)
    parts = {partition: [_ATTEMPT] for partition in sorted(partitions)}
    try:
        answer = session.ask(
            "load_publish",
            {"load_id": load_id, "table": table.name, "table_id": table.table_id, "mode": mode.value, "parts": parts},
        )
    except UnreachableError as error:  # so it was not sent
        raise LoadFailedError(
            f"the load into {table.name} could not be published, the table is as it was: {error.message}",
            table=table.name,
        ) from error
    except _OUT_OF_REACH as error:
        raise type(error)(
            f"the load into {table.name} was staged, but the answer to its publication was lost: look whether the rows"
            f" are there. {error.message}"
        ) from error
    except Error:
        _abort(session, load_id)
        raise
    if work is not None:
        work.extend(map(StageWork.from_wire, answer.header["work"]))
    return LoadResult(answer.header["rows"], len(members), len(partitions))


def _stage(
    session: Session,
    table: TableDef,
    data: pa.Table | pa.RecordBatchReader,
    load_id: str,
    partitions: set[int],
    members: set[str],
    progress: Progress | None,
    work: list[StageWork] | None,
) -> None:
    """Send all rows aside; notes the partitions and members that got any."""
    topology = session.topology
    topology.check_any()
    args = {"load_id": load_id, "table_id": table.table_id, "attempt": _ATTEMPT, "topology_version": topology.version}

    control = session.control

    def send(share: RoutedBatch) -> None:
        session.work_for(control)
        started_s = time.perf_counter()
        session.ask_member(share.member, "stage", {**args, "parts": share.parts}, encode_table(share.rows))
        if work is not None:
            work.append(_sent(table, share.member, len(share.parts), share.rows, started_s))

    sharing = OwnerRouting.of(table, topology)
    staged = 0
    with ThreadPoolExecutor(min(_SENDERS_MAX, len(topology.members)), thread_name_prefix="secateur-load") as senders:
        for rows in (rows for chunk in as_chunks(data) for rows in as_chunks(conform(chunk, table))):
            covered = with_ranges_for(session, table, rows)
            if covered is not table:
                table, sharing = covered, OwnerRouting.of(covered, session.topology)
            shares = list(sharing.shares(rows))
            topology.check_live([share.member for share in shares])
            for _ in senders.map(send, shares):
                pass
            members.update(share.member for share in shares)
            partitions.update(partition for share in shares for partition, _ in share.parts)
            staged += rows.num_rows
            if progress is not None:
                progress(staged)


def _abort(session: Session, load_id: str) -> None:
    """Drop what was staged.

    Members forget a load by themselves in time, so a controller that is out of reach is no reason to hide the first
    error.
    """
    before = session.work_for(None)  # also of a statement that was ended
    try:
        with suppress(Error):
            session.ask("load_abort", {"load_id": load_id})
    finally:
        session.work_for(before)
