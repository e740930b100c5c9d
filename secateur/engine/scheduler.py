"""Schedules everything that is ready on the event loop, in slices that leave time for the network.

Source: Hazelcast Jet's cooperative multithreading (``TaskletExecutionService``), with wake-ups instead of polling.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final, Protocol

LONG_TURN_S: Final = 0.05
"""A turn of this length has held up everything else that the member serves; slices are shorter."""


class Runnable(Protocol):
    """A unit of work that the scheduler calls when it is ready.

    Attributes:
        is_scheduled: Owned by the scheduler: whether it is in a queue.
    """

    is_scheduled: bool

    def run(self) -> None:
        """Do a little work. Must not raise: it deals with its own failures."""


class TimedRunnable(Runnable, Protocol):
    """A unit of work whose time is measured.

    Attributes:
        turns_s: Seconds that its turns have taken, added up by the scheduler. The clock is read once a turn, which the
            end of the slice needs anyway.
    """

    turns_s: float


class Scheduler:
    """The ready queues of one member; all its jobs share them and take turns.

    Args:
        loop: The event loop.
        slice_s: Seconds of turns after which the network is served.
        on_long_turn: Called for each turn that took longer than :data:`LONG_TURN_S`, with its duration.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        slice_s: float,
        on_long_turn: Callable[[TimedRunnable, float], None] | None = None,
    ) -> None:
        self._loop = loop
        self._on_long_turn = on_long_turn
        self._slice_s = slice_s
        self._ready: deque[TimedRunnable] = deque()
        self._at_end: deque[Runnable] = deque()
        self._is_armed = False

    def ready(self, runnable: TimedRunnable) -> None:
        """Give it a turn soon. Repeated calls before that turn have no further effect."""
        if not runnable.is_scheduled:
            runnable.is_scheduled = True
            self._ready.append(runnable)
            self._arm()

    def at_end_of_slice(self, runnable: Runnable) -> None:
        """Give it a turn when nothing else is ready or the slice is over.

        One message then carries everything that was made in between, including the end of an edge.
        """
        if not runnable.is_scheduled:
            runnable.is_scheduled = True
            self._at_end.append(runnable)
            self._arm()

    def later(self, delay_s: float, runnable: TimedRunnable) -> None:
        """Give it a turn after a while."""
        self._loop.call_later(delay_s, self.ready, runnable)

    def _arm(self) -> None:
        if not self._is_armed:
            self._is_armed = True
            self._loop.call_soon(self._run_slice)

    def _run_slice(self) -> None:
        ready, at_end = self._ready, self._at_end
        before = perf_counter()
        end = before + self._slice_s
        try:
            while ready:
                runnable = ready.popleft()
                runnable.is_scheduled = False
                runnable.run()
                now = perf_counter()
                runnable.turns_s += now - before
                if now >= end:
                    if now - before > LONG_TURN_S and self._on_long_turn is not None:
                        self._on_long_turn(runnable, now - before)
                    break
                before = now
            for _ in range(len(at_end)):
                sender = at_end.popleft()
                sender.is_scheduled = False
                sender.run()
        finally:
            # Even after a bug in one runnable, the others still get their turns.
            self._is_armed = bool(ready or at_end)
            if self._is_armed:
                self._loop.call_soon(self._run_slice)
