"""Segments: the keys that a range component covers, as one sorted list of disjoint intervals.

The list holds the ranges and, for a catch-all, every gap between them. A catch-all is one partition, or one set of
buckets, in many places of the order. Written out as the gaps that it fills, it needs no rule of its own: the search for
a key and the pruning by intervals work on *segments*, and several segments may lead to one ordinal.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from secateur.partitioning.schemes.components import RangeComponent, RangePartition

_Bound = tuple[Any, ...] | None


def segments_of(component: RangeComponent) -> tuple[RangePartition, ...]:
    """Return the intervals of the keys that have a partition, sorted by lower bound and disjoint.

    Those of the catch-all carry its ordinal, name and hash components.

    Cost: linear in the ranges.
    """
    catch_all, every = component.catch_all, component.every
    if catch_all is None:
        return component.ranges
    gaps = gaps_between(component.ranges)
    if every is not None and every.start is not None:
        # From the start on, every gap is a range that has not been made yet.
        end = (every.start,)
        gaps = [
            (lower, end if upper is None else min(upper, end)) for lower, upper in gaps if lower is None or lower < end
        ]
    filled = [replace(catch_all, lower=lower, upper=upper) for lower, upper in gaps]
    return tuple(sorted((*component.ranges, *filled), key=lambda r: (r.lower is not None, r.lower or ())))


def gaps_between(ranges: tuple[RangePartition, ...]) -> list[tuple[_Bound, _Bound]]:
    """The intervals ``[lower, upper)`` that no range holds, ascending; None is a side without an end.

    Ranges are sorted and disjoint.
    """
    gaps: list[tuple[_Bound, _Bound]] = []
    reached: _Bound = None
    for position, partition in enumerate(ranges):
        if partition.lower is not None and (position == 0 or reached != partition.lower):
            gaps.append((reached, partition.lower))
        if partition.upper is None:
            return gaps
        reached = partition.upper
    return [*gaps, (reached, None)]
