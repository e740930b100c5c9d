"""What a caller does while it waits for its peer, for another caller or for time to pass, and what ends that.

Everything that decides is written once, for callers that block. An event loop has waits of its own
(:mod:`secateur.aio.event_loop`), in which a call stands still and its thread goes on with others.
"""

from __future__ import annotations

import math
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeVar

import msgspec

from secateur.errors import Error
from secateur.forks import free_in_forks

T = TypeVar("T")


class Stream(Protocol):
    """The part of a connected socket that is used: with ``settimeout``, ``recv`` and ``sendall`` wait."""

    def settimeout(self, value: float, /) -> None: ...
    def sendall(self, data: bytes | memoryview, /) -> None: ...
    def recv(self, bufsize: int, /) -> bytes: ...
    def recv_into(self, buffer: memoryview, /) -> int: ...
    def shutdown(self, how: int, /) -> None: ...
    def close(self) -> None: ...


class Waits:
    """The waits of a caller that blocks its thread.

    Attributes:
        idle_max: Connections to a member that are kept for the next requests, of which so many come at the same time.
    """

    idle_max = 8

    def connect(self, host: str, port: int, timeout_s: float) -> Stream:
        """Make a TCP connection that sends small frames at once.

        Raises:
            OSError: There is none within the time.
        """
        connected = socket.create_connection((host, port), timeout=timeout_s)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected

    def encrypt(self, connected: Any, context: ssl.SSLContext, server_name: str, timeout_s: float) -> Stream:
        """Begin TLS over a connection, as the client; takes its place.

        Raises:
            OSError: The handshake fails, or takes longer.
        """
        connected.settimeout(timeout_s)
        return context.wrap_socket(connected, server_hostname=server_name)

    def lock(self) -> AbstractContextManager[Any]:
        """A lock that may be held while its holder waits for a peer."""
        return free_in_forks(threading.Lock())

    def sleep(self, seconds: float) -> None:
        """Wait for time to pass."""
        time.sleep(seconds)

    def local(self) -> Any:
        """An object whose attributes each caller has for itself."""
        return threading.local()

    def apart(self, work: Callable[[], T], give_up: Callable[[], object]) -> T:
        """Do work that waits for threads of its own, or for files.

        Args:
            work: The work.
            give_up: Has it end soon, where it goes on although its caller has gone.
        """
        return work()


BLOCKING: Final = Waits()


TIMEOUTS: Final = (TimeoutError, BlockingIOError)
"""The errors of ``send`` and ``recv`` at the end of a wait: by Python's own bound, and by that of the kernel."""

_TIMEVAL: Final = struct.Struct("ll")
_KERNEL_BOUNDS: Final = sys.platform == "linux" and _TIMEVAL.size == 16
_TICK_S: Final = 0.01
"""The kernel counts in ticks, the first of which has begun already: a wait may be shorter by one than was asked."""


def wait_at_most(connected: Stream, seconds: float) -> None:
    """Bound the time for which each following ``send`` or ``recv`` waits; at its end they raise one of `TIMEOUTS`.

    Python bounds a wait with a call of ``poll`` before each ``send`` and ``recv``: four system calls for a request and
    its answer, where the kernel can bound two by itself.

    A thread that looked for its answer without waiting before it waits, 24 to 48 times with ``sched_yield`` between,
    had an echo in 20 microseconds instead of 29, and a row by key in the same time as one that waits at once. It does
    not look.

    Args:
        connected: A connected socket.
        seconds: More than 0. Never less, and up to 20 ms more.
    """
    # A socket of TLS looks at the time-out of Python's alone.
    if not _KERNEL_BOUNDS or type(connected) is not socket.socket:
        connected.settimeout(seconds)
        return
    whole = math.ceil((seconds + _TICK_S) * 1e6)
    bound = _TIMEVAL.pack(whole // 1_000_000, whole % 1_000_000)
    connected.setblocking(True)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bound)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)


_lock: Final = free_in_forks(threading.Lock())
"""One for all: it is held while calls are ended, and making one for each statement would cost as much as a look-up."""


class _Abortable(Protocol):
    def abort(self) -> None: ...


class CallControl(msgspec.Struct, eq=False, weakref=True):
    """The calls of one statement, one after the other or several at once, which are ended together.

    Ending a call closes its channel, so the server stops working on it.

    Attributes:
        deadline_s: On the clock of :func:`time.monotonic`; None for none.
        late: The error of calls that are ended at the deadline; needed where there is one.
        ended: Why calls are ended, unless only the deadline has passed; None while they are not.
        calls: The calls under way. Each adds itself before it looks whether it may begin, removes itself when it has
            ended, and then waits for :meth:`end` if that has been called: whoever ends calls has said so before it
            looks for them.
    """

    deadline_s: float | None = None
    late: Error | None = None
    ended: Error | None = None
    calls: list[_Abortable] = []

    @property
    def error(self) -> Error | None:
        """Why calls are ended; None while they are not."""
        if self.ended is None and self.deadline_s is not None and time.monotonic() >= self.deadline_s:
            self.ended = self.late
        return self.ended

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
            self.ended = self.ended or error
            for call in tuple(self.calls):
                call.abort()

    def settle(self) -> None:
        """Wait for who ends calls, and may be about to abort a channel that others are to use."""
        with _lock:
            pass
