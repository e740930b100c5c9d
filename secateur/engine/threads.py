"""The threads of the engine: for short calls, processors that block and kernel calls; and the time that these use.

Threads of kernels that work on many rows stand behind the event loop and short statements.

A kernel call keeps several cores busy: it runs in a thread of ours, and hands parts of its work to threads that belong
to the library and serve all calls. What these threads have used while calls ran is divided equally among them. So the
figures of all calls add up to the time that the process has used for kernels, and only the shares of calls that run
beside each other are estimates.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from time import monotonic, perf_counter
from typing import Any, Final, ParamSpec, TypeVar

from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.tracing import in_this_trace

P = ParamSpec("P")
T = TypeVar("T")

LONG_AFTER_S: Final = 0.2
"""A call that has run for so long is a long one."""

_TASKS: Final = "/proc/self/task"
_LISTED_S: Final = 0.1
"""The threads of the libraries are listed anew after so long; they are few, and stay."""
_NOT_YET: Final = -1.0


def _nothing() -> None:
    pass


class ElasticThreads(Executor):
    """Runs calls in the order of their arrival.

    A call that has run for a while no longer counts as one of those that the executor runs at the same time, so the
    next waiting call gets a thread of its own. Short calls thus wait for short calls only, although it is not known in
    advance which ones they are. These are two levels of a multilevel feedback queue; the lower one is the operating
    system's scheduler.

    It uses a few threads, and more while some of these have been busy with one call for long.

    Args:
        name: Prefix of the threads' names.
        threads: Calls that run at the same time, long ones not counted.
        threads_max: Calls that run at the same time in all.
        long_after_s: Seconds after which a call is a long one.
        initializer: Called at the beginning of each thread; must not raise.

    Source: F. Corbato, M. Daggett, R. Daley, "An experimental time-sharing system", 1962.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        threads_max: int,
        *,
        long_after_s: float = LONG_AFTER_S,
        initializer: Callable[[], None] = _nothing,
    ) -> None:
        self._name = name
        self._initializer = initializer
        self._threads = threads
        self._threads_max = max(threads, threads_max)
        self._long_after_s = long_after_s
        self._changed = threading.Condition()
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._workers: set[threading.Thread] = set()
        self._idle = 0
        self._started_s: dict[threading.Thread, float] = {}
        self._is_watched = False
        self._is_closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call as soon as there is a thread for it.

        Raises:
            RuntimeError: The executor is shut down.
        """
        future: Future[T] = Future()
        with self._changed:
            if self._is_closed:
                raise RuntimeError("the threads are shut down")
            self._calls.append((future, lambda: fn(*args, **kwargs)))
            self._provide()
            self._changed.notify(1 if not self._is_watched else len(self._workers) + 1)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; those that were taken still run, unless they are cancelled."""
        with self._changed:
            self._is_closed = True
            if cancel_futures:
                for future, _ in self._calls:
                    future.cancel()
                self._calls.clear()
            workers = list(self._workers)
            self._changed.notify_all()
        if wait:
            for worker in workers:
                worker.join()

    def _provide(self) -> None:
        """Begin the threads that the waiting calls may have; only with the lock."""
        while len(self._calls) > self._idle and len(self._workers) < self._threads_max:
            long_since_s = monotonic() - self._long_after_s
            if self._idle + sum(started_s > long_since_s for started_s in self._started_s.values()) >= self._threads:
                break
            worker = threading.Thread(target=self._work, name=f"{self._name}-{len(self._workers)}", daemon=True)
            self._workers.add(worker)
            self._idle += 1
            worker.start()
        if len(self._calls) > self._idle and len(self._workers) < self._threads_max and not self._is_watched:
            self._is_watched = True
            threading.Thread(target=self._watch, name=f"{self._name}-watch", daemon=True).start()

    def _watch(self) -> None:
        """While calls wait for a thread: look when the next running call becomes a long one."""
        with self._changed:
            while len(self._calls) > self._idle and len(self._workers) < self._threads_max and not self._is_closed:
                long_since_s = monotonic() - self._long_after_s
                ages_s = [
                    started_s - long_since_s for started_s in self._started_s.values() if started_s > long_since_s
                ]
                self._changed.wait(max(min(ages_s, default=self._long_after_s), 0.001))
                self._provide()
            self._is_watched = False

    def _work(self) -> None:
        me = threading.current_thread()
        self._initializer()
        while True:
            with self._changed:
                while not self._calls:
                    if self._is_closed or len(self._workers) > self._threads:
                        self._idle -= 1
                        self._workers.discard(me)
                        return
                    self._changed.wait()
                future, call = self._calls.popleft()
                self._idle -= 1
                self._started_s[me] = monotonic()
            if future.set_running_or_notify_cancel():
                try:
                    value = call()
                except BaseException as error:
                    future.set_exception(error)
                    del error
                else:
                    future.set_result(value)
                    del value
            del future, call  # a waiting thread must not keep the last rows alive
            with self._changed:
                del self._started_s[me]
                self._idle += 1


NICENESS: Final = 10
"""The niceness of these threads above that of the process: a tenth of the share of a thread that is not nice.

SCHED_IDLE was worse: a thread that never gets a core keeps DuckDB's locks, and the heavy statements took twice as
long.
"""
_NICEST: Final = 19

_log = logging.getLogger(__name__)


def lower_priority() -> None:
    """Let the other threads of this machine go before the one that calls. Calling twice does nothing more.

    On a busy machine, a lookup otherwise waits for its turn behind the statement that scans a table: the operating
    system gives every thread the same share, and a heavy statement has many. Threads that run users' Python are not
    lowered: they hold the interpreter's lock while they wait for a core, and the event loop would wait with them.

    Only on Linux, where threads have a niceness of their own; elsewhere, and where the system refuses, nothing changes.
    Threads that the calling one starts later inherit it. Cost: two system calls.
    """
    if sys.platform != "linux":
        return
    try:
        wanted = min(os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS, _NICEST)
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), wanted)
    except OSError as error:
        _warn_once(str(error))


def call_with_low_priority(call: Callable[[], T]) -> T:
    """Return what a call returns that runs in a thread of low priority, as do the threads that it starts.

    The calling thread keeps its priority: without a privilege it could not get it back.
    """
    if sys.platform != "linux":
        return call()
    with ThreadPoolExecutor(1, thread_name_prefix="secateur-low-priority", initializer=lower_priority) as thread:
        return thread.submit(call).result()


@functools.cache
def _warn_once(reason: str) -> None:
    _log.warning(
        "the priority of kernel threads stays as it is, so heavy statements can delay lookups on a busy machine: %s",
        reason,
    )


class StatementWork:
    """What a statement has cost, as far as it was done in kernel calls in threads, of all members together.

    Attributes:
        kernel_times: Seconds that the calls took, which may have run at the same time. Lists, because threads add to
            them.
        processor_times: Seconds of processor time, where :data:`~secateur.engine.threads.METER` is on.
        rows_read: Rows that they have read.
        loop_s: Seconds of the event loop for statements that came together, beside those of the request.
        result_bytes_max: Bytes that its result may hold; None for no bound of its own.
        counted_s: Seconds of processor time that are in the account of its tenant.
        added_late: Called when work is added after the statement was answered, as of a job whose rows come in parts.
    """

    __slots__ = (
        "_charged_s",
        "added_late",
        "counted_s",
        "kernel_times",
        "loop_s",
        "processor_times",
        "result_bytes_max",
        "rows_read",
    )

    def __init__(self, result_bytes_max: int | None = None) -> None:
        self.kernel_times: list[float] = []
        self.processor_times: list[float] = []
        self.rows_read = 0
        self.result_bytes_max = result_bytes_max
        self.added_late: Callable[[], None] = _nothing
        self.counted_s = 0.0
        self.loop_s = 0.0
        self._charged_s = 0.0

    def uncharged_s(self) -> float:
        """The processor time for which this was not called yet."""
        used_s = sum(self.processor_times)
        uncharged_s, self._charged_s = used_s - self._charged_s, used_s
        return uncharged_s


WORK: Final[ContextVar[StatementWork | None]] = ContextVar("secateur_statement_work", default=None)
"""Where a task counts the work of its statement; None unless slow statements are logged, or there are tenants."""

_SHORT_ROWS_MAX: Final = 100_000
"""Rows that a kernel reads within some milliseconds, unless it multiplies them."""


def is_long_over(rows: int) -> bool:
    """Whether a kernel call over so many rows is expected to take long; it then waits for other long ones."""
    return rows > _SHORT_ROWS_MAX


async def in_thread(
    executor: Executor, call: Callable[[Cancellation], T], cancellation: Cancellation | None = None
) -> T:
    """Run a call in a thread and wait for it. If the waiting is cancelled, so is the call.

    Args:
        executor: The threads.
        call: Gets the handle by which kernels are stopped.
        cancellation: The handle, where it serves several calls; None for one of its own.

    Raises:
        Error: The call fails.
    """
    cancellation = cancellation or Cancellation()
    work = WORK.get()
    is_measured = work is not None or METER.is_on
    running = executor.submit(in_this_trace(_timed(call, work) if is_measured else call), cancellation)
    try:
        return await asyncio.wrap_future(running)
    except asyncio.CancelledError:
        cancellation.cancel_until(running.done, asyncio.get_running_loop())
        raise


def _timed(call: Callable[[Cancellation], T], work: StatementWork | None) -> Callable[[Cancellation], T]:
    def timed(cancellation: Cancellation) -> T:
        begun = perf_counter()
        metered = METER.begin() if METER.is_on else None
        try:
            return call(cancellation)
        finally:
            processor_s = 0.0 if metered is None else METER.end(metered)
            if work is not None:
                work.kernel_times.append(perf_counter() - begun)
                work.processor_times.append(processor_s)

    return timed


class MeteredCall:
    """A kernel call that runs."""

    __slots__ = ("begun_s", "shared_s")

    def __init__(self) -> None:
        self.begun_s = time.thread_time()
        self.shared_s = 0.0


class ProcessorMeter:
    """Measures the kernel calls of a process. Thread-safe.

    Attributes:
        is_on: Whether calls are measured; they are from the moment on when somebody wants to know.
    """

    def __init__(self) -> None:
        self.is_on = False
        self._lock = threading.Lock()
        self._calls: set[MeteredCall] = set()
        self._clocks: dict[int, float] = {}
        """By thread of a library: its processor time as it was last looked at."""
        self._listed_s = 0.0

    def begin(self) -> MeteredCall:
        """A call begins in this thread. Cost: some microseconds, ten times as many every tenth of a second."""
        call = MeteredCall()
        with self._lock:
            self._divide()
            self._calls.add(call)
        return call

    def end(self, call: MeteredCall) -> float:
        """Return the seconds of processor time of a call that ends in this thread, in which it began."""
        with self._lock:
            self._divide()
            self._calls.discard(call)
        return time.thread_time() - call.begun_s + call.shared_s

    def _divide(self) -> None:
        """Give each call its share of what the threads of libraries have used since the last time."""
        now_s = time.monotonic()
        if now_s - self._listed_s > _LISTED_S:
            # A thread that has begun since has worked for these calls alone; of the first ones that is not known.
            unknown_s = 0.0 if self._listed_s else _NOT_YET
            self._listed_s = now_s
            self._clocks = {thread: self._clocks.get(thread, unknown_s) for thread in _library_threads()}
        used_s = 0.0
        for thread, before_s in self._clocks.items():
            with suppress(OSError):  # it has ended
                clock_s = time.clock_gettime(_clock_of(thread))
                used_s += 0.0 if before_s == _NOT_YET else clock_s - before_s
                self._clocks[thread] = clock_s
        if used_s and self._calls:
            share_s = used_s / len(self._calls)
            for call in self._calls:
                call.shared_s += share_s


def _library_threads() -> list[int]:
    """The threads of this process that are not Python's; none where the system does not list them."""
    try:
        listed = os.listdir(_TASKS)  # noqa: PTH208  # a third of the time of a Path
    except OSError:
        return []
    ours = {thread.native_id for thread in threading.enumerate()}
    return [number for number in map(int, listed) if number not in ours]


def _clock_of(thread: int) -> int:
    """The id of the clock of a thread's processor time, as Linux makes it: it may be that of one that has ended.

    ``time.pthread_getcpuclockid`` may not be asked about those.
    """
    return (~thread << 3) | 6


METER: Final = ProcessorMeter()
"""That of this process, whose members share the threads of the libraries."""
