from __future__ import annotations

import math
import random

import pytest

from secateur.protocol import LatencyHistogram

SEED = 4


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.5, 0.9, 0.99, 1.0])
def test_a_percentile_is_at_most_nine_percent_too_high(fraction: float) -> None:
    chance = random.Random(SEED)
    latencies = sorted(chance.lognormvariate(0, 1.5) for _ in range(997))
    true = latencies[max(math.ceil(fraction * len(latencies)), 1) - 1]
    assert true * (1 - 1e-9) <= LatencyHistogram().with_latencies(latencies).percentile_ms(fraction) <= true * 1.091


def test_histograms_of_parts_merge_to_that_of_the_whole() -> None:
    parts = [[0.1, 0.1, 5.0], [], [0.1, 3000.0]]
    whole = LatencyHistogram().with_latencies(latency for part in parts for latency in part)
    assert LatencyHistogram.merged(LatencyHistogram().with_latencies(part) for part in parts) == whole
    assert whole.total == 5


def test_more_latencies_leave_a_histogram_as_it_was() -> None:
    first = LatencyHistogram().with_latencies([1.0])
    second = first.with_latencies([1.0, 2.0])
    assert (first.total, second.total) == (1, 3)


def test_the_number_of_buckets_is_bounded() -> None:
    """A clock that stands still says 0; nothing runs for a year, but a sum must not fail for it."""
    extremes = LatencyHistogram().with_latencies([0.0, 1e-9, *(10.0**power for power in range(-6, 300))])
    assert min(extremes.counts) == 0
    assert len(extremes.counts) <= 257
    assert extremes.percentile_ms(0.0) == 0.001


def test_a_histogram_without_latencies_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="without latencies"):
        LatencyHistogram().percentile_ms(0.5)
