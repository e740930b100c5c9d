"""Loads on a member: rows are staged here and on backups, then prepared and published in two phases.

The controller runs the phases on all members.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import Final

import pyarrow as pa

from secateur.cluster.member.admission.memory_admission import STAGED_FACTOR
from secateur.cluster.member.changes.writes import pieces_to_keep, received_rows
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.replication.replication import Replication
from secateur.cluster.peers import Peers
from secateur.cluster.termination_protocol import LoadProgress
from secateur.cluster.write_latch import LoadLeases
from secateur.errors import ProtocolError
from secateur.protocol import changes
from secateur.protocol.message import Acknowledged
from secateur.storage.block import message_bytes
from secateur.storage.change import ChangeOperation
from secateur.storage.load import Preparation
from secateur.wire import PeerInfo, Reply, Request, encode_table

_MERGE_NOTHING: Final = (ChangeOperation.OVERWRITE, ChangeOperation.OVERWRITE_RANGES, ChangeOperation.DELETE)


class MemberLoads:
    """Answers ``stage_rows``, ``stage_copy``, ``prepare_load``, ``publish_prepared_load`` and ``abort_staged_load``.

    And ``close_for_change``, which comes before changes that one member works out. Lives on the member's event loop.

    Args:
        executor: Threads for sorting and merging.
        abandoned_after_s: Seconds without a row after which a load that is not being published is dropped.
    """

    def __init__(
        self,
        storage: MemberStorage,
        peers: Peers,
        replication: Replication,
        leases: LoadLeases,
        executor: Executor,
        *,
        abandoned_after_s: float = math.inf,
    ) -> None:
        self._abandoned_after_s = abandoned_after_s
        self._log = storage.log
        self._store = storage.store
        self._places = storage.places
        self._memory = storage.memory
        self._peers = peers
        self._replication = replication
        self._executor = executor
        self._leases = leases

    async def stage(self, request: Request[changes.StageRows]) -> Reply[changes.RowCount]:
        """Keep rows of a load aside, here and on the backups.

        Raises:
            TopologyChangedError: This member is not the primary of a partition; nothing was staged.
        """
        asked = request.message
        self._places.backups(
            asked.table_id, [partition for partition, _ in asked.parts]
        )  # nobody else's rows are worth unpacking
        return await self.stage_rows(asked, await received_rows(request.payload))

    async def stage_copy(self, request: Request[changes.StageCopy]) -> Reply[changes.RowCount]:
        """Keep aside here what another member keeps aside, which has it from a client or has found it."""
        return await self.stage_rows(request.message, await received_rows(request.payload))

    async def stage_rows(self, asked: changes.StageRows, rows: pa.Table) -> Reply[changes.RowCount]:
        """Stage rows as :meth:`stage` or :meth:`stage_copy` does, if this member has them already."""
        table_id, parts = asked.table_id, asked.parts
        if sum(count for _, count in parts) != rows.num_rows:
            raise ProtocolError(
                f"stage: the parts name {sum(count for _, count in parts)} rows, the payload has {rows.num_rows}"
            )
        pieces = await pieces_to_keep(rows, parts)
        copies = {} if isinstance(asked, changes.StageCopy) else self._copies_of(table_id, pieces)
        await self.stage_pieces(asked.load_id, table_id, asked.attempt, pieces, copies, keys=asked.are_keys)
        return Reply(changes.RowCount(rows.num_rows))

    def _copies_of(self, table_id: int, partitions: Iterable[int]) -> dict[str, list[int]]:
        """The partitions by the other members that have copies of them, or are building them."""
        copies = self._places.backups(table_id, partitions)
        for member, building in self._replication.learners.of(table_id, partitions).items():
            copies[member] = sorted({*copies.get(member, ()), *building})
        return copies

    async def stage_pieces(
        self,
        load_id: str,
        table_id: int,
        attempt: int,
        pieces: Mapping[int, pa.Table],
        copies: Mapping[str, Sequence[int]],
        *,
        keys: bool,
    ) -> int:
        """Keep rows of a load aside by partition, here and on other members.

        Args:
            load_id: The load.
            table_id: Its table.
            attempt: The number of the attempt that brings the rows.
            pieces: The rows by partition.
            copies: The partitions that other members keep copies of, by member; those without rows do not matter.
            keys: Whether the rows are keys, for a deletion.

        Returns:
            Bytes sent to other members.

        Raises:
            LimitExceededError: There is no memory for the rows.
            Error: As ``StoreLoads.stage``.
        """
        if not keys:
            staged = sum(message_bytes(piece) for piece in pieces.values())
            self._memory.check(STAGED_FACTOR * staged, f"staging rows for {self._places.table(table_id).name}")
        for partition, piece in pieces.items():
            self._store.loads.stage(load_id, table_id, partition, attempt, piece, keys=keys)
        sends, sent_bytes = [], 0
        for member, partitions in copies.items():
            copied = [(partition, pieces[partition]) for partition in partitions if partition in pieces]
            if copied:
                parts = [(partition, piece.num_rows) for partition, piece in copied]
                payload = encode_table(pa.concat_tables([piece for _, piece in copied]))
                sent_bytes += len(payload)
                sends.append(
                    self._peers.call(member, changes.StageCopy(load_id, table_id, attempt, parts, keys), payload)
                )
        await asyncio.gather(*sends)
        return sent_bytes

    @asynccontextmanager
    async def closed_unless_failed(self, load_id: str, table_id: int, peer: PeerInfo) -> AsyncIterator[None]:
        """Close the table's latch while rows of this member's partitions are read and staged.

        Other writes wait until the load is published or aborted, or this fails.
        """
        self._places.place(table_id)
        try:
            await self._leases.close(load_id, table_id, self._places.latch(table_id), peer.connection_id)
            await self._replication.takeovers.wait_all(table_id)
            yield
        except BaseException:
            self._leases.release(load_id)
            raise

    async def close(self, request: Request[changes.CloseForChange]) -> Reply[changes.TableUse]:
        """Let no other write to a table in until the load is published or aborted, and tell whether there was one."""
        asked = request.message
        async with self.closed_unless_failed(asked.load_id, asked.table_id, request.peer):
            return Reply(changes.TableUse(self._is_unused(asked.table_id)))

    def _is_unused(self, table_id: int) -> bool:
        """Whether a table never got a row, by the numbers of loads and changes, which copies that moved have too."""
        return (
            not self._store.data_version(table_id).published
            and all(load.table_id != table_id for load in self._store.loads.registry.all())
            and not any(self._replication.last(table_id, partition) for partition in self._store.hosted(table_id))
        )

    async def prepare(self, request: Request[changes.PrepareLoad]) -> Reply[changes.PreparedRows]:
        """First phase of publishing a load; see :mod:`secateur.cluster.controller.loads`.

        Sorting and merging happen in a thread.

        Writes go on while it is computed. Only when it is there they are held up; where they have changed a partition
        meanwhile, it is computed again.
        """
        asked = request.message
        load_id, table_id = asked.load_id, asked.table_id
        preparation = await self._computed(asked)
        async with self.closed_unless_failed(load_id, table_id, request.peer):
            if not self._store.loads.is_current(preparation):
                preparation = await self._computed(asked)
            if self._log is not None:
                self._log.check()
            rows = self._store.loads.finish_prepare(preparation)
            await self._flushed()
        prepared = preparation.prepared or []
        rows_counted = sum(part.changed for part in prepared if part.partition in asked.counted)
        rows_removed = sum(part.removed.rows for part in prepared if part.removed is not None)
        return Reply(changes.PreparedRows(rows, rows_counted, rows_removed, self._store.loads.registry.age_s(load_id)))

    async def _computed(self, asked: changes.PrepareLoad) -> Preparation:
        if asked.mode not in _MERGE_NOTHING:
            # Merging makes a copy of each partition that gets rows; the old one stays until the publication.
            merged = self._store.bytes_of(asked.table_id, (partition for partition, _ in asked.parts))
            self._memory.check(merged, f"merging rows into {self._places.table(asked.table_id).name}")
        preparation = self._store.loads.begin_prepare(asked.load_id, asked.table_id, asked.mode, dict(asked.parts))
        while await asyncio.get_running_loop().run_in_executor(self._executor, preparation.run_step):
            self._store.loads.keep_sorted(preparation)
        return preparation

    async def publish(self, request: Request[changes.PublishPreparedLoad]) -> Reply[Acknowledged]:
        """Second phase of publishing a load: make it visible."""
        asked = request.message
        await self._leases.decided(asked.load_id)
        try:
            self._store.loads.publish(asked.load_id, asked.number, asked.rows)
        finally:
            # Also when the table was dropped meanwhile: its writes wait here, and shall learn of it.
            self._leases.release(asked.load_id)
        await self._flushed()
        return Reply(Acknowledged())

    def last_publication(self, request: Request[changes.GetPublication]) -> Reply[changes.PublicationNumber]:
        """The number of the last load of a table that was published here."""
        return Reply(changes.PublicationNumber(self._store.data_version(request.message.table_id).published))

    async def _flushed(self) -> None:
        """Return when all records are on disk: a member that is recovered must know which loads may be published."""
        if self._log is not None:
            await self._log.flushed()

    async def abort(self, request: Request[changes.AbortStagedLoad]) -> Reply[changes.LoadDropped]:
        """Drop a load."""
        dropped = self._store.loads.abort(request.message.load_id)
        self._leases.release(request.message.load_id)
        return Reply(changes.LoadDropped(dropped))

    async def outcome(self, request: Request[changes.GetLoadOutcome]) -> Reply[changes.LoadOutcomeAnswer]:
        """Tell the outcome of a load on this member. A load that is not prepared is aborted by the question."""
        load_id = request.message.load_id
        found = self._leases.asked(load_id)
        await self._flushed()
        is_published, is_in_doubt = found.standing == LoadProgress.PUBLISHED, found.standing == LoadProgress.PREPARED
        return Reply(changes.LoadOutcomeAnswer(is_published, is_in_doubt, found.rows))

    def under_way(self, _: Request[changes.GetStagedLoads]) -> Reply[changes.StagedLoads]:
        """The loads that are neither published nor dropped here."""
        registry = self._store.loads.registry
        return Reply(
            changes.StagedLoads(
                [
                    changes.StagedLoadEntry(
                        load.load_id,
                        load.table_id,
                        load.operation is not None,
                        registry.age_s(load.load_id),
                        sorted(load.partition_rows.items()),
                    )
                    for load in registry.all()
                ]
            )
        )

    def drop_abandoned(self) -> None:
        """Forget loads whose client has gone without a word, so that their rows do not stay for ever."""
        for load_id in self._store.loads.registry.idle(self._abandoned_after_s):
            if not self._leases.holds(load_id):
                self._store.loads.abort(load_id)
