"""Which member has which partitions of a table, without the ids of dropped ranges: they have owners, but no rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology

__all__ = ["by_primary", "copies_of", "primaries_of", "served_by"]


def copies_of(topology: Topology, table: TableDef, member_id: str) -> list[int]:
    """The partitions of which a member keeps a copy, primary or backup; the only one of a replicated table."""
    return (
        [0] if table.replicated else _live(table, topology.ownership(table.scheme.affinity_group()).held_by(member_id))
    )


def primaries_of(topology: Topology, table: TableDef, member_id: str) -> list[int]:
    """The partitions of which a member is the primary; of a replicated table, every member is."""
    return (
        [0]
        if table.replicated
        else _live(table, topology.ownership(table.scheme.affinity_group()).partitions_of(member_id))
    )


def served_by(topology: Topology, table: TableDef) -> dict[str, list[int]]:
    """The partitions by member, each row once: a replicated table is the first member's."""
    if table.replicated:
        return {member_id: [0] if member_id == topology.member_ids[0] else [] for member_id in topology.member_ids}
    return {member_id: primaries_of(topology, table, member_id) for member_id in topology.member_ids}


def by_primary(topology: Topology, table: TableDef, partitions: Sequence[int]) -> dict[str, list[int]]:
    """Some partitions by the member that is their primary."""
    ownership = topology.ownership(table.scheme.affinity_group())
    found: defaultdict[str, list[int]] = defaultdict(list)
    for partition in partitions:
        found[ownership.primary(partition)].append(partition)
    return dict(found)


def _live(table: TableDef, partitions: list[int]) -> list[int]:
    component = table.scheme.range
    if component is None or not component.retired:
        return partitions
    live: list[int] = np.intersect1d(partitions, table.scheme.live_partitions(), assume_unique=True).tolist()
    return live
