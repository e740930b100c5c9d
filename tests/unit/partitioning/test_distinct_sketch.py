from __future__ import annotations

import numpy as np
import pytest

from secateur.partitioning.tables import SKETCH_HASHES_MAX, DistinctSketch
from secateur.protocol import decode, encode


def hashes(values: np.ndarray) -> np.ndarray:
    """Different values have hashes that lie as if by chance: the finalizer of SplitMix64, which is a bijection."""
    mixed = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def test_few_values_are_counted_exactly() -> None:
    sketch = DistinctSketch.of(hashes(np.arange(10_000) % 700))
    assert sketch.estimate(10_000) == 700
    assert sketch.values == 10_000


def test_no_value_at_all() -> None:
    assert DistinctSketch.of(hashes(np.arange(0))).estimate(0) == 0
    assert DistinctSketch.merged([]).estimate(0) == 0


@pytest.mark.parametrize("distinct", [2_000, 50_000, 1_000_000])
def test_many_values_are_estimated_within_ten_percent(distinct: int) -> None:
    sketch = DistinctSketch.of(hashes(np.arange(2 * distinct) % distinct))
    assert len(sketch.hashes) == SKETCH_HASHES_MAX
    assert sketch.estimate(2 * distinct) == pytest.approx(distinct, rel=0.1)


def test_merging_is_sketching_everything_at_once() -> None:
    parts = [np.arange(0, 5_000), np.arange(3_000, 9_000), np.arange(10) % 3]
    merged = DistinctSketch.merged([DistinctSketch.of(hashes(part)) for part in parts])
    whole = DistinctSketch.of(hashes(np.concatenate(parts)))
    assert np.array_equal(merged.hashes, whole.hashes)
    assert merged.values == whole.values == 11_010
    assert merged.estimate(11_010) == pytest.approx(9_000, rel=0.1)


@pytest.mark.parametrize(
    ("distinct", "tolerance"),
    [
        pytest.param(50, 0.0, id="every value is in the sample many times"),
        pytest.param(1_000_000, 0.01, id="all different"),
        pytest.param(20_000, 0.1, id="fifty of each"),
        pytest.param(250_000, 0.4, id="four of each"),
    ],
)
def test_a_sample_speaks_for_the_rest(distinct: int, tolerance: float) -> None:
    values = np.random.default_rng(3).permutation(np.arange(1_000_000) % distinct)
    sketch = DistinctSketch.of(hashes(values[:100_000]))
    assert sketch.estimate(1_000_000) == pytest.approx(distinct, rel=tolerance)


def test_it_travels() -> None:
    sketch = DistinctSketch.of(hashes(np.arange(3_000) % 1_500))
    assert decode(encode(sketch), DistinctSketch) == sketch
