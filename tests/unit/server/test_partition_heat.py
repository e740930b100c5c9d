"""The heat of partitions: differences of what members have counted, within the last minute."""

from __future__ import annotations

from typing import Any

from secateur.server.dashboard import PartitionHeat, Reading, Uses


def reading(at_s: float, *rows: tuple[int, str, int, int]) -> Reading:
    names = ("partition", "primary_member", "reads", "writes")
    found: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in rows]
    return Reading(found, at_s)


def test_the_first_reading_has_nothing_to_compare_with() -> None:
    heat = PartitionHeat().within_a_minute("t", 0, reading(10.0, (0, "m1", 500, 3)))
    assert heat.window_s is None
    assert heat.of(0) == Uses(0, 0)
    assert heat.hottest(5) == []


def test_what_has_happened_since_is_told_by_partition() -> None:
    heat = PartitionHeat()
    heat.within_a_minute("t", 0, reading(10.0, (0, "m1", 500, 3), (1, "m1", 0, 0), (2, "m2", 7, 7)))
    found = heat.within_a_minute("t", 0, reading(12.0, (0, "m1", 503, 3), (1, "m1", 2, 8), (2, "m2", 7, 7)))
    assert found.window_s == 2.0
    assert found.hottest(5) == [(1, Uses(2, 8)), (0, Uses(3, 0))]
    assert found.of(2) == Uses(0, 0)
    again = heat.within_a_minute("t", 0, reading(12.0, (0, "m1", 503, 3)))
    assert again == found, "the same reading counts once"


def test_hits_are_forgotten_after_a_minute() -> None:
    heat = PartitionHeat()
    heat.within_a_minute("t", 0, reading(0.0, (0, "m1", 0, 0)))
    for second in range(1, 56):
        found = heat.within_a_minute("t", 0, reading(float(second), (0, "m1", 100, 0)))
    assert found.of(0) == Uses(100, 0)
    for second in range(56, 72):
        found = heat.within_a_minute("t", 0, reading(float(second), (0, "m1", 100 + second, 0)))
    assert found.window_s is not None
    assert 50 < found.window_s <= 60
    assert found.of(0) == Uses(71, 0), "the hundred of the first second are over a minute old"


def test_a_partition_that_has_moved_begins_anew() -> None:
    heat = PartitionHeat()
    heat.within_a_minute("t", 0, reading(0.0, (0, "m1", 50, 5)))
    heat.within_a_minute("t", 0, reading(1.0, (0, "m1", 60, 5)))
    found = heat.within_a_minute("t", 0, reading(2.0, (0, "m2", 1, 90)))
    assert found.of(0) == Uses(10, 0), "what m2 has counted as a backup is not of this minute"
    found = heat.within_a_minute("t", 0, reading(3.0, (0, "m2", 4, 91)))
    assert found.of(0) == Uses(13, 1)


def test_a_member_that_began_anew_has_no_negative_hits() -> None:
    heat = PartitionHeat()
    heat.within_a_minute("t", 0, reading(0.0, (0, "m1", 50, 5)))
    found = heat.within_a_minute("t", 0, reading(1.0, (0, "m1", 2, 0)))
    assert found.of(0) == Uses(0, 0)


def test_tables_and_pages_of_a_table_are_told_apart() -> None:
    heat = PartitionHeat()
    heat.within_a_minute("t", 0, reading(0.0, (0, "m1", 50, 5)))
    assert heat.within_a_minute("t", 1000, reading(1.0, (1000, "m1", 51, 5))).window_s is None
    assert heat.within_a_minute("u", 0, reading(1.0, (0, "m1", 51, 5))).window_s is None
    assert heat.within_a_minute("t", 0, reading(1.0, (0, "m1", 51, 5))).of(0) == Uses(1, 0)
