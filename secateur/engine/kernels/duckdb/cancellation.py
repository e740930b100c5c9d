"""A handle with which another thread stops a kernel call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol

from secateur.errors import JobCancelledError

_CANCELLED_AGAIN_S: Final = 0.05


class _Interruptible(Protocol):
    def interrupt(self) -> None: ...


class Cancellation:
    """Stops the kernel calls that were given it, now and later.

    One handle may serve several calls at once, such as all fragments of a job. A deadline is a timer that calls
    :meth:`cancel`.
    """

    __slots__ = ("_lock", "_running", "cancelled")

    def __init__(self) -> None:
        self.cancelled = False
        self._lock = threading.Lock()
        self._running: list[_Interruptible] = []

    def cancel(self) -> None:
        """Interrupt the running call and refuse later ones; safe from any thread and more than once.

        DuckDB loses an interrupt that arrives between two steps of a statement (binding and execution): a caller that
        must be sure uses :meth:`cancel_until`.
        """
        with self._lock:
            self.cancelled = True
            for cursor in self._running:
                cursor.interrupt()

    def cancel_until(
        self, is_over: Callable[[], bool], loop: asyncio.AbstractEventLoop, delay_s: float = _CANCELLED_AGAIN_S
    ) -> None:
        """:meth:`cancel` again and again, more and more seldom, until the calls are over. On that event loop."""
        self.cancel()
        if not is_over():
            loop.call_later(delay_s, self.cancel_until, is_over, loop, 2 * delay_s)

    def check(self) -> None:
        """Raise where a caller has a moment to notice.

        Raises:
            JobCancelledError: :meth:`cancel` was called.
        """
        if self.cancelled:
            raise JobCancelledError("the kernel call was cancelled before it began")

    def attach(self, cursor: _Interruptible) -> None:
        """Register a cursor that is about to run.

        Raises:
            JobCancelledError: :meth:`cancel` was called before.
        """
        with self._lock:
            self.check()
            self._running.append(cursor)

    def detach(self, cursor: _Interruptible) -> None:
        with self._lock:
            self._running.remove(cursor)


_AMBIENT: Final[ContextVar[Cancellation | None]] = ContextVar("secateur-cancellation", default=None)


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Iterator[None]:
    """While open, let a handle stop every kernel call of this thread, including those without a handle.

    It is for work that makes many calls, such as planning.
    """
    token = _AMBIENT.set(cancellation)
    try:
        yield
    finally:
        _AMBIENT.reset(token)


def check_cancelled() -> None:
    """Raise if the work of this thread was cancelled, which :func:`cancelled_by` is about.

    For loops in Python between kernel calls. Cost: a tenth of a microsecond.

    Raises:
        JobCancelledError: It was.
    """
    handle = _AMBIENT.get()
    if handle is not None and handle.cancelled:
        raise JobCancelledError("the work was cancelled")


def running_under(given: Cancellation | None) -> list[Cancellation]:
    """The handles that stop a kernel call: the one it was given, and the one of :func:`cancelled_by`."""
    ambient = _AMBIENT.get()
    return [handle for handle in (given, None if ambient is given else ambient) if handle is not None]
