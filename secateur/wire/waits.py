"""What a caller does while it waits for its peer, for another caller or for time to pass: it blocks its thread.

Everything that decides is written once, for callers that block. An event loop has waits of its own
(:mod:`secateur.aio.event_loop`), in which a call stands still and its thread goes on with others.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeVar

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
