"""From a table and a topology to members: whose its partitions are, and rows grouped by the owners of theirs.

Rows are grouped by primary, and by partition within it, with one sort; or by partition alone (:func:`split`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.partitioning.types.arrow_layout import row_numbers

_RADIX_PARTITIONS_MAX: Final = 1 << 16


class RoutedBatch(NamedTuple):
    """The rows of a chunk that go to one member, grouped by partition.

    ``parts`` are partitions and their numbers of rows, in the order in which the rows stand.
    """

    member: str
    parts: list[tuple[int, int]]
    rows: pa.Table


@dataclass(frozen=True, slots=True, eq=False)
class OwnerRouting:
    """The routing of one table's rows to owners.

    The partitions are ordered so that those of one primary are adjacent; one sort then groups rows both ways.

    Attributes:
        scheme: The table's partition scheme.
        partitions: The partitions in that order.
        positions: The inverse: each partition's position in that order; uint16 where that suffices, because numpy
            sorts those in linear time.
        ranges: Each primary and its range of positions, in order.
        everyone: For a replicated table the members, each of which gets all rows; else empty.
    """

    scheme: PartitionScheme
    partitions: npt.NDArray[np.int64]
    positions: npt.NDArray[Any]
    ranges: tuple[tuple[str, range], ...]
    everyone: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: TableDef, topology: Topology) -> OwnerRouting:
        """The sharing of a table.

        Raises:
            TopologyChangedError: The topology is older than the table.
            UnknownOwnersError: The topology is an outline, and the owners of the table have to be fetched first.
        """
        if table.replicated:
            return cls(table.scheme, np.zeros(1, np.int64), np.zeros(1, np.uint16), (), tuple(topology.member_ids))
        ownership = topology.ownership(table.scheme.affinity_group())
        primaries = ownership.all_primaries
        partitions = np.argsort(primaries, kind="stable")
        positions = np.empty(len(partitions), dtype=np.uint16 if len(partitions) <= _RADIX_PARTITIONS_MAX else np.int64)
        positions[partitions] = np.arange(len(partitions))
        bounds = np.searchsorted(primaries[partitions], np.arange(len(ownership.members) + 1)).tolist()
        ranges = tuple((member, range(*bounds[index : index + 2])) for index, member in enumerate(ownership.members))
        return cls(table.scheme, partitions, positions, ranges)

    def shares(self, rows: pa.Table) -> Iterator[RoutedBatch]:
        """Group rows, each partition's in the order they had; members without any do not appear.

        The rows are in the table's own schema.

        Raises:
            NoRangeError: A row that no range covers; nothing is yielded then.

        Cost: the partition function, and one copy of the rows.
        """
        if self.everyone:
            yield from (RoutedBatch(member, [(0, rows.num_rows)], rows) for member in self.everyone)
            return
        positions = self.positions[self.scheme.partitions_of(rows)]
        order = np.argsort(positions, kind="stable")
        grouped = rows.combine_chunks().take(row_numbers(order))
        counts = np.bincount(positions, minlength=len(self.partitions))
        ends = np.cumsum(counts)
        for member, owned in self.ranges:
            present = [position for position in owned if counts[position]]
            if present:
                start = int(ends[present[0]] - counts[present[0]])
                parts = [(int(self.partitions[position]), int(counts[position])) for position in present]
                yield RoutedBatch(member, parts, grouped.slice(start, int(ends[present[-1]]) - start))


def split(table: pa.Table | pa.RecordBatch, tdef: TableDef) -> dict[int, pa.Table]:
    """Group rows in ``tdef.arrow_schema`` by partition (see :func:`~secateur.partitioning.tables.conform.conform`).

    Returns:
        The rows of each partition that has any, by ascending partition id, each in the order they had. All are slices
        of one table: of the input when its rows come grouped already, else of one copy. Keep a slice only as long as
        the whole may live.

    Raises:
        NoRangeError: A row that no range covers; nothing is split then.
    """
    rows = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    if rows.num_rows == 0:
        return {}
    ids = tdef.scheme.partitions_of(rows)
    if (ids[1:] < ids[:-1]).any():
        # numpy sorts 16-bit integers by radix, in linear time.
        order = np.argsort(ids.astype(np.uint16) if tdef.partition_count <= 2**16 else ids, kind="stable")
        ids = ids[order]
        rows = rows.combine_chunks().take(row_numbers(order))
    starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
    ends = np.append(starts[1:], len(ids))
    return {
        int(ids[start]): rows.slice(start, end - start)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    }


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
