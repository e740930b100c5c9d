"""Ends calls over channels from outside: at a deadline, or when another thread cancels them."""

from __future__ import annotations

import threading
import time
from typing import Final, Protocol

from secateur.errors import Error
from secateur.forks import free_in_forks

_lock: Final = free_in_forks(threading.Lock())
"""One for all: it is held while calls are ended, and making one for each statement would cost as much as a look-up."""


class _Abortable(Protocol):
    def abort(self) -> None: ...


class CallControl:
    """The calls of one statement, one after the other or several at once, which are ended together.

    Ending a call closes its channel, so the server stops working on it.

    Args:
        deadline_s: On the clock of :func:`time.monotonic`; None for none.
        late: The error of calls that are ended at the deadline; needed where there is one.
    """

    __slots__ = ("__weakref__", "_calls", "_ended", "_late", "deadline_s")

    def __init__(self, deadline_s: float | None = None, late: Error | None = None) -> None:
        self.deadline_s = deadline_s
        self._late = late
        self._ended: Error | None = None
        self._calls: list[_Abortable] = []

    @property
    def error(self) -> Error | None:
        """Why calls are ended; None while they are not."""
        if self._ended is None and self.deadline_s is not None and time.monotonic() >= self.deadline_s:
            self._ended = self._late
        return self._ended

    def check(self) -> None:
        """Raise if calls are to be ended.

        Raises:
            Error: Why.
        """
        error = self.error
        if error is not None:
            raise error

    def end(self, error: Error) -> None:
        """End the calls under way and those to come, with an error; from any thread."""
        with _lock:
            self._ended = self._ended or error
            for call in tuple(self._calls):
                call.abort()

    def begin(self, call: _Abortable) -> None:
        """A call begins.

        Raises:
            Error: Calls are to be ended.
        """
        self._calls.append(call)
        # Whoever ends calls has said so before it looks for them: it finds this one, or this finds that out.
        if self._ended is not None or self.deadline_s is not None:
            try:
                self.check()
            except Error:
                self.done(call)
                raise

    def done(self, call: _Abortable) -> None:
        """A call has ended; its channel is not aborted after this."""
        self._calls.remove(call)
        if self._ended is not None:  # another thread may be about to abort the channel, which others are to use
            with _lock:
                pass
