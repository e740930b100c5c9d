"""How the partition ids of a scheme are dealt: one block per range in order of ordinals, mixed radix of the buckets inside a block (DESIGN section 6).

A dropped range keeps its block, so that adding and dropping ranges moves no other partition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from secateur.partitioning.components import HashComponent, RangeComponent, RangePartition

__all__ = ["Layout", "bucket_product"]


def bucket_product(hashes: Iterable[HashComponent]) -> int:
    """The number of partitions that hash components make."""
    return math.prod(h.partitions for h in hashes)


class Layout:
    """The ids of one scheme, resolved once.

    Attributes:
        partition_count: The size of the id space, blocks of dropped ranges included.
        live: The live ranges by ordinal.
        bases: The first id of each live range by ordinal.
        columns: The partitioning key, in order of first mention.
    """

    __slots__ = ("_hashes", "bases", "columns", "live", "partition_count")

    def __init__(self, hashes: tuple[HashComponent, ...], component: RangeComponent | None) -> None:
        self._hashes = hashes
        ranges = (RangePartition(0, None, None),) if component is None else component.ranges
        retired = () if component is None else component.retired
        self.live = {r.ordinal: r for r in sorted(ranges, key=lambda r: r.ordinal)}
        sizes = {r.ordinal: r.partitions for r in retired} | {ordinal: bucket_product(self.hashes_of(ordinal)) for ordinal in self.live}
        self.bases: dict[int, int] = {}
        self.partition_count = 0
        for ordinal, partitions in sorted(sizes.items()):
            if ordinal in self.live:
                self.bases[ordinal] = self.partition_count
            self.partition_count += partitions
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

    def live_partitions(self) -> npt.NDArray[np.int32]:
        blocks = [self.block(ordinal) for ordinal in self.live]
        return np.concatenate([np.empty(0, dtype=np.int32), *(np.arange(b.start, b.stop, dtype=np.int32) for b in blocks)])

    def compose(self, ordinal: int, buckets: Sequence[int]) -> int:
        local = 0
        for component, bucket in zip(self.hashes_of(ordinal), buckets, strict=True):
            local = local * component.partitions + bucket
        return self.bases[ordinal] + local
