"""The numbering of a scheme's partition ids.

Each range has a block of ids, in order of ordinals, and the ids inside a block are mixed-radix numbers of the buckets.
A dropped range keeps its block, so that adding and dropping ranges moves no other partition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from secateur.partitioning.schemes.components import HashComponent, RangeComponent, RangePartition
from secateur.partitioning.schemes.segments import gaps_between, segments_of

__all__ = ["Layout", "bucket_product"]


def bucket_product(hashes: Iterable[HashComponent]) -> int:
    """The number of partitions that hash components make."""
    return math.prod(h.partitions for h in hashes)


class Layout:
    """The ids of one scheme, resolved once.

    Attributes:
        partition_count: The size of the id space, blocks of dropped ranges included.
        segments: The intervals of the range columns that hold rows, sorted and disjoint, each with the ordinal that it
            leads to; one without a range component.
        has_gaps: Whether some keys have no partition.
        hash_lists: The distinct lists of hash components of the live ranges: thousands of ranges share a few.
        live: The live ranges by ordinal, ascending.
        bases: The first id of each live range by ordinal.
        columns: The partitioning key, in order of first mention.
    """

    __slots__ = (
        "_blocks",
        "_hashes",
        "_live_ids",
        "_live_partitions",
        "bases",
        "columns",
        "has_gaps",
        "hash_lists",
        "live",
        "partition_count",
        "segments",
    )

    def __init__(self, hashes: tuple[HashComponent, ...], component: RangeComponent | None) -> None:
        self._hashes = hashes
        self.segments = (RangePartition(0, None, None),) if component is None else segments_of(component)
        self.has_gaps = component is not None and bool(gaps_between(self.segments))
        retired = () if component is None else component.retired
        ranges = self.segments if component is None else component.partitions
        own = dict.fromkeys(r.hashes for r in ranges if r.hashes is not None)
        self.hash_lists = tuple(
            own if len(own) and all(r.hashes is not None for r in ranges) else dict.fromkeys((hashes, *own))
        )
        self.live = {r.ordinal: r for r in sorted(ranges, key=lambda r: r.ordinal)}
        usual = bucket_product(hashes)
        sizes = [(r.ordinal, usual if r.hashes is None else bucket_product(r.hashes), True) for r in ranges]
        sizes.extend((r.ordinal, r.partitions, False) for r in retired)
        sizes.sort()
        self.bases: dict[int, int] = {}
        self.partition_count = 0
        for ordinal, partitions, is_live in sizes:
            if is_live:
                self.bases[ordinal] = self.partition_count
            self.partition_count += partitions
        self._blocks = [(is_live, partitions) for _, partitions, is_live in sizes]
        self._live_partitions: npt.NDArray[np.int32] | None = None
        self._live_ids: tuple[int, ...] | None = None
        lists = [h.columns for h in hashes]
        lists.extend(() if component is None else (component.columns,))
        lists.extend(h.columns for hashes_ in self.hash_lists for h in hashes_)
        self.columns = tuple(dict.fromkeys(name for names in lists for name in names))

    @property
    def live_partition_count(self) -> int:
        return sum(partitions for is_live, partitions in self._blocks if is_live)

    @property
    def live_partitions(self) -> npt.NDArray[np.int32]:
        """The ids that can hold rows, ascending; read-only."""
        if self._live_partitions is None:
            self._live_partitions = _live_ids(self._blocks)
        return self._live_partitions

    @property
    def live_ids(self) -> tuple[int, ...]:
        """:attr:`live_partitions` as Python numbers."""
        if self._live_ids is None:
            self._live_ids = tuple(self.live_partitions.tolist())
        return self._live_ids

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
