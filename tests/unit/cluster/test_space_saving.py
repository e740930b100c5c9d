"""The sketch of frequent values: bounds that hold for every stream."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from secateur.cluster.member import SpaceSaving


def test_few_values_are_counted_exactly() -> None:
    sketch = SpaceSaving[str](counters_max=3, total_max=1000)
    for value in "abacaba":
        sketch.add(value)
    assert [tuple(one) for one in sketch.values()] == [("a", 4, 0), ("b", 2, 0), ("c", 1, 0)]
    assert sketch.total == 7


def test_a_value_without_a_counter_takes_over_the_smallest_with_its_count_as_error() -> None:
    sketch = SpaceSaving[str](counters_max=2, total_max=1000)
    for value in "aabc":
        sketch.add(value)
    assert sorted(map(tuple, sketch.values())) == [("a", 2, 0), ("c", 2, 1)]


@pytest.mark.parametrize("seed", range(20))
def test_frequent_values_have_a_counter_and_none_is_counted_too_low(seed: int) -> None:
    chance = random.Random(seed)
    stream = [int(chance.paretovariate(0.8)) for _ in range(3000)]
    sketch = SpaceSaving[int](counters_max=20, total_max=10_000)
    for value in stream:
        sketch.add(value)
    exact, found = Counter(stream), {one.value: one for one in sketch.values()}
    assert len(found) <= 20
    for value, times in exact.items():
        if times > len(stream) / 20:
            assert value in found
    for one in found.values():
        assert one.times - one.error <= exact[one.value] <= one.times


def test_what_was_frequent_once_is_forgotten() -> None:
    sketch = SpaceSaving[str](counters_max=4, total_max=100)
    for _ in range(99):
        sketch.add("old")
    for _ in range(400):
        sketch.add("new")
    first, *_ = sketch.values()
    assert first.value == "new"
    assert sketch.total < 100
    shares = {one.value: one.times / sketch.total for one in sketch.values()}
    assert shares["new"] > 0.9
    assert shares.get("old", 0.0) < 0.1
