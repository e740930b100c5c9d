"""The owners of partitions as a member knows them, and which partitions are its own."""

from __future__ import annotations

from dataclasses import dataclass

from secateur.partitioning.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class OwnView:
    """This member's view of the cluster at one topology version.

    Attributes:
        topology: Members and owners.
        mine: The partitions that this member serves, by affinity group.
    """

    topology: Topology
    mine: dict[str, frozenset[int]]

    @classmethod
    def of(cls, member_id: str, topology: Topology) -> OwnView:
        """The view of a member. Costs a pass over the partitions of each affinity group."""
        return cls(
            topology,
            {group: frozenset(ownership.partitions_of(member_id)) for group, ownership in topology.owners.items()},
        )
