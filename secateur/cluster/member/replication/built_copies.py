"""Builds copies of partitions on this member, and gives other members what they need to build theirs.

The rows of a partition are fixed at the primary in one turn of its event loop, in which it also begins to send every
later change. They travel in pieces, one after the other, so that a copy takes a bounded share of both members.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import accumulate
from typing import Final, TypeAlias

import pyarrow as pa
from msgspec.structs import replace

from secateur.cluster.member.changes.writes import received_rows
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.replication.replication import Replication
from secateur.cluster.peers import Peers
from secateur.errors import TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.changes import RowCount
from secateur.protocol.copies import (
    BuildCopies,
    CountCopies,
    DropCopies,
    FetchCopy,
    ForgetCopies,
    OpenCopies,
    OpenedCopies,
    OpenedCopy,
    StagedPiece,
)
from secateur.protocol.message import Acknowledged
from secateur.storage.change import DuplicateKeys
from secateur.storage.change_feed import FeedEntry, feed_table
from secateur.storage.merge import sort_rows
from secateur.storage.snapshot import PartitionSnapshot
from secateur.wire import Payload, Reply, Request, encode_table

_PIECE_BYTES: Final = 8 << 20
_ROW_BYTES_MIN: Final = 8

_Fixed: TypeAlias = PartitionSnapshot | pa.Table | list[FeedEntry]
"""The rows of a partition, the staged rows of a load, or the changes of a change feed."""


class BuiltCopies:
    """Answers ``build_copies``, ``open_copies``, ``fetch_copy``, ``count_copies``, ``forget_copies``, ``drop_copies``.

    Lives on the member's event loop.

    Args:
        executor: Threads for sorting and for making bytes.
    """

    def __init__(self, storage: MemberStorage, peers: Peers, replication: Replication, executor: Executor) -> None:
        self._member_id = storage.member_id
        self._store = storage.store
        self._change_registry = storage.change_registry
        self._log = storage.log
        self._peers = peers
        self._replication = replication
        self._executor = executor
        self._fixed: dict[tuple[str, int], dict[FetchCopy, _Fixed]] = {}  # of a member and table, by what fetches it
        self._opened: dict[tuple[str, int], int] = {}  # of a member and table, the earliest attempt that may go on
        self._building: dict[tuple[int, int], int] = {}  # the attempt of a table and partition

    # -- at the primary

    async def open(self, request: Request[OpenCopies]) -> Reply[OpenedCopies]:
        """Fix the rows of partitions, and send the member that asks every later change.

        Raises:
            TopologyChangedError: This member is not the primary of one of them, or lacks its rows.
        """
        asked = request.message
        table_id = asked.table_id
        if asked.attempt < self._opened.get((asked.member, table_id), 0):
            raise self._outdated(asked.attempt)
        partitions = self._here(table_id, asked.partitions)  # of a table that was dropped nothing is kept
        self._opened[asked.member, table_id] = asked.attempt
        fixed = self._fixed[asked.member, table_id] = {}
        known = self._change_registry.of_partitions(table_id, frozenset(asked.partitions))
        copies, staged = [], []
        for partition in partitions:
            replica = await self._replication.learn(table_id, partition, asked.member)
            fetch = FetchCopy(table_id, partition, asked.member, 0)
            snapshot = fixed[fetch] = self._store.partition(table_id, partition).snapshot()
            changes = [(change_id, made.rows, made.sequence) for change_id, made in known.get(partition, ())]
            kept = [
                (change.sequence, change.change_id, change.operation, bytes(change.rows)) for change in replica.kept
            ]
            copies.append(
                OpenedCopy(partition, replica.term, replica.settled, replica.last, kept, changes, snapshot.rows)
            )
            feed = self._store.feed(table_id, partition)
            if feed is not None:
                fixed[replace(fetch, is_feed=True)] = feed.entries()
                copies[-1] = replace(copies[-1], feed_start=feed.start)
            for load_id, attempt, rows, are_keys in self._store.loads.staged(table_id, partition):
                fixed[replace(fetch, load_id=load_id, attempt=attempt)] = rows
                staged.append(StagedPiece(load_id, partition, attempt, are_keys, rows.num_rows))
        return Reply(OpenedCopies(self._store.data_version(table_id).published, copies, staged))

    async def fetch(self, request: Request[FetchCopy]) -> Reply[RowCount]:
        """Send a piece of the rows, or of the changes, that were fixed.

        Raises:
            TopologyChangedError: They are not fixed any more.
        """
        asked = request.message
        fixed = self._fixed.get((asked.member, asked.table_id), {})
        whole = replace(asked, start=0)
        if whole not in fixed:
            raise TopologyChangedError(
                f"{self._member_id} does not keep {'changes' if asked.is_feed else 'rows'} of partition"
                f" {asked.partition} for {asked.member} any more",
                table_id=asked.table_id,
            )
        schema = self._store.table(asked.table_id).arrow_schema
        piece, payload = await asyncio.get_running_loop().run_in_executor(
            self._executor, _piece, fixed[whole], asked.start, schema
        )
        if not piece:
            fixed.pop(whole, None)
        return Reply(RowCount(piece), payload)

    async def count(self, request: Request[CountCopies]) -> Reply[Acknowledged]:
        """Acknowledge no change from now on that the new copies of a member do not have.

        Raises:
            TopologyChangedError: They cannot be counted on, or this member lacks rows itself.
        """
        asked = request.message
        for table_id in asked.tables:
            if self._opened.get((asked.member, table_id)) != asked.attempt:
                raise self._outdated(asked.attempt)
            self._fixed.pop((asked.member, table_id), None)
            await self._replication.learners.count(table_id, self._here(table_id, asked.partitions), asked.member)
        return Reply(Acknowledged())

    def _here(self, table_id: int, partitions: Sequence[int]) -> list[int]:
        """The given partitions that can hold rows, ascending; partitions of dropped ranges are left out.

        Rows of a partition that the table has can be missing where a disk has lost what it said it had written. An
        empty copy would then replace one that has them, so nothing is built, and the copy of this member does not count
        any more if there is another one.

        Raises:
            UnknownTableError: The table is not here.
            TopologyChangedError: This member lacks the rows of one of them.
        """
        table = self._store.table(table_id)
        whole = set(self._store.hosted(table_id)).difference(self._store.arriving(table_id))
        live = [partition for partition in sorted(partitions) if table.scheme.is_live(partition)]
        for partition in live:
            if partition not in whole:
                self._replication.report_lacking(table_id, partition)
                raise TopologyChangedError(
                    f"{self._member_id} does not have the rows of partition {partition} of {table.name}: no copy can be"
                    " built from it",
                    table=table.name,
                    partition=partition,
                )
        return live

    def forget(self, request: Request[ForgetCopies]) -> Reply[Acknowledged]:
        """A member will not be an owner of partitions that it has been building copies of."""
        asked = request.message
        hosted = {table.table_id for table in self._store.tables()}
        for table_id in asked.tables:
            if self._opened.get((asked.member, table_id), 0) > asked.attempt:
                continue  # a later attempt goes on
            if table_id in hosted and self._replication.topology.has_member(asked.member):
                self._opened[asked.member, table_id] = asked.attempt + 1  # its OpenCopies may be on the way still
            self._fixed.pop((asked.member, table_id), None)
            self._replication.learners.uncount(table_id, asked.partitions, asked.member)
        return Reply(Acknowledged())

    def update(self, topology: Topology) -> None:
        """Take over a newer topology: rows are not kept for members that have left, nor by one that has itself."""
        is_member = topology.has_member(self._member_id)
        self._fixed = {key: fixed for key, fixed in self._fixed.items() if is_member and topology.has_member(key[0])}
        self._opened = {key: attempt for key, attempt in self._opened.items() if topology.has_member(key[0])}

    # -- at the new owner

    async def build(self, request: Request[BuildCopies]) -> Reply[Acknowledged]:
        """Have copies of partitions, which follow their primary from now on.

        Raises:
            Error: The rows could not be copied. What is here of them is not read, and is replaced by the next attempt.
        """
        asked = request.message
        for table_id in asked.tables:
            await self._build(table_id, asked)
        if self._log is not None:  # nobody counts on a copy that a restart would not find
            await self._log.flushed()
        return Reply(Acknowledged())

    async def _build(self, table_id: int, asked: BuildCopies) -> None:
        partitions, source, attempt = asked.partitions, asked.source, asked.attempt
        layouts = {}
        for partition in partitions:
            if attempt < self._building.get((table_id, partition), 0):
                raise self._outdated(attempt)
            layouts[partition] = self._store.begin_copy(table_id, partition)
            self._building[table_id, partition] = attempt
            self._replication.received.expect(table_id, partition)
        opened = await self._peers.call(source, OpenCopies(table_id, list(partitions), self._member_id, attempt))
        self._check_attempt(table_id, partitions, attempt)
        published = self._store.data_version(table_id).published
        if opened.published != published:
            raise TopologyChangedError(
                f"table {table_id} has publication {opened.published} on {source}, and {published} on"
                f" {self._member_id}: a load is being published",
                table_id=table_id,
            )
        scheme = self._store.table(table_id).scheme
        for partition in set(partitions).difference(copy.partition for copy in opened.copies):
            if scheme.is_live(partition):
                raise TopologyChangedError(
                    f"partition {partition} of table {table_id} is of a range that {source} has dropped, and"
                    f" {self._member_id} has it still: the ranges are being changed",
                    table_id=table_id,
                )
            self._drop(table_id, partition, attempt)
        for copy in opened.copies:
            self._replication.received.begin_at(table_id, copy)
        for copy in opened.copies:
            fetch = FetchCopy(table_id, copy.partition, self._member_id, 0)
            pieces = await self._fetched(fetch, source)
            layout = layouts[copy.partition]
            rows = await asyncio.get_running_loop().run_in_executor(
                self._executor, sort_rows, layout, pieces, DuplicateKeys.REFUSED
            )
            self._check_attempt(table_id, [copy.partition], attempt)
            if rows.rows != copy.rows:
                raise TopologyChangedError(
                    f"partition {copy.partition} of table {table_id} has {copy.rows} rows on {source}, and {rows.rows}"
                    " have arrived",
                    table_id=table_id,
                )
            changes = []
            if copy.feed_start is not None:
                changes = await self._fetched(replace(fetch, is_feed=True), source)
            self._check_attempt(table_id, [copy.partition], attempt)
            self._store.install_copy(table_id, copy.partition, rows)
            feed = self._store.feed(table_id, copy.partition)
            if feed is not None:
                feed.receive(opened.published + copy.last if copy.feed_start is None else copy.feed_start, changes)
            self._replication.received.arrived(table_id, copy.partition)
        for piece in opened.staged:
            ended = self._store.loads.outcome(piece.load_id)
            if ended is not None and not ended.published:
                continue  # it was aborted here, and the other member did not hear of it
            staged = FetchCopy(table_id, piece.partition, self._member_id, 0, piece.load_id, piece.attempt)
            pieces = await self._fetched(staged, source)
            self._check_attempt(table_id, [piece.partition], attempt)
            for rows_staged in pieces:
                self._store.loads.stage(
                    piece.load_id, table_id, piece.partition, piece.attempt, rows_staged, keys=piece.are_keys
                )

    def drop(self, request: Request[DropCopies]) -> Reply[Acknowledged]:
        """Forget the rows of partitions that this member does not own."""
        asked = request.message
        for table_id in asked.tables:
            for partition in asked.partitions:
                self._drop(table_id, partition, asked.attempt)
        return Reply(Acknowledged())

    def give_up(self, table_id: int) -> None:
        """Forget the partitions whose rows were on their way when this member left: nobody sends them now."""
        for partition in self._store.arriving(table_id):
            self._drop(table_id, partition, self._building.get((table_id, partition), 0))
            self._replication.received.forget((table_id, partition))  # also one that it owns, and has lost
            self._store.drop_partition(table_id, partition)

    def drop_outdated(self, table_id: int) -> None:
        """Forget the rows of all partitions that this member does not own, and give up those that are on their way."""
        for partition in self._store.hosted(table_id):
            self._drop(table_id, partition, self._building.get((table_id, partition), 0))

    def forget_table(self, table_id: int) -> None:
        """A table was dropped: attempts to build copies of it end, and nothing is sent any more."""
        self._fixed = {key: fixed for key, fixed in self._fixed.items() if key[1] != table_id}
        self._opened = {key: attempt for key, attempt in self._opened.items() if key[1] != table_id}
        self._building = {key: attempt for key, attempt in self._building.items() if key[0] != table_id}

    def forget_dropped_ranges(self, table: TableDef) -> None:
        """A table has these ranges now: attempts to build copies of the partitions of others end."""
        if table.scheme.live_partition_count < table.partition_count:
            live = frozenset(table.scheme.live_ids())
            self._building = {
                key: attempt for key, attempt in self._building.items() if key[0] != table.table_id or key[1] in live
            }

    def forget_outdated(self) -> None:
        """Send nothing more to members that build copies: the controller that had asked them to is gone."""
        self._fixed.clear()
        self._replication.learners.forget_all()

    def _drop(self, table_id: int, partition: int, attempt: int) -> None:
        is_later = self._building.get((table_id, partition), 0) > attempt
        if not is_later and self._replication.drop_copy(table_id, partition):
            self._building.pop((table_id, partition), None)
            self._store.drop_partition(table_id, partition)

    def _check_attempt(self, table_id: int, partitions: Sequence[int], attempt: int) -> None:
        """End an attempt that another one has replaced, or that was given up, while it waited.

        Raises:
            TopologyChangedError: It has to end.
        """
        if any(self._building.get((table_id, partition)) != attempt for partition in partitions):
            raise self._outdated(attempt)

    def _outdated(self, attempt: int) -> TopologyChangedError:
        return TopologyChangedError(f"{self._member_id}: attempt {attempt} to build copies was given up")

    async def _fetched(self, asked: FetchCopy, source: str) -> list[pa.Table]:
        """Fetch all rows, piece by piece."""
        pieces: list[pa.Table] = []
        start = 0
        while True:
            answer = await self._peers.ask(source, replace(asked, start=start))
            if not answer.message.rows:
                return pieces
            pieces.append(await received_rows(answer.payload))
            start += answer.message.rows


def _piece(fixed: _Fixed, start: int, schema: pa.Schema) -> tuple[int, Payload]:
    """A number of rows, or of whole changes, from one on, and their bytes. Runs in a thread.

    Args:
        fixed: What was fixed.
        start: The first one.
        schema: The columns of the table.
    """
    if isinstance(fixed, list):
        sizes = list(accumulate(entry.nbytes for entry in fixed[start:]))
        entries = fixed[start : start + max(1, bisect_right(sizes, _PIECE_BYTES))]
        return len(entries), encode_table(feed_table(schema, entries)) if entries else b""
    table: pa.Table = fixed.fold().table if isinstance(fixed, PartitionSnapshot) else fixed
    width = max(_ROW_BYTES_MIN, table.nbytes // max(1, table.num_rows))
    piece = table.slice(start, max(1, _PIECE_BYTES // width))
    return piece.num_rows, encode_table(piece) if piece.num_rows else b""
