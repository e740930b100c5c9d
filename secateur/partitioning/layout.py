"""How the partition ids of a scheme are dealt: one block per range in order of ordinals, mixed radix of the buckets inside a block (DESIGN section 6).

A dropped range keeps its block, so that adding and dropping ranges moves no other partition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from secateur.partitioning.components import HashComponent, RangeComponent, RangePartition
from secateur.partitioning.segments import gaps_between, segments_of

__all__ = ["Layout", "bucket_product"]


def bucket_product(hashes: Iterable[HashComponent]) -> int:
    """The number of partitions that hash components make."""
    return math.prod(h.partitions for h in hashes)


class Layout:
    """The ids of one scheme, resolved once.

    Attributes:
        partition_count: The size of the id space, blocks of dropped ranges included.
        segments: The intervals of the range columns that hold rows, sorted and disjoint, each with the ordinal that it leads to; one without a range component.
        has_gaps: Whether some keys have no partition.
        live: The live ranges by ordinal, ascending.
        live_partitions: The ids that can hold rows, ascending; int32, read-only.
        bases: The first id of each live range by ordinal.
        columns: The partitioning key, in order of first mention.
    """

    __slots__ = ("_hashes", "bases", "columns", "has_gaps", "live", "live_partitions", "partition_count", "segments")

    def __init__(self, hashes: tuple[HashComponent, ...], component: RangeComponent | None) -> None:
        self._hashes = hashes
        self.segments = (RangePartition(0, None, None),) if component is None else segments_of(component)
        self.has_gaps = component is not None and bool(gaps_between(self.segments))
        retired = () if component is None else component.retired
        ranges = self.segments if component is None else component.partitions
        self.live = {r.ordinal: r for r in sorted(ranges, key=lambda r: r.ordinal)}
        sizes = {r.ordinal: r.partitions for r in retired} | {ordinal: bucket_product(self.hashes_of(ordinal)) for ordinal in self.live}
        self.bases: dict[int, int] = {}
        self.partition_count = 0
        for ordinal, partitions in sorted(sizes.items()):
            if ordinal in self.live:
                self.bases[ordinal] = self.partition_count
            self.partition_count += partitions
        self.live_partitions = _live_ids([(ordinal in self.live, partitions) for ordinal, partitions in sorted(sizes.items())])
        lists = [h.columns for h in hashes]
        lists.extend(() if component is None else (component.columns,))
        lists.extend(h.columns for r in ranges for h in r.hashes or ())
        self.columns = tuple(dict.fromkeys(name for names in lists for name in names))

    def hashes_of(self, ordinal: int) -> tuple[HashComponent, ...]:
        own = self.live[ordinal].hashes
        return self._hashes if own is None else own

    def block(self, ordinal: int) -> range:
        base = self.bases[ordinal]
        return range(base, base + bucket_product(self.hashes_of(ordinal)))

    def compose(self, ordinal: int, buckets: Sequence[int]) -> int:
        local = 0
        for component, bucket in zip(self.hashes_of(ordinal), buckets, strict=True):
            local = local * component.partitions + bucket
        return self.bases[ordinal] + local


def _live_ids(blocks: Sequence[tuple[bool, int]]) -> npt.NDArray[np.int32]:
    """Blocks, each live or not and of some size, lie one behind the other: an id is live when its block is."""
    is_live = np.array([live for live, _ in blocks], dtype=np.bool_)
    ids = np.flatnonzero(np.repeat(is_live, [size for _, size in blocks])).astype(np.int32)
    ids.flags.writeable = False
    return ids
