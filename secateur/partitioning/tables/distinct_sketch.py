"""Estimates a column's number of distinct values from samples of its rows on several members.

The smallest hashes of the sampled values estimate the number of distinct values in all samples; the number of values
that were seen only once estimates how many more the unsampled rows have. Both survive merging, so values that several
members have in common are not counted twice.

Source: Bar-Yossef et al., "Counting distinct elements in a data stream" (2002), the k minimum values; Haas and Stokes,
"Estimating the number of classes in a finite population" (1998), the estimator Duj1, which PostgreSQL's ANALYZE uses as
well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from secateur.cached_properties import cached_property

SKETCH_HASHES_MAX: Final = 1024
"""Below as many distinct values the number in the sample is exact; above, its standard error is 1 / sqrt(1024) = 3
%.
"""

_HASHES: Final = 2.0**64
_HASH: Final = np.dtype("<u8")
_COUNT: Final = np.dtype("<u4")
_AGREEMENT: Final = 0.1
"""Three standard errors."""


class DistinctSketch(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """The smallest hashes of some values.

    Attributes:
        hash_bytes: The hashes as little-endian uint64; see :attr:`hashes`.
        count_bytes: The counts as little-endian uint32; see :attr:`counts`.
        values: How many values were seen; repetitions count, NULLs do not.
    """

    hash_bytes: bytes
    count_bytes: bytes
    values: int

    def __post_init__(self) -> None:
        if len(self.hashes) != len(self.counts):
            raise ValueError(f"a sketch of {len(self.hashes)} hashes came with {len(self.counts)} counts")

    @cached_property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """uint64, ascending, at most :data:`SKETCH_HASHES_MAX`: the smallest of all that were seen."""
        return np.frombuffer(self.hash_bytes, _HASH)

    @cached_property
    def counts(self) -> npt.NDArray[np.uint32]:
        """uint32, how often each hash was seen."""
        return np.frombuffer(self.count_bytes, _COUNT)

    @classmethod
    def of(cls, hashes: npt.NDArray[np.uint64]) -> DistinctSketch:
        """The sketch of values with these hashes, one a value, in any order.

        Cost: a sort, 80 ns a value.
        """
        smallest, counts = np.unique(hashes, return_counts=True)
        return cls._of_smallest(smallest, counts, len(hashes))

    @classmethod
    def merged(cls, sketches: Sequence[DistinctSketch]) -> DistinctSketch:
        """The sketch of the values of all."""
        if not sketches:
            return cls(b"", b"", 0)
        hashes, places = np.unique(np.concatenate([sketch.hashes for sketch in sketches]), return_inverse=True)
        counts = np.zeros(len(hashes), _COUNT)
        np.add.at(counts, places, np.concatenate([sketch.counts for sketch in sketches]))
        return cls._of_smallest(hashes, counts, sum(sketch.values for sketch in sketches))

    @classmethod
    def _of_smallest(
        cls, hashes: npt.NDArray[np.uint64], counts: npt.NDArray[np.integer[Any]], values: int
    ) -> DistinctSketch:
        kept = slice(SKETCH_HASHES_MAX)
        return cls(hashes[kept].astype(_HASH).tobytes(), counts[kept].astype(_COUNT).tobytes(), values)

    def estimate(self, values_total: int) -> int:
        """Estimate the number of distinct values.

        Args:
            values_total: How many values there are, of which those of this sketch are a sample; NULLs do not count.

        Returns:
            At least 1 if there is a value, at most ``values_total``. Exact when all values were seen and fewer than
            :data:`SKETCH_HASHES_MAX` are distinct; with more, the standard error is 3 %. The same holds for a sample in
            which values repeat or are all different; between the two, values of uneven frequency are underestimated, by
            a factor of up to the square root of values to sampled values.
        """
        if not len(self.hashes):
            return min(values_total, 1)
        seen = self._seen()
        once = seen * float(np.count_nonzero(self.counts == 1)) / len(self.hashes)
        share = min(self.values / max(values_total, 1), 1.0)
        estimate = seen if share >= 1.0 else self.values * seen / (self.values - once + once * share)
        return max(1, min(round(estimate), values_total))

    def _seen(self) -> float:
        """Estimate how many distinct values were seen.

        The hashes give an estimate for any values. The counts give a better one where all values are about equally
        frequent, and a useless one where a few values make up most rows. The counts are used where both agree.
        """
        if len(self.hashes) < SKETCH_HASHES_MAX:
            return float(len(self.hashes))
        by_hashes = (SKETCH_HASHES_MAX - 1) * _HASHES / max(float(self.hashes[-1]), 1.0)
        by_counts = self.values / float(self.counts.mean())
        return by_counts if abs(by_counts - by_hashes) <= _AGREEMENT * by_hashes else min(by_hashes, float(self.values))
