"""The numbering of a scheme's partition ids.

Each range has a block of ids, in order of ordinals, and the ids inside a block are mixed-radix numbers of the buckets.
A dropped range keeps its block, so that adding and dropping ranges moves no other partition.

*Segments* are the keys that a range component covers, as one sorted list of disjoint intervals. The list holds the
ranges and, for a catch-all, every gap between them. A catch-all is one partition, or one set of buckets, in many places
of the order. Written out as the gaps that it fills, it needs no rule of its own: the search for a key and the pruning
by intervals work on segments, and several segments may lead to one ordinal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from secateur.cached_properties import cached_property
from secateur.partitioning.schemes.components import (
    Bound,
    HashComponent,
    RangeComponent,
    RangePartition,
    by_lower_bound,
    earlier,
)
from secateur.partitioning.schemes.partial_ranges import EVERY_KEY, PartialRanges


def bucket_product(hashes: Iterable[HashComponent]) -> int:
    """The number of partitions that hash components make."""
    return math.prod(h.partitions for h in hashes)


@dataclass(frozen=True, eq=False)
class Layout:
    """The ids of one scheme, resolved once.

    Attributes:
        hashes: The hash components of the table.
        range_columns: The range columns.
        outline: The ranges as a client knows them before it has fetched any.
        segments: The intervals of the range columns that hold rows, sorted and disjoint, each with the ordinal that it
            leads to; one without a range component. Of a scheme that is partly known, an interval of unknown keys has
            a pseudo range, whose ordinal is negative and whose one id is behind all others.
        live: The known live ranges by ordinal.
        bases: The first id of each of them by ordinal.
    """

    hashes: tuple[HashComponent, ...]
    range_columns: tuple[str, ...]
    outline: PartialRanges
    segments: tuple[RangePartition, ...]
    live: Mapping[int, RangePartition]
    bases: dict[int, int]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The partitioning key, in order of first mention."""
        of_ranges = (h.columns for own in self.outline.hash_lists for h in own)
        lists = chain((h.columns for h in self.hashes), (self.range_columns,), of_ranges)
        return tuple(dict.fromkeys(name for names in lists for name in names))

    @classmethod
    def of(cls, hashes: tuple[HashComponent, ...], component: RangeComponent | None) -> Layout:
        """The ids of a scheme whose ranges are all known. Cost: some microseconds per range."""
        segments = (RangePartition(0, None, None),) if component is None else segments_of(component)
        ranges = segments if component is None else component.partitions
        own = dict.fromkeys(r.hashes for r in ranges if r.hashes is not None)
        usual = bucket_product(hashes)
        sizes = [(r.ordinal, usual if r.hashes is None else bucket_product(r.hashes), True) for r in ranges]
        if component is not None:
            sizes.extend((r.ordinal, r.partitions, False) for r in component.retired)
            sizes.sort()
        bases: dict[int, int] = {}
        retired: list[tuple[int, int]] = []
        partition_count = 0
        for ordinal, partitions, is_live in sizes:
            if is_live:
                bases[ordinal] = partition_count
            elif retired and retired[-1][1] == partition_count:
                retired[-1] = retired[-1][0], partition_count + partitions
            else:
                retired.append((partition_count, partition_count + partitions))
            partition_count += partitions
        return cls(
            hashes,
            () if component is None else component.columns,
            PartialRanges(
                partition_count,
                tuple(retired),
                tuple(own if len(own) and all(r.hashes is not None for r in ranges) else dict.fromkeys((hashes, *own))),
                component is not None and bool(gaps_between(segments)),
                None if component is None or component.catch_all is None else bases[component.catch_all.ordinal],
            ),
            segments=segments,
            live={r.ordinal: r for r in sorted(ranges, key=lambda r: r.ordinal)},
            bases=bases,
        )

    @classmethod
    def of_known(cls, hashes: tuple[HashComponent, ...], component: RangeComponent, known: PartialRanges) -> Layout:
        """The ids of a scheme whose ranges are partly known."""
        pseudo = [RangePartition(-1 - n, lower, upper, None, ()) for n, (lower, upper) in enumerate(known.unknown)]
        bases = dict(zip((r.ordinal for r in known.ranges), known.bases, strict=True))
        bases |= {r.ordinal: known.partition_count - 1 - r.ordinal for r in pseudo}
        live = {r.ordinal: r for r in (*known.ranges, *pseudo)}
        if component.catch_all is not None and known.catch_all_base is not None:
            live[component.catch_all.ordinal] = component.catch_all
            bases[component.catch_all.ordinal] = known.catch_all_base
        return cls(
            hashes,
            component.columns,
            replace(known, ranges=(), bases=(), unknown=(EVERY_KEY,)),
            segments=tuple(sorted((*known.ranges, *pseudo), key=by_lower_bound)),
            live=live,
            bases=bases,
        )

    @property
    def live_partition_count(self) -> int:
        return self.outline.partition_count - sum(stop - start for start, stop in self.outline.retired)

    @cached_property
    def live_partitions(self) -> npt.NDArray[np.int32]:
        """The ids that can hold rows, ascending; read-only."""
        is_live = np.ones(self.outline.partition_count, dtype=np.bool_)
        for start, stop in self.outline.retired:
            is_live[start:stop] = False
        ids = np.flatnonzero(is_live).astype(np.int32)
        ids.flags.writeable = False
        return ids

    @cached_property
    def live_ids(self) -> tuple[int, ...]:
        """:attr:`live_partitions` as Python numbers."""
        return tuple(self.live_partitions.tolist())

    def hashes_of(self, ordinal: int) -> tuple[HashComponent, ...]:
        own = self.live[ordinal].hashes
        return self.hashes if own is None else own

    def block(self, ordinal: int) -> range:
        base = self.bases[ordinal]
        return range(base, base + bucket_product(self.hashes_of(ordinal)))


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
        gaps = [(lower, earlier(upper, end)) for lower, upper in gaps if lower is None or lower < end]
    filled = [replace(catch_all, lower=lower, upper=upper) for lower, upper in gaps]
    return tuple(sorted((*component.ranges, *filled), key=by_lower_bound))


def gaps_between(ranges: tuple[RangePartition, ...]) -> list[tuple[Bound, Bound]]:
    """The intervals ``[lower, upper)`` that no range holds, ascending; None is a side without an end.

    Ranges are sorted and disjoint.
    """
    gaps: list[tuple[Bound, Bound]] = []
    reached: Bound = None
    for position, partition in enumerate(ranges):
        if partition.lower is not None and (position == 0 or reached != partition.lower):
            gaps.append((reached, partition.lower))
        if partition.upper is None:
            return gaps
        reached = partition.upper
    return [*gaps, (reached, None)]
