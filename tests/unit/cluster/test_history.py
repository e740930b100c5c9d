"""The last fifteen minutes: what has ended and what processes take, from what members say every five seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import pytest

from secateur.cluster.controller import History
from secateur.protocol import ExecutionTotals, LatencyHistogram, Vitals

NOON = datetime(2026, 3, 1, 12)
MIB = 1 << 20


def totals(execution: str, times_ms: Sequence[float], touched: int = 0, pruned: int = 0, whole: int = 0) -> Any:
    histogram = LatencyHistogram().with_latencies(times_ms)
    return ExecutionTotals(execution, len(times_ms), sum(times_ms), histogram, touched, pruned, whole)


def vitals(*told: ExecutionTotals, cpu_s: float = 0.0, process: int = 7, used: int = 0) -> Vitals:
    return Vitals(list(told), process, cpu_s, 100 * MIB, used)


class Kept:
    """A history of which the periods are told."""

    def __init__(self) -> None:
        async def ask(_: Any) -> list[tuple[str, Vitals]]:
            raise AssertionError

        self.history = History(ask)
        self._now, self._own_s = NOON, 0.0

    def look(self, answers: Mapping[str, Vitals]) -> None:
        self.history.look(answers, Vitals([], 1, self._own_s, MIB, 0), 5.0, self._now)
        self._now, self._own_s = self._now + timedelta(seconds=5), self._own_s + 1.0

    def lines(self, *columns: str) -> dict[tuple[int, str], tuple[Any, ...]]:
        """By seconds since noon and process."""
        return {
            (round((line.time - NOON).total_seconds()), line.process): tuple(asdict(line)[name] for name in columns)
            for line in self.history.lines()
        }


def test_what_has_ended_in_a_period_is_counted_once() -> None:
    kept = Kept()
    local, failed = totals("local", [0.1] * 10, 10, 10), totals("failed", [5.0])
    kept.look({"m1": vitals(local, failed), "m2": vitals()})
    assert kept.lines("statements") == {}, "what was before nobody knows"
    more = totals("local", [0.1] * 10 + [0.2] * 9 + [8.0], 25, 18, 2)
    kept.look({"m1": vitals(more, totals("failed", [5.0] * 3)), "m2": vitals(totals("change", [1.0] * 4))})
    counts = ("statements", "failed", "queries", "members_touched", "pruned", "unpruned")
    assert kept.lines(*counts) == {
        (5, "cluster"): (16, 2, 10, 15, 8, 2),
        (5, "controller"): (None,) * 6,
        (5, "m1"): (12, 2, 10, 15, 8, 2),
        (5, "m2"): (4, 0, 0, 0, 0, 0),
    }
    p50_ms, p99_ms = kept.lines("p50_ms", "p99_ms")[5, "m1"]
    assert (p50_ms, p99_ms) == (pytest.approx(0.2, rel=0.1), pytest.approx(8.0, rel=0.1))
    kept.look({"m1": vitals(more, totals("failed", [5.0] * 3)), "m2": vitals(totals("change", [1.0] * 4))})
    assert kept.lines("statements", "p99_ms")[10, "cluster"] == (0, None)


def test_statements_about_the_cluster_itself_do_not_count() -> None:
    kept = Kept()
    kept.look({"m1": vitals()})
    kept.look({"m1": vitals(totals("system", [1.0] * 50), totals("local", [1.0]))})
    assert kept.lines("statements")[5, "cluster"] == (1,)


def test_a_member_counts_from_its_second_answer_and_one_that_began_anew_from_nothing() -> None:
    kept = Kept()
    kept.look({"m1": vitals(totals("local", [1.0] * 9), cpu_s=9.0)})
    kept.look({"m1": vitals(totals("local", [1.0] * 2), cpu_s=0.5, process=8), "m2": vitals(totals("local", [1.0]))})
    assert kept.lines("statements", "cpu_percent") == {
        (5, "cluster"): (2, None),
        (5, "controller"): (None, 20.0),
        (5, "m1"): (2, None),
    }
    kept.look({"m2": vitals(totals("local", [1.0] * 4))})
    assert kept.lines("statements")[10, "cluster"] == (3,), "m1 is gone"


def test_what_processes_take_is_told() -> None:
    kept = Kept()
    kept.look({"m1": vitals(cpu_s=1.0)})
    kept.look({"m1": vitals(cpu_s=3.5, used=7)})
    assert kept.lines("cpu_percent", "resident_bytes", "memory_used") == {
        (5, "cluster"): (None, None, None),
        (5, "controller"): (20.0, MIB, None),
        (5, "m1"): (50.0, 100 * MIB, 7),
    }


def test_fifteen_minutes_are_kept_and_only_so_many_members_by_name() -> None:
    kept = Kept()
    everybody = {f"m{number}": vitals() for number in range(100)}
    for _ in range(200):
        kept.look(everybody)
    lines = list(kept.history.lines())
    assert (lines[-1].time - lines[0].time) == timedelta(seconds=5 * 179)
    assert len(lines) == 180 * (2 + 64)
