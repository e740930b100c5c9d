"""Threads for calls that should be short, in which calls that turn out to be long do not delay others.

A call that has run for a while no longer counts as one of those that the executor runs at the same time, so the next
waiting call gets a thread of its own. Short calls thus wait for short calls only, although it is not known in advance
which ones they are. These are two levels of a multilevel feedback queue; the lower one is the operating system's
scheduler.

Source: F. Corbato, M. Daggett, R. Daley, "An experimental time-sharing system", 1962.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from time import monotonic
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LONG_AFTER_S: Final = 0.2
"""A call that has run for so long is a long one."""


def _nothing() -> None:
    pass


class ElasticThreads(Executor):
    """Runs calls in the order of their arrival.

    It uses a few threads, and more while some of these have been busy with one call for long.

    Args:
        name: Prefix of the threads' names.
        threads: Calls that run at the same time, long ones not counted.
        threads_max: Calls that run at the same time in all.
        long_after_s: Seconds after which a call is a long one.
        initializer: Called at the beginning of each thread; must not raise.
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
