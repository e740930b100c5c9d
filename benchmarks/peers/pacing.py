"""When calls begin: one after the other, or at times that were fixed before.

A closed loop calls again when it has its answer, so while one call is slow no other is made, and the wait that other
users would have had is in no figure (coordinated omission). An open loop has a schedule: a call that cannot begin in
time, because the one before it is not answered, begins late, and its time is counted from when it was due.
Source: G. Tene, "How NOT to Measure Latency", and his wrk2.

This file needs nothing but Python, because every peer's environment reads it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final

__all__ = ["Clock", "Timed", "closed_loop", "open_loop", "poisson_schedule"]

_COUNTER_BEGAN_S: Final = time.time() - time.perf_counter()


def _now_s() -> float:
    """Seconds since the epoch, by a counter that is never set back."""
    return _COUNTER_BEGAN_S + time.perf_counter()


@dataclass(frozen=True, slots=True)
class Clock:
    """What time it is, in seconds since the epoch, and how to wait; tests have one that does not wait.

    Attributes:
        now_s: All processes of the machine see the same, so they begin together.
        sleep_s: Waits that long.
    """

    now_s: Callable[[], float] = _now_s
    sleep_s: Callable[[float], None] = time.sleep


@dataclass(slots=True)
class Timed:
    """What a loop measured.

    Attributes:
        elapsed_s: From the planned start to the last answer.
        latencies_us: One for each call, in the order of the calls.
    """

    elapsed_s: float = 0.0
    latencies_us: list[float] = field(default_factory=list)


def closed_loop(
    call: Callable[[Any], Any], values: Sequence[Any], *, begin_s: float, seconds: float, clock: Clock | None = None
) -> Timed:
    """Call again and again, from ``begin_s`` on and for so many seconds; at least once."""
    clock = clock or Clock()
    timed = Timed()
    _wait_until(begin_s, clock)
    end_s, now_s = begin_s + seconds, clock.now_s()
    for value in cycle(values):
        call(value)
        last_s, now_s = now_s, clock.now_s()
        timed.latencies_us.append((now_s - last_s) * 1e6)
        if now_s >= end_s:
            break
    timed.elapsed_s = now_s - begin_s
    return timed


def open_loop(
    call: Callable[[Any], Any],
    values: Sequence[Any],
    due_s: Sequence[float],
    *,
    begin_s: float,
    give_up_s: float,
    clock: Clock | None = None,
) -> Timed:
    """Call at each of the times, or as soon as the call before is answered.

    Args:
        call: What is called with one of the values.
        values: Taken in turn, from the first again after the last.
        due_s: When each call is due, in seconds after ``begin_s``, in ascending order.
        begin_s: When the schedule begins.
        give_up_s: Seconds after ``begin_s`` at which a loop that is too late stops; calls that are due and were not
            made by then count as calls that have waited until then, so that they are missing in no percentile.
        clock: What time it is.
    """
    clock = clock or Clock()
    timed = Timed()
    _wait_until(begin_s, clock)
    for value, due in zip(cycle(values), due_s, strict=False):
        if clock.now_s() - begin_s > give_up_s:
            break
        _wait_until(begin_s + due, clock)
        call(value)
        timed.latencies_us.append((clock.now_s() - begin_s - due) * 1e6)
    timed.elapsed_s = clock.now_s() - begin_s
    missing = due_s[len(timed.latencies_us) :]
    timed.latencies_us += [(timed.elapsed_s - due) * 1e6 for due in missing if due < timed.elapsed_s]
    return timed


def poisson_schedule(rate_per_s: float, seconds: float, seed: int) -> list[float]:
    """Times of calls that do not know of each other, so many a second on average; the same ones for the same seed."""
    return list(_arrivals(rate_per_s, seconds, random.Random(seed)))


def _arrivals(rate_per_s: float, seconds: float, numbers: random.Random) -> Iterator[float]:
    due = numbers.expovariate(rate_per_s)
    while due < seconds:
        yield due
        due += numbers.expovariate(rate_per_s)


def _wait_until(when_s: float, clock: Clock) -> None:
    while (left_s := when_s - clock.now_s()) > 0:
        clock.sleep_s(left_s)
