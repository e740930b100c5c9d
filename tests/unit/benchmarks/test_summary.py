"""Quantiles, and rounds together."""

from __future__ import annotations

import pytest

from benchmarks.peers.summary import Round, quantile, summarised


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        pytest.param([7.0], 0.5, 7.0, id="one value"),
        pytest.param([1.0, 2.0], 0.5, 1.0, id="half of two"),
        pytest.param([1.0, 2.0, 3.0], 0.5, 2.0, id="the middle"),
        pytest.param([float(value) for value in range(1, 101)], 0.99, 99.0, id="p99 of a hundred"),
        pytest.param([float(value) for value in range(1, 101)], 1.0, 100.0, id="all of them"),
        pytest.param([float(value) for value in range(1, 11)], 0.99, 10.0, id="p99 of ten is the largest"),
    ],
)
def test_quantile(values: list[float], share: float, expected: float) -> None:
    assert quantile(values, share) == expected


def round_of(
    latencies_us: list[float], *, elapsed_s: float = 1.0, moved: int | None = 100, echo_us: float | None = 10.0
) -> Round:
    return Round(latencies_us, elapsed_s, client_s=0.001, members_s=0.003, bytes_moved=moved, echo_us=echo_us)


def test_summarised_takes_the_median_of_rounds_and_the_tail_of_all_calls() -> None:
    rounds = [round_of([100.0, 300.0, 200.0]), round_of([900.0], echo_us=30.0), round_of([250.0, 150.0], elapsed_s=0.5)]
    cell = summarised("secateur, Python", "row by key", 8, None, rounds)
    assert (cell.p50_us, cell.p50_low_us, cell.p50_high_us) == (200.0, 150.0, 900.0)
    assert (cell.calls, cell.p95_us, cell.p99_us) == (6, 900.0, 900.0)
    assert cell.per_s == 3.0
    assert cell.echo_us == 10.0
    assert cell.client_us == pytest.approx(500)
    assert cell.members_us == pytest.approx(1500)
    assert cell.bytes_moved == 50


def test_bytes_are_unknown_if_they_are_of_one_round() -> None:
    cell = summarised("DuckDB", "row by key", 1, None, [round_of([1.0]), round_of([1.0], moved=None, echo_us=None)])
    assert cell.bytes_moved is None
    assert cell.echo_us == 10.0
