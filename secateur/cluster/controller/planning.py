"""The threads in which the controller plans statements, and a fair order between clients.

Planning takes a few milliseconds, but some statements take long, and DuckDB cannot always be interrupted while it binds
one. Requests therefore wait in one queue for each client, the clients take turns, and each client has one planning at a
time. Two threads suffice as long as plannings end soon; when a planning has waited for a tenth of a second because both
are busy, another thread helps, up to a bound. A planning whose request was cancelled is cancelled, and so is one that
takes too long.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from secateur.cluster.loop_thread import STOP_S
from secateur.engine.kernels.duckdb.cancellation import Cancellation, cancelled_by
from secateur.errors import InterfaceError, LimitExceededError

T = TypeVar("T")

_THREADS: Final = 2
"""More would not plan faster, since planning is mostly Python, and would take time from the event loop."""
_THREADS_MAX: Final = 16
_WAITING_MAX: Final = 1024
_HELD_UP_S: Final = 0.1
_JOIN_S: Final = 0.5


@dataclass(eq=False, slots=True)
class _Planning:
    """One statement to plan."""

    client: int
    work: Callable[[], Any]
    result: Future[Any] = field(default_factory=Future)
    begun_s: float | None = None
    cancellation: Cancellation = field(default_factory=Cancellation)


class PlanningThreads:
    """Runs plannings. Its methods are called on one event loop.

    Args:
        waiting_max: Plannings that may wait, of all clients together.
        timeout_s: Seconds that one may take, without those in which it waits.
    """

    def __init__(self, waiting_max: int = _WAITING_MAX, timeout_s: float = math.inf) -> None:
        self._waiting_max = waiting_max
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        # What waits, by client, in the order of their turns; of those that run, the next has to wait for the last.
        self._queues: OrderedDict[int, deque[_Planning]] = OrderedDict()
        self._running: dict[int, _Planning] = {}
        self._waiting = 0
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._started = 0
        self._closed = False

    @property
    def waiting(self) -> int:
        """The number of plannings that have not begun."""
        return self._waiting

    async def run(self, client: int, work: Callable[[], T]) -> T:
        """Plan one statement for a client, when it is its turn. Cancelling the call cancels the planning.

        Args:
            client: The id of the client's connection.
            work: The planning.

        Raises:
            LimitExceededError: Too many plannings wait, and nothing was done; or this one has taken too long.
            Error: The planning fails.
        """
        planning = _Planning(client, work)
        self._enqueue(planning)
        loop = asyncio.get_running_loop()
        held_up = loop.call_later(_HELD_UP_S, self._help, planning)
        overdue = None if self._timeout_s == math.inf else loop.call_later(self._timeout_s, self._end_overdue, planning)
        try:
            return await asyncio.wrap_future(planning.result)
        except asyncio.CancelledError:
            self._give_up(planning)
            raise
        finally:
            held_up.cancel()
            if overdue is not None:
                overdue.cancel()

    def gone(self, client: int) -> None:
        """A client is gone: nothing is planned for it any more."""
        with self._lock:
            waiting = self._queues.pop(client, ())
            self._waiting -= len(waiting)
            running = self._running.get(client)
        for planning in waiting:
            planning.result.cancel()
        if running is not None:
            self._interrupt(running)

    async def close(self) -> None:
        """Cancel everything.

        Returns when the running plannings have ended, or after a few seconds: one that cannot be interrupted is
        abandoned.
        """
        with self._lock:
            self._closed = True
            waiting = [planning for queue in self._queues.values() for planning in queue]
            self._queues.clear()
            self._waiting = 0
            running = list(self._running.values())
            threads = list(self._threads)
            self._wake.notify_all()
        for planning in waiting:
            planning.result.cancel()
        if running:
            for planning in running:
                self._interrupt(planning)
            ending = [asyncio.wrap_future(planning.result) for planning in running]
            for future in ending:
                future.add_done_callback(_look_at)
            _, unending = await asyncio.wait(ending, timeout=STOP_S)
            if unending:
                return
        for thread in threads:
            thread.join(_JOIN_S)

    def _enqueue(self, planning: _Planning) -> None:
        with self._lock:
            if self._closed:
                raise InterfaceError("the controller is shutting down: no statement is planned any more")
            if self._waiting >= self._waiting_max:
                raise LimitExceededError(
                    f"{self._waiting} statements wait to be planned, which is the most: try again later; parameters in"
                    " place of literals need no new plan",
                    limit="planning_queue",
                    retry_safe=True,
                )
            self._queues.setdefault(planning.client, deque()).append(planning)
            self._waiting += 1
            self._wake.notify()
            if self._waiting > self._idle and len(self._threads) < _THREADS:
                self._start_thread()

    def _help(self, planning: _Planning) -> None:
        """A planning has waited for too long: start another thread if all are busy.

        It does not wait for a thread while its own client is being served.
        """
        with self._lock:
            if (
                self._closed
                or planning.client in self._running
                or planning not in self._queues.get(planning.client, ())
            ):
                return
            if not self._idle and len(self._threads) < _THREADS_MAX:
                self._start_thread()
        asyncio.get_running_loop().call_later(_HELD_UP_S, self._help, planning)

    def _end_overdue(self, planning: _Planning) -> None:
        """Answer a planning that has taken too long, and cancel it; one that has not yet is looked at again later."""
        if planning.result.done():
            return
        taken_s = 0.0 if planning.begun_s is None else time.monotonic() - planning.begun_s
        if taken_s < self._timeout_s:
            asyncio.get_running_loop().call_later(self._timeout_s - taken_s, self._end_overdue, planning)
            return
        with suppress(InvalidStateError):  # it has just ended
            planning.result.set_exception(
                LimitExceededError(
                    f"planning the statement took more than {self._timeout_s:g} s (planning_timeout_s): write it"
                    " shorter, for instance lists of values as IN or as parameters",
                    limit="planning_timeout_s",
                )
            )
            self._interrupt(planning)

    def _start_thread(self) -> None:
        # Daemons: a planning that cannot be interrupted must not keep the process from ending.
        self._started += 1
        thread = threading.Thread(target=self._main, name=f"secateur-planner-{self._started}", daemon=True)
        self._threads.add(thread)
        thread.start()

    def _main(self) -> None:
        try:
            while (planning := self._next()) is not None:
                self._plan(planning)
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _next(self) -> _Planning | None:
        with self._lock:
            while (client := next((one for one in self._queues if one not in self._running), None)) is None:
                if self._closed or len(self._threads) > _THREADS:
                    return None
                self._idle += 1
                self._wake.wait()
                self._idle -= 1
            planning = self._running[client] = self._queues[client][0]
            self._leave_queue(planning)
            return planning

    def _plan(self, planning: _Planning) -> None:
        found, failure = None, None
        if planning.result.set_running_or_notify_cancel():
            planning.begun_s = time.monotonic()
            try:
                with cancelled_by(planning.cancellation):
                    found = planning.work()
            except BaseException as error:
                failure = error
        with self._lock:
            del self._running[planning.client]
            if planning.client in self._queues:
                self._queues.move_to_end(planning.client)
        with suppress(InvalidStateError):  # it was cancelled before it began, or has been answered
            if failure is None:
                planning.result.set_result(found)
            else:
                planning.result.set_exception(failure)

    def _give_up(self, planning: _Planning) -> None:
        with self._lock:
            if planning in self._queues.get(planning.client, ()):
                self._leave_queue(planning)
                return
        self._interrupt(planning)

    def _leave_queue(self, planning: _Planning) -> None:
        queue = self._queues[planning.client]
        queue.remove(planning)
        self._waiting -= 1
        if not queue:
            del self._queues[planning.client]

    def _interrupt(self, planning: _Planning) -> None:
        loop = asyncio.get_running_loop()

        def is_over() -> bool:
            with self._lock:
                return loop.is_closed() or self._running.get(planning.client) is not planning

        planning.cancellation.cancel_until(is_over, loop)


def _look_at(future: asyncio.Future[Any]) -> None:
    """Retrieve a planning's exception, so that asyncio does not report it as unhandled."""
    if not future.cancelled():
        future.exception()
