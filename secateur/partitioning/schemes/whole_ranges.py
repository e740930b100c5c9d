"""All partitions of the ranges that some partitions belong to."""

from __future__ import annotations

from collections.abc import Iterable

from secateur.partitioning.schemes.scheme import PartitionScheme


def whole_ranges(scheme: PartitionScheme, partitions: Iterable[int]) -> list[int]:
    """Return the partitions of every range that has one of ``partitions``, ascending.

    Partitions of no live range are returned as well. Without a range component, all partitions are one range. Cost: a
    step for each range.
    """
    found = set(partitions)
    for ordinal in {partition.ordinal for partition in scheme.ranges()}:
        block = scheme.block(ordinal)
        if not found.isdisjoint(block):
            found.update(block)
    return sorted(found)
