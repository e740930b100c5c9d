"""Makes a copy the primary: it asks the other copies for the changes that it lacks, and then takes writes."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np

from secateur.cluster.loop_thread import BackgroundTasks
from secateur.cluster.member.replication.acknowledgements import Acknowledgements
from secateur.cluster.member.replication.received_changes import ReceivedChanges
from secateur.cluster.member.replication.replica import Replica, ReplicatedChange
from secateur.cluster.member.replication.replicas import CopyKey, Replicas
from secateur.cluster.member.replication.sent_changes import SentChanges
from secateur.cluster.peers import Peers
from secateur.errors import InterfaceError, OperationalError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.changes import GetCopyTails

_log = logging.getLogger(__name__)

_TAKE_OVER_S: Final = 10.0
_PAUSE_MIN_S: Final = 0.02
_PAUSE_MAX_S: Final = 0.5


class Takeovers:
    """Opens new primaries for writes. Lives on the member's event loop."""

    def __init__(
        self,
        replicas: Replicas,
        peers: Peers,
        acknowledgements: Acknowledgements,
        sent: SentChanges,
        received: ReceivedChanges,
        background: BackgroundTasks,
    ) -> None:
        self._replicas = replicas
        self._peers = peers
        self._acknowledgements = acknowledgements
        self._sent = sent
        self._received = received
        self._background = background

    def begin(self, table: TableDef, partitions: Sequence[int]) -> None:
        """This member is the primary of these partitions of a table from now on."""
        table_id, term = table.table_id, self._replicas.topology.version
        asking: defaultdict[str, list[int]] = defaultdict(list)
        if table.scheme.live_partition_count < table.partition_count:  # those of dropped ranges have owners still
            partitions = np.intersect1d(partitions, table.scheme.live_partitions(), assume_unique=True).tolist()
        for partition in partitions:
            key = (table_id, partition)
            replica = self._replicas.here(key)
            for member in replica.take_over(term, self._replicas.others(key)):
                asking[member].append(partition)
            if not replica.is_open and key not in self._replicas.opening:
                self._replicas.opening[key] = asyncio.Event()
            if replica.unsettled:
                self._acknowledgements.taken_over(key)
            self._sent.opened(key, replica)
        for member, asked in asking.items():
            self._background.start(self._ask(table_id, term, member, asked))

    async def wait(self, key: CopyKey) -> None:
        """Return once a copy does not take over any more; at once, if it does not.

        Raises:
            TopologyChangedError: The other copies do not say what they have.
        """
        event = self._replicas.opening.get(key)
        if event is None:
            return
        try:
            async with asyncio.timeout(_TAKE_OVER_S):
                await event.wait()
        except TimeoutError as error:
            replica = self._replicas.get(key)
            waits_for = " and ".join(replica.others) if replica is not None else "nobody"
            raise TopologyChangedError(
                f"{self._replicas.name(key)}: {self._replicas.member_id} takes over as the primary and has received"
                f" nothing from {waits_for} for {_TAKE_OVER_S:g} s; nothing was written, try again",
                topology_version=self._replicas.topology.version,
            ) from error

    async def wait_all(self, table_id: int) -> None:
        """Return once this member knows everything about the partitions of a table of which it has become the primary.

        Raises:
            TopologyChangedError: A copy does not say what it has.
        """
        for key in [key for key in self._replicas.opening if key[0] == table_id]:
            await self.wait(key)

    async def _ask(self, table_id: int, term: int, member: str, partitions: Sequence[int]) -> None:
        """Ask a copy which changes it has, until it answers or does not count any more."""
        pause_s = _PAUSE_MIN_S
        while True:
            asked = {
                partition: replica
                for partition in partitions
                if (replica := self._asked(table_id, partition, term, member)) is not None
            }
            if not asked:
                return
            known = [(partition, replica.last) for partition, replica in asked.items()]
            try:
                answer = await self._peers.call(member, GetCopyTails(table_id, term, known))
                tails = {
                    tail.partition: (
                        tail.last,
                        [
                            ReplicatedChange(*change, published=tail.published if number else tail.published_first)
                            for number, change in enumerate(tail.changes)
                        ],
                    )
                    for tail in answer.tails
                }
                await self._received.load_published(table_id, max((tail.published for tail in answer.tails), default=0))
            except Exception as error:  # a copy that nobody asks would keep the partition closed
                if not isinstance(error, (OperationalError, InterfaceError)):
                    _log.exception("%s did not say what it has of table %d", member, table_id)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _PAUSE_MAX_S)
                continue
            for partition, after in known:
                if self._asked(table_id, partition, term, member) is asked[partition]:
                    last, changes = tails.get(partition, (after, []))
                    await self._told((table_id, partition), asked[partition], member, last, changes)
            return

    async def _told(
        self, key: CopyKey, replica: Replica, member: str, last: int, changes: Sequence[ReplicatedChange]
    ) -> None:
        try:
            for change in replica.told(member, last, changes):
                self._received.make(key, replica, change)
        except Exception as error:
            await self._sent.count_out(key, self._replicas.member_id, f"{type(error).__name__}: {error}")
            return
        self._sent.opened(key, replica)

    def _asked(self, table_id: int, partition: int, term: int, member: str) -> Replica | None:
        """The copy here, when it still wants to know what another one has."""
        replica = self._replicas.get((table_id, partition))
        waits = replica is not None and replica.term == term and replica.waits_for(member)
        return replica if waits else None
