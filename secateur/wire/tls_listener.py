"""Accepts TLS connections, and tells a client that speaks none that it should.

The first byte of a connection says what its client speaks, and is looked at before a protocol gets the socket:
asyncio's own server would hang up on a plain client without a word.

Clients have no certificates: the token says who the client is, and certificates would be a second way to say the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

from secateur.wire.limits import Limits

_log = logging.getLogger(__name__)

_TLS_HANDSHAKE: Final = b"\x16"
"""The type of the first record of a TLS connection. Source: RFC 8446, section 5.1."""
_PAUSE_S: Final = 0.5
"""Rest after a failed accept; most likely all file descriptors are in use."""


class TlsListener:
    """Accepts the connections of a listening socket. Lives on the running event loop.

    Args:
        listener: The socket, which it closes at the end.
        context: What TLS needs.
        limits: Bounds of connections that have not said hello: a TLS handshake has ``hello_timeout_s``, and of
            connections that are in one there are ``unproven_max``.
        secured: Makes the protocol of a connection over TLS.
        plain: Makes the protocol of a connection without, which refuses it.
    """

    def __init__(
        self,
        listener: socket.socket,
        *,
        context: ssl.SSLContext,
        limits: Limits,
        secured: Callable[[], asyncio.BaseProtocol],
        plain: Callable[[], asyncio.BaseProtocol],
    ) -> None:
        self._listener = listener
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._context = context
        self._limits = limits
        self._secured = secured
        self._plain = plain
        self._welcoming: dict[asyncio.Task[None], socket.socket] = {}  # in the order in which they came
        self._ending: set[asyncio.Task[None]] = set()
        self._handed_over: set[socket.socket] = set()
        self._resting: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._listen()

    async def close(self) -> None:
        """Stop listening, and drop the connections that no protocol has yet."""
        self._loop.remove_reader(self._listener)
        if self._resting is not None:
            self._resting.cancel()
        for task in list(self._welcoming):
            self._drop(task)
        await asyncio.gather(*self._ending, return_exceptions=True)
        await asyncio.sleep(0)  # the transports of handshakes that have failed close their sockets now
        self._listener.close()

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        """Take one connection that waits.

        It is a callback: a task that awaits ``sock_accept`` and is cancelled just then loses the socket unclosed.
        """
        try:
            accepted, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # the peer was faster and has gone
            return
        except OSError as error:
            _log.warning("no connection could be accepted: %s", error)
            self._loop.remove_reader(self._listener)
            self._resting = self._loop.call_later(_PAUSE_S, self._listen)
            return
        task = self._loop.create_task(self._welcome(accepted), name="TLS handshake")
        self._welcoming[task] = accepted
        task.add_done_callback(partial(self._ended, accepted))
        if len(self._welcoming) > self._limits.unproven_max:
            self._drop(next(iter(self._welcoming)))

    def _drop(self, task: asyncio.Task[None]) -> None:
        """End a handshake as if the peer had hung up: asyncio leaves the socket of one that is cancelled open."""
        accepted = self._welcoming.pop(task)
        if task.done():
            return
        self._ending.add(task)
        with contextlib.suppress(OSError):  # the peer has hung up itself
            accepted.shutdown(socket.SHUT_RDWR)

    def _ended(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._welcoming.pop(task, None)
        self._ending.discard(task)
        if accepted in self._handed_over:
            self._handed_over.remove(accepted)
        else:  # also of a task that was cancelled before its first step
            accepted.close()

    async def _welcome(self, accepted: socket.socket) -> None:
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio's own servers set it as well
            async with asyncio.timeout(self._limits.hello_timeout_s):
                first = await self._first_byte(accepted)
            if not first:
                return
            self._handed_over.add(accepted)  # a transport closes its socket, whatever happens to it
            if first == _TLS_HANDSHAKE:
                await self._loop.connect_accepted_socket(
                    self._secured,
                    accepted,
                    ssl=self._context,
                    ssl_handshake_timeout=self._limits.hello_timeout_s,
                )
            else:
                await self._loop.connect_accepted_socket(self._plain, accepted)
        except (OSError, TimeoutError) as error:
            _log.debug("a TLS handshake failed: %s", error)

    def _note(self, arrived: asyncio.Future[None]) -> None:
        if not arrived.done():
            arrived.set_result(None)

    async def _first_byte(self, accepted: socket.socket) -> bytes:
        """The first byte, which stays in the socket; nothing if the peer hung up."""
        arrived: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(accepted, self._note, arrived)
        try:
            await arrived
        finally:
            self._loop.remove_reader(accepted)
        return accepted.recv(1, socket.MSG_PEEK)
