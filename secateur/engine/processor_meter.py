"""Processor time of kernel calls: that of their threads, and a share of that of the threads of DuckDB and Arrow.

A kernel call keeps several cores busy: it runs in a thread of ours, and hands parts of its work to threads that belong
to the library and serve all calls. What these threads have used while calls ran is divided equally among them. So the
figures of all calls add up to the time that the process has used for kernels, and only the shares of calls that run
beside each other are estimates.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Final

_TASKS: Final = "/proc/self/task"
_LISTED_S: Final = 0.1
"""The threads of the libraries are listed anew after so long; they are few, and stay."""
_NOT_YET: Final = -1.0


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
