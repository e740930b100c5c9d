"""The members that have copies of a table's partitions, without dropped ranges, which have owners but no rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology


def copies_of(topology: Topology, table: TableDef, member_id: str) -> list[int]:
    """Return the partitions of which a member has a copy, primary or backup; for a replicated table its only one."""
    return (
        [0] if table.replicated else _live(table, topology.ownership(table.scheme.affinity_group()).held_by(member_id))
    )


def primaries_of(topology: Topology, table: TableDef, member_id: str) -> list[int]:
    """Return the partitions of which a member is the primary; every member is the primary of a replicated table."""
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
