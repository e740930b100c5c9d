"""Direct writes on a member, and the copies on the backups.

A write goes to the primary of its partition; the primary applies it and sends it to the backups of that partition; it
is acknowledged when all have it (:mod:`secateur.cluster.member.replication.replication`).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa

from secateur.cluster.member.changes.change_registry import RecordedChange
from secateur.cluster.member.member_log import MemberLog
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.replication.replication import Replication
from secateur.errors import Error, ProtocolError
from secateur.protocol.changes import ChangedRows, RowCount, WriteRows
from secateur.protocol.many import ChangedMany, WriteMany
from secateur.storage.block import gather
from secateur.storage.change import ChangeOperation, change_operation
from secateur.storage.delta import FewRows
from secateur.wire import (
    SHORT_ROWS_MAX,
    Handled,
    Reply,
    Request,
    ShortTable,
    decode_rows,
    decode_table,
    has_few_rows,
    shorten,
    travels_short,
)

T = TypeVar("T")

_INLINE_BYTES_MAX: Final = 1 << 20
"""Texts of so many bytes are checked in about 200 us, as long as a thread takes to wake up."""
_OWN_BYTES_MAX: Final = 4096
"""So few bytes are copied out of what was received with them: rows that are kept as they came keep no more alive."""
_SHARED_BYTES_MAX: Final = 1 << 20
"""A frame of more bytes does not wait as a whole until the last of its partitions is sorted. Copying takes about a
millisecond for each MiB, which the rows of a statement do not pay.
"""
_PER_TURN: Final = 32
"""Changes of few rows, or executions, in one turn of the loop, before it reads other frames: about two milliseconds."""

Made: TypeAlias = (
    Reply[ChangedRows] | asyncio.Future[Reply[ChangedRows]] | Reply[RowCount] | asyncio.Future[Reply[RowCount]]
)
"""The answer of a change that was made: a reply, or a future that ends once all copies have the change."""


async def received_rows(payload: memoryview) -> pa.Table:
    """The rows of a request. The caller has checked that they belong here.

    Raises:
        ProtocolError, LimitExceededError: As :func:`~secateur.wire.decode_table`.
    """
    if len(payload) <= _OWN_BYTES_MAX:
        return decode_table(bytes(payload))
    if len(payload) <= _INLINE_BYTES_MAX:
        return decode_table(payload)
    return await asyncio.to_thread(decode_table, payload)


async def pieces_to_keep(rows: pa.Table, parts: Sequence[Sequence[int]]) -> dict[int, pa.Table]:
    """The rows of each partition, of a frame whose rows will wait for the publication of a load.

    Those of a large frame are copied: as slices of the frame, the rows of its last partition would keep all of them.

    Args:
        rows: The rows of the frame.
        parts: Each partition with its number of rows, in their order.
    """
    pieces = dict(_slices(rows, parts))
    if len(pieces) == 1 or rows.get_total_buffer_size() <= _SHARED_BYTES_MAX:
        return pieces
    return await asyncio.to_thread(
        lambda: {partition: gather([piece], at_rest=True) for partition, piece in pieces.items()}
    )


def _slices(rows: pa.Table, parts: Sequence[Sequence[int]]) -> Iterable[tuple[int, pa.Table]]:
    start = 0
    for partition, count in parts:
        yield partition, rows.slice(start, count)
        start += count


class MemberWrites:
    """Answers ``write_rows`` and ``write_many`` requests. Lives on the member's event loop.

    Attributes:
        together: That of the replication.
    """

    def __init__(self, storage: MemberStorage, replication: Replication) -> None:
        self._log = storage.log
        self._hot_keys = storage.hot_keys
        self._store = storage.store
        self._places = storage.places
        self._change_registry = storage.change_registry
        self._memory = storage.memory
        self._replication = replication
        self.together = replication.together

    def write(self, request: Request[WriteRows]) -> Handled:
        """Write rows of one partition, visible at once.

        Under a ``change_id`` that was used before nothing is written again. A few rows are written in this turn of the
        loop, if nothing has to be waited for.

        Raises:
            TopologyChangedError: This member is not the primary; nothing was written.
            DuplicateKeyError: An appended key is already there; nothing was written.
            MemberLostError: The rows are visible here, but a backup that the cluster counts on has not confirmed them.
        """
        asked, payload = request.message, request.payload
        change_id = asked.change_id or uuid.uuid4().hex
        written = self.written_now(asked.table_id, asked.partition, asked.mode, change_id, payload)
        return self._write_later(request, change_id) if written is None else written

    def written_now(
        self, table_id: int, partition: int, mode: str, change_id: str, payload: bytes | memoryview
    ) -> Reply[RowCount] | asyncio.Future[Reply[RowCount]] | None:
        """Write a few rows of one partition in this turn of the loop; None if that takes longer, and nothing was done.

        Raises:
            Error: As :meth:`write`; nothing was written.
        """
        self._places.check_primary(table_id, partition)  # nobody else's rows are worth unpacking
        operation = change_operation(mode)
        table = self._places.table(table_id)
        if table.replicated:
            raise ProtocolError(f"{table.name} is replicated: its rows are staged and published on all members at once")
        if not has_few_rows(payload) or not self.is_made_now(table_id, partition, change_id):
            return None
        made, _ = self.make(table_id, partition, operation, decode_rows(payload), change_id, payload)
        return self.made_now(table_id, partition, change_id, made, Reply(RowCount(made.rows)))

    async def write_many(self, request: Request[WriteMany]) -> Reply[ChangedMany]:
        """Make the first writes of a frame, as many as take no waiting, and answer when all copies have them.

        Each is what it would be in a frame of its own: rows of one partition, visible at once, under an id of its own.
        The first that cannot be made without waiting ends the answer, and its client makes it and those behind it
        otherwise.
        """
        asked = request.message

        def make(number: int) -> Made | None:
            partition, rows = asked.writes[number]
            return self.written_now(asked.table_id, partition, asked.mode, asked.id_of(number), rows)

        return Reply(await confirmed(await made_in_turns(len(asked.writes), make, self.together)))

    async def _write_later(self, request: Request[WriteRows], change_id: str) -> Reply[RowCount]:
        table_id, partition, payload = request.message.table_id, request.message.partition, request.payload
        operation = change_operation(request.message.mode)
        rows = decode_rows(payload) if has_few_rows(payload) else await received_rows(payload)

        async def make() -> RecordedChange:
            return self.apply(table_id, partition, operation, rows, change_id, payload)[0]

        return Reply(RowCount(await self.write_once(table_id, partition, change_id, make)))

    def is_made_now(self, table_id: int, partition: int, change_id: str) -> bool:
        """Whether a change of a partition can be made in this turn of the loop, as :meth:`write_once` would make it.

        The caller has just found that this member owns the partition. Costs a microsecond.
        """
        return (
            (self._log is None or not self._log.is_broken)
            and self._replication.is_ready(table_id, partition)
            and self._change_registry.is_new((table_id, partition, change_id))
        )

    def made_now(
        self, table_id: int, partition: int, change_id: str, made: RecordedChange, reply: Reply[Any]
    ) -> Reply[Any] | asyncio.Future[Reply[Any]]:
        """A change was made in this turn of the loop; returns what answers it when all copies have it.

        Args:
            table_id: The table.
            partition: The partition.
            change_id: The id of the change.
            made: The change.
            reply: The answer.

        Raises:
            MemberLostError: From what is returned, as :meth:`write_once`.
        """
        self._change_registry.note((table_id, partition, change_id), made)
        # What has changed nothing has still read the changes before it.
        sequence = made.sequence or self._replication.last(table_id, partition)
        waiting = self._replication.acknowledgements.settling((table_id, partition), sequence, reply)
        if self._log is not None and self._log.unsynced:
            waiting = asyncio.ensure_future(self._on_disk(self._log, (table_id, partition), waiting, reply))
        if waiting is None:
            return reply
        latch = self._places.latch(table_id)
        latch.begin()
        waiting.add_done_callback(latch.end)
        return waiting

    async def _on_disk(
        self, log: MemberLog, key: tuple[int, int], waiting: asyncio.Future[Any] | None, reply: Reply[Any]
    ) -> Reply[Any]:
        if waiting is not None:
            await waiting
        await log.durable()
        self._replication.acknowledgements.is_acknowledged(key)
        return reply

    async def write_once(
        self, table_id: int, partition: int, change_id: str, make: Callable[[], Awaitable[RecordedChange]]
    ) -> int:
        """Make a change at this primary while no load is being published, unless it was made before.

        Returns the number of rows changed, once all copies have them.

        Raises:
            TopologyChangedError: This member is not the primary, or has not yet taken over from the one before; nothing
                was written.
            LoadFailedError: A load has been between prepare and publish for too long; nothing was written.
            MemberLostError: The rows are visible here, but a backup that the cluster counts on has not confirmed them.
            DiskError: The disk refuses to write; the message says whether anything was written.
            Error: As ``make``; nothing was written.
        """
        self._places.place(table_id)
        if self._log is not None:
            self._log.check()
        await self._replication.primary(table_id, partition)
        latch = self._places.latch(table_id)
        latch.begin()
        try:
            key = (table_id, partition, change_id)
            made = self._change_registry.made(key)
            is_known = made is not None
            if made is None:
                made = await self._change_registry.once(key, make)
            # What has changed nothing has still read the changes before it.
            sequence = made.sequence or self._replication.last(table_id, partition)
            await self._replication.acknowledgements.settled(table_id, partition, sequence, is_known=is_known)
            if self._log is not None:
                await self._log.durable()
                self._replication.acknowledgements.is_acknowledged((table_id, partition))
        finally:
            latch.end()
        return made.rows

    def apply(
        self,
        table_id: int,
        partition: int,
        operation: ChangeOperation,
        rows: pa.Table | ShortTable | FewRows,
        change_id: str,
        payload: bytes | memoryview | None = None,
    ) -> tuple[RecordedChange, int]:
        """Change a partition of which this member is the primary, inside :meth:`write_once`, and its backups.

        Args:
            table_id: The table.
            partition: The partition that all rows belong to.
            operation: The change to make.
            rows: Complete rows, or keys for a deletion, as :meth:`~secateur.storage.partition.Partition.apply` takes
                them.
            change_id: The id of the change.
            payload: The rows as bytes, when there are any already.

        Returns:
            The applied change, and the bytes that are sent to other copies.

        Raises:
            TopologyChangedError: This member is not the primary; nothing was written. The owners may have changed since
                the sender read the topology.
            LimitExceededError: There is no memory for the rows; nothing was written. Deletions are never refused.
            Error: As ``Partition.apply``; nothing was written.
        """
        self._places.check_primary(table_id, partition)
        if payload is None and operation is not ChangeOperation.DELETE:
            rows = self._as_values(table_id, rows)
        if rows.num_rows:
            self._replication.check_primary(table_id, partition)
        return self.make(table_id, partition, operation, rows, change_id, payload)

    def make(
        self,
        table_id: int,
        partition: int,
        operation: ChangeOperation,
        rows: pa.Table | ShortTable | FewRows,
        change_id: str,
        payload: bytes | memoryview | None = None,
    ) -> tuple[RecordedChange, int]:
        """As :meth:`apply`, in the turn of the loop in which :meth:`is_made_now` has said that it can be made."""
        table, hosted = self._store.place(table_id, partition)
        if isinstance(rows, ShortTable):
            rows = hosted.admit(operation, rows)
        if not rows.num_rows:
            return RecordedChange(hosted.apply(operation, rows), 0), 0
        if operation is not ChangeOperation.DELETE:
            self._memory.write(_size(rows), f"the write to {table.layout.tdef.name}")
        written = hosted.apply(operation, rows)
        hot_keys = self._hot_keys
        hot_keys.left -= 1
        if not hot_keys.left:
            hot_keys.note_rows(table.layout.tdef, rows)
        key = (table_id, partition)
        sequence, sent_bytes = self._replication.made(key, table, operation, change_id, rows, payload, written)
        return RecordedChange(written, sequence), sent_bytes

    def _as_values(self, table_id: int, rows: pa.Table | ShortTable | FewRows) -> pa.Table | ShortTable | FewRows:
        """A few rows that were computed here, in the form that costs the copies least."""
        if isinstance(rows, (ShortTable, FewRows)) or rows.num_rows > SHORT_ROWS_MAX:
            return rows
        types = [column.type for column in self._places.table(table_id).columns]
        if not travels_short(types):
            return rows
        return shorten(rows.columns, types, rows.num_rows) or rows


def _size(rows: pa.Table | FewRows) -> int:
    """The bytes that rows take, about: the exact size of a slice takes longer."""
    size: int = rows.get_total_buffer_size() if isinstance(rows, pa.Table) and rows.num_rows == 1 else rows.nbytes
    return size


async def made_in_turns(
    count: int, make: Callable[[int], T | None], together: Callable[[], AbstractContextManager[None]]
) -> list[T]:
    """Make the first changes or executions of a frame, some in each turn of the event loop; returns what ``make`` does.

    Args:
        count: How many the frame has.
        make: Makes the one with a number; returns None where that takes waiting, and raises an Error where it cannot be
            made: this one and those behind it are left to requests of their own, which say so and may be repeated.
        together: Sends the changes of one turn to their copies.
    """
    made: list[T] = []
    while len(made) < count:
        if made:
            await asyncio.sleep(0)
        with together():
            for number in range(len(made), min(len(made) + _PER_TURN, count)):
                try:
                    answer = make(number)
                except Error:
                    return made
                if answer is None:
                    return made
                made.append(answer)
    return made


async def confirmed(made: Sequence[Made]) -> ChangedMany:
    """Answer for changes in their order, once all copies have them or are not waited for any longer."""
    rows: list[int] = []
    for number, answer in enumerate(made):  # most are done as soon as the first one is: one message has them all
        if isinstance(answer, Reply):
            reply: Reply[Any] | None = answer
        else:
            if not answer.done():
                await asyncio.wait((answer,))
            reply = None if answer.exception() is not None else answer.result()
        if reply is not None and len(rows) == number:
            rows.append(reply.message.rows)
    return ChangedMany(rows, len(made) - len(rows))
