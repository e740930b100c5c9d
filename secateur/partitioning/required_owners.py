"""The members that own the partitions which a job requires: one of them coordinates it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from secateur.errors import DagError
from secateur.partitioning.topology import Topology

__all__ = ["coordinators"]


def coordinators(required: Mapping[str, frozenset[int]] | None, topology: Topology, group_of: Callable[[str], str]) -> list[str]:
    """The members that may coordinate a job, sorted: owners of what it requires, or every member when it requires nothing that has owners.

    Args:
        required: Partitions by table name or affinity group; None when the job does not say.
        topology: Members and owners.
        group_of: The affinity group of a table, by name; raises ``UnknownTableError``.

    Raises:
        DagError: A partition is named that its table does not have.
        UnknownTableError: A table is named that does not exist.
        PartitionLostError: A required partition had its only copy on a member that has left, or no member is left.
    """
    owners: set[str] = set()
    for name, partitions in (required or {}).items():
        ownership = topology.owners.get(name if name in topology.owners else group_of(name))
        if ownership is None:
            continue
        unknown = sorted(partition for partition in partitions if partition >= ownership.partitions)
        if unknown:
            raise DagError(f"JobConfig.required_partitions: {name} has the partitions 0 to {ownership.partitions - 1}, not {', '.join(map(str, unknown[:10]))}")
        owners.update(ownership.primaries(sorted(partitions)))
    topology.check_any()
    topology.check_live(owners)
    return sorted(owners) or list(topology.member_ids)
