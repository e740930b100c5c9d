"""Loops on a clock that only calls and waits move."""

from __future__ import annotations

import pytest

from benchmarks.peers.pacing import Clock, closed_loop, open_loop, poisson_schedule


class ManualClock:
    """A clock that stands still unless somebody waits or works."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self.now_s = now_s

    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, self.work)

    def work(self, seconds: float) -> None:
        self.now_s += seconds


def test_closed_loop_begins_on_time_and_ends_with_the_call_that_passes_the_end() -> None:
    manual = ManualClock()
    asked = []

    def call(value: str) -> None:
        asked.append((value, manual.now_s))
        manual.work(0.25)

    timed = closed_loop(call, ["a", "b"], begin_s=1001.0, seconds=0.6, clock=manual.clock())
    assert asked == [("a", 1001.0), ("b", 1001.25), ("a", 1001.5)]
    assert timed.latencies_us == pytest.approx([250_000] * 3)
    assert timed.elapsed_s == pytest.approx(0.75)


def test_closed_loop_calls_at_least_once() -> None:
    manual = ManualClock()
    timed = closed_loop(lambda _: manual.work(5), [1], begin_s=1000.0, seconds=0.0, clock=manual.clock())
    assert len(timed.latencies_us) == 1


def test_open_loop_counts_from_when_a_call_was_due_and_not_from_when_it_began() -> None:
    """A pause of one second in a service that otherwise takes 1 ms shows in all calls that were due meanwhile."""
    manual = ManualClock()
    calls = iter(range(100))

    def call(_: object) -> None:
        manual.work(1.0 if next(calls) == 1 else 0.001)

    due_s = [0.1 * number for number in range(1, 21)]
    timed = open_loop(call, [None], due_s, begin_s=1000.0, give_up_s=10, clock=manual.clock())
    assert len(timed.latencies_us) == 20
    assert timed.latencies_us[0] == pytest.approx(1_000)
    # The second was due at 0.2 s and answered at 1.2 s; the third was due at 0.3 s and began at 1.2 s, and so on.
    assert timed.latencies_us[1:5] == pytest.approx([1_000_000, 901_000, 802_000, 703_000])
    assert timed.latencies_us[-1] == pytest.approx(1_000)
    closed = closed_loop(lambda _: manual.work(0.001), [None], begin_s=manual.now_s, seconds=0.01, clock=manual.clock())
    assert max(closed.latencies_us) == pytest.approx(1_000), "the loop that coordinates with the service sees nothing"


def test_open_loop_does_not_call_before_a_call_is_due() -> None:
    manual = ManualClock()
    began = []
    open_loop(
        lambda _: began.append(manual.now_s), [None], [0.5, 0.75], begin_s=1000.0, give_up_s=2, clock=manual.clock()
    )
    assert began == [1000.5, 1000.75]


def test_open_loop_that_gives_up_counts_the_calls_that_still_wait() -> None:
    manual = ManualClock()
    due_s = [0.0, 0.1, 0.2, 0.3, 50.0]
    timed = open_loop(lambda _: manual.work(1), [None], due_s, begin_s=1000.0, give_up_s=1.5, clock=manual.clock())
    # Two calls were made, until 2.0 s; the next two were due and wait; the last is not due yet.
    assert timed.latencies_us == pytest.approx([1_000_000, 1_900_000, 1_800_000, 1_700_000])


def test_poisson_schedule_has_the_rate_and_repeats() -> None:
    due_s = poisson_schedule(rate_per_s=1000, seconds=20, seed=3)
    assert due_s == poisson_schedule(rate_per_s=1000, seconds=20, seed=3)
    assert due_s == sorted(due_s)
    assert due_s[0] > 0
    assert due_s[-1] < 20
    assert len(due_s) == pytest.approx(20_000, rel=0.03)
    assert due_s != poisson_schedule(rate_per_s=1000, seconds=20, seed=4)
