from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from secateur.partitioning.tables import NO_STATISTICS, ColumnStatistics, TableStatistics
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
