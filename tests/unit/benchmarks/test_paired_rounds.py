"""Blocks of rounds with and without a change, and the interval of a median."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.paired_rounds import abba_block, median_interval


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([3.0], (3.0, 3.0, 3.0), id="one value"),
        pytest.param([2.0, 1.0, 4.0], (2.0, 1.0, 4.0), id="too few to leave any out"),
        pytest.param([float(value) for value in range(1, 9)], (4.5, 1.0, 8.0), id="eight: leaving one out is 93 %"),
        pytest.param([float(value) for value in range(1, 10)], (5.0, 2.0, 8.0), id="nine: leaving one out is 96 %"),
        pytest.param([float(value) for value in range(1, 21)], (10.5, 6.0, 15.0), id="twenty: leaving five out"),
    ],
)
def test_the_interval_contains_the_median_at_95_percent(
    values: list[float], expected: tuple[float, float, float]
) -> None:
    found = median_interval(values)
    assert (found.median, found.low, found.high) == expected


def test_a_block_is_without_with_with_without() -> None:
    state = ["without"]

    @contextmanager
    def changed() -> Iterator[None]:
        state.append("with")
        yield
        state.append("without")

    order: list[str] = []

    def measure() -> int:
        order.append(state[-1])
        return len(order)

    assert abba_block(measure, changed) == ([1, 4], [2, 3])
    assert order == ["without", "with", "with", "without"]
