"""Bulk loads: rows go straight to the owners of their partitions, staged under a load id, and become visible at once or not at all.

A load that has a single partition, and does not replace the table, is one direct write to the primary instead: it is atomic by itself.
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

from secateur.client.arrow_data import as_chunks
from secateur.client.ranges_on_demand import with_ranges_for
from secateur.client.session import Session
from secateur.errors import DeadlineError, Error, LoadFailedError, MemberLostError, NoRangeError, ProgrammingError, TopologyChangedError, UnreachableError
from secateur.partitioning.conform import conform
from secateur.partitioning.sharing import Share, Sharing
from secateur.partitioning.split import split
from secateur.partitioning.table import TableDef
from secateur.wire import encode_table

__all__ = ["LoadMode", "Loaded", "Progress", "load_rows"]

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

    @classmethod
    def of(cls, text: str) -> LoadMode:
        """Read a mode.

        Raises:
            ProgrammingError: There is no such mode.
        """
        try:
            return cls(text)
        except ValueError as error:
            raise ProgrammingError(f"load mode {text!r} does not exist; use {', '.join(repr(mode.value) for mode in cls)}") from error


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load did.

    Attributes:
        rows: Rows that became visible.
        members: Members that this client sent rows to; backups get theirs from the primaries.
        partitions: Partitions that got rows.
    """

    rows: int
    members: int
    partitions: int


def load_rows(session: Session, table: TableDef, data: pa.Table | pa.RecordBatchReader, mode: LoadMode, *, progress: Progress | None = None) -> Loaded:
    """Load rows into a table: all of them, or none.

    When partitions move meanwhile, the load starts again with the new owners, for at most 10 s; a RecordBatchReader cannot be read twice, so there it fails.

    Args:
        session: Where.
        table: Its definition.
        data: Columns matched by name without regard to case, converted where that is exact; nullable columns may be missing.
        mode: What happens to the rows that are there.
        progress: Called after each chunk.

    Raises:
        DuplicateKeyError: An appended key is there already, or given twice.
        DataError: A value that its column cannot hold. NullKeyError, NoRangeError, UnknownColumnError likewise. All: nothing was loaded.
        LoadFailedError: A member could not be reached; nothing was loaded.
        OperationalError: The answer to the publication itself was lost: whether the rows are visible is unknown, and the message says so.
    """
    deadline_s = time.monotonic() + _RETRY_S
    while True:
        try:
            written = _write_directly(session, table, data, mode)
            return _stage_and_publish(session, table, data, mode, progress) if written is None else written
        except NoRangeError:
            # The range may have been added after the caller's definition of the table was fetched.
            newer = session.table(table.name)
            if not isinstance(data, pa.Table) or (newer.table_id, newer.version) == (table.table_id, table.version):
                raise
            table = newer
        except TopologyChangedError:
            if not isinstance(data, pa.Table) or time.monotonic() >= deadline_s:
                raise
            known = session.topology.version
            if session.refresh_topology().version == known:
                time.sleep(_PAUSE_S)
            table = session.table(table.name)


def _write_directly(session: Session, table: TableDef, data: pa.Table | pa.RecordBatchReader, mode: LoadMode) -> Loaded | None:
    """Write rows of a single partition with one frame to its primary; None when they are not such rows."""
    if mode is LoadMode.OVERWRITE or table.replicated or not isinstance(data, pa.Table) or data.nbytes > _WRITE_BYTES_MAX or data.num_rows > _WRITE_ROWS_MAX:
        return None
    if data.num_rows == 0:
        conform(data, table)
        return Loaded(0, 0, 0)
    if table.scheme.makes_ranges:
        data = conform(data, table)
        table = with_ranges_for(session, table, data)
    # Looking at both ends first spares nearly all loads of many partitions from being split twice.
    ends = conform(pa.concat_tables([data.slice(0, 1), data.slice(data.num_rows - 1)]), table)
    parts = {} if len(split(ends, table)) > 1 else split(conform(data, table), table)
    if len(parts) != 1:
        return None
    ((partition, rows),) = parts.items()
    topology = session.topology
    member = topology.ownership(table.scheme.affinity_group()).primary(partition)
    args = {"table_id": table.table_id, "partition": partition, "mode": mode.value, "topology_version": topology.version}
    try:
        answer = session.ask_member(member, "write", args, encode_table(rows))
    except UnreachableError as error:
        raise LoadFailedError(f"{table.name}: member {member} is out of reach, nothing was loaded: {error.message}", table=table.name, member=member) from error
    return Loaded(answer.header.get("rows", rows.num_rows), 1, 1)


def _stage_and_publish(session: Session, table: TableDef, data: pa.Table | pa.RecordBatchReader, mode: LoadMode, progress: Progress | None) -> Loaded:
    load_id = uuid.uuid4().hex
    partitions: set[int] = set()
    members: set[str] = set()
    try:
        _stage(session, table, data, load_id, partitions, members, progress)
    except _OUT_OF_REACH as error:
        _abort(session, load_id)
        raise LoadFailedError(f"the load into {table.name} was given up, the table is as it was: {error.message}", table=table.name) from error
    except BaseException:
        _abort(session, load_id)
        raise
    if not partitions and mode is not LoadMode.OVERWRITE:
        return Loaded(0, 0, 0)
    parts = {partition: [_ATTEMPT] for partition in sorted(partitions)}
    try:
        answer = session.ask("load_publish", {"load_id": load_id, "table": table.name, "table_id": table.table_id, "mode": mode.value, "parts": parts})
    except _OUT_OF_REACH as error:
        raise type(error)(
            f"the load into {table.name} was staged, but the answer to its publication was lost: look whether the rows are there. {error.message}"
        ) from error
    except Error:
        _abort(session, load_id)
        raise
    return Loaded(answer.header["rows"], len(members), len(partitions))


def _stage(
    session: Session, table: TableDef, data: pa.Table | pa.RecordBatchReader, load_id: str, partitions: set[int], members: set[str], progress: Progress | None
) -> None:
    """Send all rows aside; notes the partitions and members that got any."""
    topology = session.topology
    topology.check_any()
    args = {"load_id": load_id, "table_id": table.table_id, "attempt": _ATTEMPT, "topology_version": topology.version}

    def send(share: Share) -> None:
        session.ask_member(share.member, "stage", {**args, "parts": share.parts}, encode_table(share.rows))

    sharing = Sharing.of(table, topology)
    staged = 0
    with ThreadPoolExecutor(min(_SENDERS_MAX, len(topology.members)), thread_name_prefix="secateur-load") as senders:
        for rows in (rows for chunk in as_chunks(data) for rows in as_chunks(conform(chunk, table))):
            covered = with_ranges_for(session, table, rows)
            if covered is not table:
                table, sharing = covered, Sharing.of(covered, session.topology)
            shares = list(sharing.shares(rows))
            for _ in senders.map(send, shares):
                pass
            members.update(share.member for share in shares)
            partitions.update(partition for share in shares for partition, _ in share.parts)
            staged += rows.num_rows
            if progress is not None:
                progress(staged)


def _abort(session: Session, load_id: str) -> None:
    """Drop what was staged. Members forget a load by themselves in time, so a controller that is out of reach is no reason to hide the first error."""
    with suppress(Error):
        session.ask("load_abort", {"load_id": load_id})
