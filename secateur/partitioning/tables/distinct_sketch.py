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
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["SKETCH_HASHES_MAX", "DistinctSketch"]

SKETCH_HASHES_MAX: Final = 1024
"""Below as many distinct values the number in the sample is exact; above, its standard error is 1 / sqrt(1024) = 3
%.
"""

_HASHES: Final = 2.0**64
_AGREEMENT: Final = 0.1
"""Three standard errors."""


@dataclass(frozen=True, slots=True)
class DistinctSketch:
    """The smallest hashes of some values.

    Attributes:
        hashes: uint64, ascending, at most :data:`SKETCH_HASHES_MAX`: the smallest of all that were seen.
        counts: uint32, how often each was seen.
        values: How many values were seen; repetitions count, NULLs do not.
    """

    hashes: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.uint32]
    values: int

    @classmethod
    def of(cls, hashes: npt.NDArray[np.uint64]) -> DistinctSketch:
        """The sketch of values with these hashes, one a value, in any order.

        Cost: a sort, 80 ns a value.
        """
        smallest, counts = np.unique(hashes, return_counts=True)
        return cls(smallest[:SKETCH_HASHES_MAX], counts[:SKETCH_HASHES_MAX].astype(np.uint32), len(hashes))

    @classmethod
    def merged(cls, sketches: Sequence[DistinctSketch]) -> DistinctSketch:
        """The sketch of the values of all."""
        if not sketches:
            return cls(np.empty(0, np.uint64), np.empty(0, np.uint32), 0)
        hashes, places = np.unique(np.concatenate([sketch.hashes for sketch in sketches]), return_inverse=True)
        counts = np.zeros(len(hashes), np.uint32)
        np.add.at(counts, places, np.concatenate([sketch.counts for sketch in sketches]))
        return cls(hashes[:SKETCH_HASHES_MAX], counts[:SKETCH_HASHES_MAX], sum(sketch.values for sketch in sketches))

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

    def to_wire(self) -> list[Any]:
        """Plain data for msgpack; :meth:`from_wire` reads it back."""
        return [self.hashes.astype("<u8").tobytes(), self.counts.astype("<u4").tobytes(), self.values]

    @classmethod
    def from_wire(cls, data: Sequence[Any]) -> DistinctSketch:
        """Read :meth:`to_wire`."""
        return cls(
            np.frombuffer(data[0], "<u8").astype(np.uint64), np.frombuffer(data[1], "<u4").astype(np.uint32), data[2]
        )
