"""A histogram of latencies of fixed size, which answers percentiles without keeping each latency.

Source: the bucket bounds grow by a constant factor, as those of HdrHistogram and of Prometheus's native histograms do:
the relative error is then the same for a microsecond and for an hour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import msgspec

_BUCKETS_PER_DOUBLING: Final = 8
"""A percentile is at most 2 ** (1 / 8), or 9 %, too high."""
_FIRST_MS: Final = 0.001
"""The upper bound of the first bucket; nothing that a member executes is quicker."""
_LAST_BUCKET: Final = 32 * _BUCKETS_PER_DOUBLING
"""It has everything beyond 49 days."""


class LatencyHistogram(msgspec.Struct, frozen=True, array_like=True):
    """A histogram of latencies.

    Attributes:
        counts: Latencies by number of their bucket; empty buckets are left out. A bucket has the latencies above the
            upper bound of the one before it, up to its own.
    """

    counts: dict[int, int] = {}

    @property
    def total(self) -> int:
        """The number of latencies."""
        return sum(self.counts.values())

    def with_latencies(self, latencies_ms: Iterable[float]) -> LatencyHistogram:
        """This histogram with more latencies, in milliseconds."""
        counts = self.counts.copy()
        for latency_ms in latencies_ms:
            bucket = _bucket(latency_ms)
            counts[bucket] = counts.get(bucket, 0) + 1
        return LatencyHistogram(counts)

    @classmethod
    def merged(cls, histograms: Iterable[LatencyHistogram]) -> LatencyHistogram:
        """One histogram of the latencies of several."""
        counts: dict[int, int] = {}
        for histogram in histograms:
            for bucket, count in histogram.counts.items():
                counts[bucket] = counts.get(bucket, 0) + count
        return cls(counts)

    @property
    def buckets(self) -> list[tuple[float, int]]:
        """The upper bound in milliseconds and the number of latencies of each bucket that has some, in order."""
        return [(_bound_ms(bucket), count) for bucket, count in sorted(self.counts.items())]

    def percentile_ms(self, fraction: float) -> float:
        """The upper bound of the bucket that has the percentile by nearest rank.

        Args:
            fraction: Between 0 and 1: 0.99 is the latency that 99 % of all do not exceed.

        Returns:
            Milliseconds: at least the true percentile, and at most 9 % more. Below a microsecond and above 49 days, it
            is the bound of the first and of the last bucket.

        Raises:
            ValueError: There are no latencies.
        """
        rank = max(math.ceil(fraction * self.total), 1)
        for bucket, count in sorted(self.counts.items()):
            rank -= count
            if rank <= 0:
                return _bound_ms(bucket)
        raise ValueError("a histogram without latencies has no percentile")


def _bound_ms(bucket: int) -> float:
    return float(_FIRST_MS * 2 ** (bucket / _BUCKETS_PER_DOUBLING))


def _bucket(latency_ms: float) -> int:
    if latency_ms <= _FIRST_MS:
        return 0
    return min(math.ceil(_BUCKETS_PER_DOUBLING * math.log2(latency_ms / _FIRST_MS)), _LAST_BUCKET)
