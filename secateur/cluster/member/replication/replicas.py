"""The copies of partitions that a member has, and what is known of who else has them."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from secateur.cluster.member.replication.replica import Replica
from secateur.cluster.member.tables.table_directory import TableDirectory
from secateur.errors import Error, MemberLostError, TopologyChangedError
from secateur.partitioning.topology.topology import Topology
from secateur.storage.member_store import MemberStore

CopyKey: TypeAlias = tuple[int, int]
"""Table and partition."""


class Replicas(dict[CopyKey, Replica]):
    """The state of each copy, by table and partition. Lives on the member's event loop.

    Args:
        member_id: This member.
        store: Its partitions.
        places: The tables.

    Attributes:
        topology: The newest one that the copies follow.
        counted: Copies that writes wait for ahead of the topology, with their members.
        opening: What is set when a copy that takes over as the primary is open, or is none any more.
    """

    def __init__(self, member_id: str, store: MemberStore, places: TableDirectory) -> None:
        super().__init__()
        self.member_id = member_id
        self.topology = Topology(0, (), {})
        self.counted: set[tuple[CopyKey, str]] = set()
        self.opening: dict[CopyKey, asyncio.Event] = {}
        self._tables = store.hosted_tables
        self._places = places

    def here(self, key: CopyKey) -> Replica:
        """Return the copy here; a new one if this member is the first primary of the partition."""
        replica = self.get(key)
        if replica is None:
            replica = self[key] = Replica.first_primary(self.others(key)) if self.is_primary(key) else Replica()
        return replica

    def holders(self, key: CopyKey) -> tuple[str, ...]:
        """The members of all copies of a partition, its primary first, as the topology has them."""
        owners = self.topology.owners.get(self._places.table(key[0]).scheme.affinity_group())
        return owners.holders(key[1]) if owners is not None and key[1] < owners.partitions else ()

    def is_primary(self, key: CopyKey) -> bool:
        """Whether the topology makes this member the primary of a partition."""
        return self.holders(key)[:1] == (self.member_id,)

    def others(self, key: CopyKey) -> list[str]:
        """The members of the other copies, of those that the cluster counts on."""
        alive = self.topology.member_ids
        return [member for member in self.holders(key) if member != self.member_id and member in alive]

    def published(self, table_id: int) -> int:
        """The number of the last load of a table that was published here."""
        return self._tables.table(table_id).published

    def superseded(self, key: CopyKey, replica: Replica, outcome: str) -> Error:
        """The error for a write to a copy that is not the primary any more."""
        message = f"{self.name(key)}: {outcome}: its copies follow another primary than {self.member_id}"
        if outcome == "nothing was written":
            return TopologyChangedError(message, topology_version=self.topology.version)
        return MemberLostError(message, member=self.member_id)

    def name(self, key: CopyKey) -> str:
        """A partition in a message."""
        return f"partition {key[1]} of {self._places.table(key[0]).name}"
