"""Copies that are built while others write: their members get every change, and writes wait for them in the end."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from secateur.cluster.member.replication.replicas import CopyKey, Replicas
from secateur.cluster.member.replication.sent_changes import SentChanges
from secateur.errors import TopologyChangedError
from secateur.storage.read_lease import lease_clock_s

_COUNTED_S: Final = 10.0
_LEVEL_PAUSE_S: Final = 0.002


class Learners:
    """The members that learn partitions of which this one is the primary. Lives on the member's event loop.

    Args:
        replicas: The copies here.
        sent: Sends them the changes.
    """

    def __init__(self, replicas: Replicas, sent: SentChanges) -> None:
        self._replicas = replicas
        self._sent = sent

    def of(self, table_id: int, partitions: Iterable[int]) -> dict[str, list[int]]:
        """The partitions by the members that are building copies of them, also those that writes wait for already."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for partition in partitions:
            key = (table_id, partition)
            replica = self._replicas.get(key)
            if replica is not None:
                for member in replica.receivers:
                    if replica.is_learner(member) or (key, member) in self._replicas.counted:
                        found[member].append(partition)
        return found

    async def count(self, table_id: int, partitions: Iterable[int], member: str) -> None:
        """Return when every change to these partitions waits for a member that has built copies of them.

        Raises:
            TopologyChangedError: It is not building one of them here, or has not caught up.
        """
        deadline_s = lease_clock_s() + _COUNTED_S
        for partition in partitions:
            key = (table_id, partition)
            while (replica := self._replicas.get(key)) is not None and replica.takes_writes:
                if replica.is_level(member):
                    replica.count(member)
                    self._replicas.counted.add((key, member))
                    break
                if (key, member) in self._replicas.counted:
                    break
                if not replica.is_learner(member) or lease_clock_s() > deadline_s:
                    raise self._not_counted(key, member)
                await asyncio.sleep(_LEVEL_PAUSE_S)
            else:
                raise self._not_counted(key, member)

    def forget_all(self) -> None:
        """No member that has been building copies will be an owner, unless it is one already."""
        for (table_id, partition), replica in list(self._replicas.items()):
            for member in replica.receivers:
                self._sent.uncount(table_id, (partition,), member)

    def uncount(self, table_id: int, partitions: Iterable[int], member: str) -> None:
        """A member will not be an owner of partitions that it has been building copies of."""
        self._sent.uncount(table_id, partitions, member)

    def _not_counted(self, key: CopyKey, member: str) -> TopologyChangedError:
        name, me = self._replicas.name(key), self._replicas.member_id
        return TopologyChangedError(
            f"{name}: {me} cannot count on a copy that {member} has built: it is behind, or follows another primary",
            topology_version=self._replicas.topology.version,
        )
