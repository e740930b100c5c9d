"""The server: a listening socket, plain or with TLS, whose connections share one handler."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from secateur.errors import AuthenticationError, Error, OperationalError
from secateur.protocol.access import AccessRecord
from secateur.protocol.operations import Operation
from secateur.wire.buffers import PayloadBudget
from secateur.wire.connection import AcceptedConnections, FrameService, ServerConnection
from secateur.wire.frames import Limits
from secateur.wire.tls import Tls, server_context

_log = logging.getLogger(__name__)

_TLS_HANDSHAKE: Final = b"\x16"
"""The type of the first record of a TLS connection. Source: RFC 8446, section 5.1."""
_PAUSE_S: Final = 0.5
"""Rest after a failed accept; most likely all file descriptors are in use."""


class TlsListener:
    """Accepts the connections of a listening socket. Lives on the running event loop.

    The first byte of a connection says what its client speaks, and is looked at before a protocol gets the socket:
    asyncio's own server would hang up on a plain client without a word.

    Clients have no certificates: the token says who the client is, and certificates would be a second way to say the
    same.

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


_BACKLOG = 1024
ALIVE_S: Final = 1.0
"""Seconds between two signs of life to peers that wait for an answer."""


_ACCEPTING_TURNS: Final = 3
"""So many turns after it was accepted, a socket is a connection that its server knows: asyncio has a task make it."""


def _accept_no_more(server: asyncio.Server) -> None:
    loop = asyncio.get_running_loop()
    if isinstance(loop, asyncio.SelectorEventLoop):  # which loses a socket that is being accepted when it closes
        for listening in server.sockets:
            loop.remove_reader(listening)
    else:
        server.close()


class FrameServer:
    """Listens on a TCP port and serves frames on the running event loop.

    Args:
        service: What it does for those who connect.
        host: Address to listen on; loopback by default.
        port: Port to listen on; 0 takes any free one, see :attr:`port`.
        alive_s: Seconds between two signs of life to peers that wait for an answer.
        tls: The certificate by which it speaks TLS with everybody; None speaks it with nobody.

    Attributes:
        tokens: Those that it accepts, and what their bearers may do.
    """

    def __init__(
        self,
        service: FrameService,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        alive_s: float = ALIVE_S,
        tls: Tls | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._service = replace(service, operations={Operation.HELLO.code: Operation.HELLO, **service.operations})
        self._alive_s = alive_s
        self._tls = tls
        self.tokens = service.tokens
        limits = service.limits
        self._accepted = AcceptedConnections(PayloadBudget(limits.held_bytes_max, limits.stalled_s))
        self._server: asyncio.Server | TlsListener | None = None
        self._ticking: asyncio.TimerHandle | None = None

    @property
    def connection_count(self) -> int:
        return len(self._accepted.open)

    @property
    def held_bytes(self) -> int:
        """Bytes of payloads that have arrived and were not worked on yet."""
        return self._accepted.held.held

    async def start(self) -> None:
        """Listen; :attr:`port` is then the real one.

        Raises:
            OperationalError: The address cannot be listened on.
            ProgrammingError: The files of TLS cannot be used.
        """
        loop = asyncio.get_running_loop()
        try:
            if self._tls is None:
                server = await loop.create_server(self._connection, self.host, self.port, backlog=_BACKLOG)
                self._server, self.port = server, server.sockets[0].getsockname()[1]
            else:
                self._server = self._listening_for_tls(self._tls)
                self.port = self._server.port
        except OSError as error:
            raise OperationalError(
                f"cannot listen on {self.host}:{self.port}: {error}; choose another port, or 0 for any free one"
            ) from error
        self._tick()

    async def stop(self) -> None:
        """Stop listening, cancel running requests, and drop every connection.

        Nothing of it remains on the loop afterwards. May be called twice.
        """
        server, self._server = self._server, None
        if server is None:
            return
        if isinstance(server, TlsListener):
            await server.close()
        else:
            _accept_no_more(server)
        if self._ticking is not None:
            self._ticking.cancel()
        await self._drop_everything()
        if not isinstance(server, TlsListener):
            for _ in range(_ACCEPTING_TURNS):
                await asyncio.sleep(0)
            server.close()
            await self._drop_everything()
            await server.wait_closed()

    async def _drop_everything(self) -> None:
        caller = {asyncio.current_task()}  # a handler may stop its own server
        while self._accepted.open or self._accepted.tasks - caller:
            tasks = self._accepted.tasks - caller
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(connection.close() for connection in list(self._accepted.open)))

    def _listening_for_tls(self, tls: Tls) -> TlsListener:
        context = server_context(tls)  # a file that cannot be used leaves no socket open
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        return TlsListener(
            socket.create_server((self.host, self.port), family=family, backlog=_BACKLOG),
            context=context,
            limits=self._service.limits,
            secured=self._connection,
            plain=partial(
                self._connection,
                refusal=AuthenticationError(
                    "this cluster speaks TLS alone, and the connection does not: pass tls=Tls(ca=...) to connect, or"
                    " set SECATEUR_TLS_CA to the file with the authority of its certificate; nothing was done"
                ),
            ),
        )

    def take_access(self, access: AccessRecord) -> None:
        """Act on these tokens, roles and policies, and no others.

        Connections with a token that is not among them are closed.
        """
        if self.tokens.is_complete and access == self.tokens.access:
            return
        self.tokens.take(access)
        for connection in list(self._accepted.open):
            connection.access_changed(self.tokens)

    def _tick(self) -> None:
        """Send a sign of life to all peers that wait.

        One timer serves all connections, so requests that are answered quickly cost nothing.
        """
        self._ticking = asyncio.get_running_loop().call_later(self._alive_s, self._tick)
        for connection in self._accepted.open:
            connection.tell_alive()

    def _connection(self, refusal: Error | None = None) -> ServerConnection:
        return ServerConnection(self._service, self._accepted, refusal)
