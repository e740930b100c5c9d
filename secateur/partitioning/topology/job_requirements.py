"""The partitions and members that a job requires, as far as they are known before it starts, and their owners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec

from secateur.errors import DagError
from secateur.partitioning.topology.topology import Topology


class JobRequirements(msgspec.Struct, frozen=True, array_like=True):
    """The partitions and members without which a job cannot run; ``|`` unites two requirements.

    They choose the coordinator: a member that takes part anyway. The participants are determined when the job starts,
    by the placements of its vertices.

    Attributes:
        partitions: By table name or affinity group.
        members: Ids of the members that are named.
    """

    partitions: Mapping[str, frozenset[Annotated[int, msgspec.Meta(ge=0)]]] = {}
    members: frozenset[str] = frozenset()

    def __or__(self, other: JobRequirements) -> JobRequirements:
        partitions = dict(self.partitions)
        for name, ids in other.partitions.items():
            partitions[name] = partitions.get(name, frozenset()) | ids
        return JobRequirements(partitions, self.members | other.members)


def coordinators(needs: JobRequirements, topology: Topology, group_of: Callable[[str], str]) -> list[str]:
    """Return the members that may coordinate a job, sorted; all members if the job requires none in particular.

    Args:
        needs: Partitions, and members by name; names that are not in the topology are left to the builder of the plan.
        topology: Members and owners.
        group_of: The affinity group of a table, by name; raises ``UnknownTableError``.

    Raises:
        DagError: A partition is named that its table does not have.
        UnknownTableError: A table is named that does not exist.
        PartitionLostError: A partition had its only copy on a member that has left, or no member is left.
    """
    found: set[str] = set()
    for name, partitions in needs.partitions.items():
        ownership = topology.owners.get(name if name in topology.owners else group_of(name))
        if ownership is None:
            continue
        unknown = sorted(partition for partition in partitions if partition >= ownership.partitions)
        if unknown:
            raise DagError(
                f"JobConfig.required_partitions: {name} has the partitions 0 to {ownership.partitions - 1}, not"
                f" {', '.join(map(str, unknown[:10]))}"
            )
        found.update(ownership.primaries(sorted(partitions)))
    topology.check_any()
    topology.check_live(found)
    return sorted(found | needs.members.intersection(topology.member_ids)) or list(topology.member_ids)
