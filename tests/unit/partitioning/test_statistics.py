"""Statistics of a table, merged over members, and the estimates of distinct values."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

from secateur.partitioning.tables import (
    NO_STATISTICS,
    SKETCH_HASHES_MAX,
    ColumnStatistics,
    DistinctSketch,
    TableStatistics,
)
from secateur.protocol import decode, encode


def table(rows: int, distinct: int = 10, table_id: int = 1) -> TableStatistics:
    return TableStatistics(
        table_id,
        rows,
        {"a": ColumnStatistics(8 * rows, 0, distinct, date(2024, 1, 1), date(2024, 12, 31))},
    )


def ranged(minimum: Any, maximum: Any, rows: int = 1_000_000) -> TableStatistics:
    return TableStatistics(1, rows, {"a": ColumnStatistics(8 * rows, 0, 10, minimum, maximum)})


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        pytest.param(table(1_000_000), table(1_900_000), False, id="not twice the rows"),
        pytest.param(table(1_000_000), table(2_100_000), True, id="twice the rows"),
        pytest.param(table(1_000_000), table(400_000), True, id="less than half of them"),
        pytest.param(table(3), table(500), False, id="small tables do not matter"),
        pytest.param(table(1_000_000, 10), table(1_000_000, 100_000), True, id="other values"),
        pytest.param(table(1_000_000), TableStatistics(1, 1_000_000), True, id="other columns"),
        pytest.param(ranged(0, 1_000), ranged(0, 1_900), False, id="not twice the range"),
        pytest.param(ranged(0, 1_000), ranged(0, 2_100), True, id="twice the range"),
        pytest.param(ranged(0, 1_000), ranged(400, 800), True, id="less than half of it"),
        pytest.param(ranged(0, 1_000), ranged(400, 1_400), False, id="a range that moves"),
        pytest.param(ranged(0, 1_000), ranged(5_000, 6_000), True, id="another range"),
        pytest.param(ranged(0, 1_000), ranged(-6_000, -5_000), True, id="another range below"),
        pytest.param(ranged(7, 7), ranged(7, 7), False, id="one value"),
        pytest.param(ranged(7, 7), ranged(8, 8), True, id="another one"),
        pytest.param(ranged(0, 1_000, rows=500), ranged(5_000, 6_000, rows=500), False, id="ranges of small tables"),
        pytest.param(
            ranged(datetime(2024, 1, 1), datetime(2024, 2, 1)),
            ranged(datetime(2024, 3, 1), datetime(2024, 4, 1)),
            True,
            id="other months",
        ),
        pytest.param(ranged("a", "b"), ranged("y", "z"), False, id="strings have no distance"),
        pytest.param(ranged(None, None), ranged(None, None), False, id="no values"),
    ],
)
def test_what_changes_plans(before: TableStatistics, after: TableStatistics, changed: bool) -> None:
    assert after.has_changed_since(before) is changed


def test_the_version_grows_when_a_table_is_first_seen_and_when_it_has_doubled() -> None:
    statistics_snapshot = NO_STATISTICS.with_table(table(100_000))
    assert statistics_snapshot.version == 1
    assert statistics_snapshot.of(1) == table(100_000)
    assert statistics_snapshot.of(2) is None
    assert statistics_snapshot.with_table(table(0, table_id=2)).version == 2


def test_small_changes_add_up() -> None:
    statistics_snapshot = NO_STATISTICS.with_table(table(100_000))
    for rows in (130_000, 160_000, 190_000):
        statistics_snapshot = statistics_snapshot.with_table(table(rows))
        assert statistics_snapshot.version == 1
        assert statistics_snapshot.of(1) == table(rows)
    assert statistics_snapshot.with_table(table(220_000)).version == 2


def test_a_dropped_table_is_forgotten() -> None:
    statistics_snapshot = NO_STATISTICS.with_table(table(100_000)).without_table(1)
    assert statistics_snapshot.of(1) is None
    assert statistics_snapshot.version == 1


def test_they_travel() -> None:
    assert decode(encode(table(7)), TableStatistics) == table(7)
    assert table(7).nbytes == 56


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
