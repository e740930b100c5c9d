"""Serves a cluster over HTTP with uvicorn."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Collection
from typing import Any, Final, Self, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from secateur.client.connect import connect, parse_address, token_for
from secateur.errors import InterfaceError, NotSupportedError, OperationalError
from secateur.server.application import app
from secateur.server.limits import ServerLimits
from secateur.wire.frames import Limits
from secateur.wire.server import TlsListener
from secateur.wire.tls import Tls, server_context

_CONNECTIONS_MAX: Final = 512
"""With so many uvicorn refuses requests, so room is made before that."""
_BACKLOG: Final = 128
_KEEP_ALIVE_S: Final = 30
_STOP_S: Final = 5
_START_S: Final = 30.0
_CONNECT_S: Final = 2.0
_LINGER_S: Final = 1.0


class HttpServer:
    """A running HTTP server; a context manager that stops it.

    The port is open when the constructor returns, and answers once :meth:`start` or :meth:`run` was called.

    Args:
        address: ``secateur://host:port`` of the cluster.
        token: Its secret; by default as :func:`secateur.connect` finds it.
        host: The address to listen on.
        port: The port; 0 takes any free one.
        limits: What runs at once, and what is kept.
        hosts: Names under which callers reach it; see :func:`app`.
        tls: The certificate and key by which it speaks HTTPS; None for HTTP.
        cluster_tls: How its connections to the cluster are encrypted; by default as :func:`secateur.connect` finds it.

    Raises:
        NotSupportedError: It would listen beyond this machine without a token.
        ProgrammingError: The files of ``tls`` cannot be used.
        AuthenticationError: The token is not that of the cluster.
        UnreachableError: The cluster cannot be reached.
        InterfaceError: The address has another form, or the port is taken.
    """

    def __init__(
        self,
        address: str,
        token: str | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        limits: ServerLimits | None = None,
        hosts: Collection[str] = (),
        tls: Tls | None = None,
        cluster_tls: Tls | None = None,
    ) -> None:
        secret = token_for(*parse_address(address), token)
        if secret is None and not _is_loopback(host):
            raise NotSupportedError(
                f"the HTTP server would listen on {host!r} for a cluster without a token, and let in everybody who"
                " reaches it: start the cluster with a token, or listen on 127.0.0.1"
            )
        context = None if tls is None else server_context(tls)  # now: a wrong file is not for the thread of the server
        connect(
            address, token=secret or "", connect_timeout_s=_CONNECT_S, tls=cluster_tls
        ).close()  # and a wrong token than by the first caller
        bounds = ServerLimits() if limits is None else limits
        application = app(address, secret or "", limits=bounds, hosts=[*hosts, host], cluster_tls=cluster_tls)
        try:
            self._socket = _listening(host, port)
        except OSError as error:
            raise InterfaceError(
                f"the HTTP server cannot listen on {host}:{port} ({error}): is another process there? Choose another"
                " port, or 0 for any"
            ) from error
        config = uvicorn.Config(
            application,
            http=_bounded_protocol(bounds.request_s_max, _CONNECTIONS_MAX - 1),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS_MAX,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_STOP_S,
        )
        self._thread: threading.Thread | None = None
        bound_host, bound_port = self._socket.getsockname()[:2]
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://{f'[{bound_host}]' if ':' in bound_host else bound_host}:{bound_port}"
        """Where it listens, without a slash at the end."""
        self._server = (
            uvicorn.Server(config) if context is None else _HttpsServer(config, context, bounds.request_s_max, self.url)
        )

    def run(self) -> None:
        """Serve until the process is interrupted. Blocks; signals end it in the main thread."""
        try:
            asyncio.run(self._server.serve(sockets=[self._socket]))
        finally:
            self._socket.close()

    def start(self) -> Self:
        """Serve from a thread, and return once it answers.

        Raises:
            OperationalError: It does not start.
        """
        self._thread = threading.Thread(target=self.run, name="secateur-http-server", daemon=True)
        self._thread.start()
        end_s = time.monotonic() + _START_S
        while not self._server.started:
            if time.monotonic() > end_s or not self._thread.is_alive():
                raise OperationalError(f"the HTTP server at {self.url} did not start within {_START_S:g} s")
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """Cancel what runs, answer what is under way, and end. May be called twice."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def serve(
    address: str,
    token: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    *,
    limits: ServerLimits | None = None,
    hosts: Collection[str] = (),
    tls: Tls | None = None,
    cluster_tls: Tls | None = None,
) -> None:
    """Serve a cluster over HTTP until the process is interrupted: docs/http.md has the paths.

    The arguments are those of :class:`HttpServer`.

    Raises:
        Error: As :class:`HttpServer`.
    """
    HttpServer(address, token, host=host, port=port, limits=limits, hosts=hosts, tls=tls, cluster_tls=cluster_tls).run()


def _listening(host: str, port: int) -> socket.socket:
    """A socket that accepts connections.

    It names its protocol, as ``socket.create_server`` does not: asyncio sends small answers without delay (TCP_NODELAY)
    only over sockets that do, and each answer took 40 ms longer.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _HttpsServer(uvicorn.Server):
    """uvicorn's server, which accepts its connections by a :class:`~secateur.wire.server.TlsListener`.

    Args:
        config: That of uvicorn, without its own TLS.
        context: What TLS needs.
        handshake_s_max: Seconds that a connection has for its handshake.
        url: Where it is reached.
    """

    def __init__(self, config: uvicorn.Config, context: ssl.SSLContext, handshake_s_max: float, url: str) -> None:
        super().__init__(config)
        self._context = context
        self._limits = Limits(hello_timeout_s=handshake_s_max)
        self._url = url
        self._listeners: list[TlsListener] = []
        self._refused: set[asyncio.Transport] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen with TLS on sockets that are bound."""
        await super().startup(sockets=[])
        self._listeners = [
            TlsListener(
                listener,
                context=self._context,
                limits=self._limits,
                secured=self._connection,
                plain=lambda: _PlainConnection(self._url, self._refused),
            )
            for listener in sockets or []
        ]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, answer what is under way, and end."""
        for listener in self._listeners:
            await listener.close()
        for transport in tuple(self._refused):
            transport.abort()
        await super().shutdown(sockets=[])

    def _connection(self) -> asyncio.Protocol:
        make = cast("Any", self.config.http_protocol_class)  # the same call as in uvicorn's own startup()
        made: asyncio.Protocol = make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        return made


class _PlainConnection(asyncio.Protocol):
    """Answers whatever a client without TLS asks, and hangs up; uvicorn alone would hang up without a word."""

    def __init__(self, url: str, open_ones: set[asyncio.Transport]) -> None:
        self._url = url
        self._open_ones = open_ones
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        writing = self._transport = cast("asyncio.Transport", transport)
        self._open_ones.add(writing)
        text = (
            f"This server speaks HTTPS alone, and the request came over HTTP: ask {self._url} instead. Nothing was"
            " done; a token that was sent may have been read on the way: revoke it.\n"
        )
        writing.write(
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
            + f"Content-Length: {len(text)}\r\n\r\n{text}".encode()
        )
        writing.write_eof()
        # What the client still sends is read and dropped for a moment: closing on unread bytes would reset the
        # connection, and lose the answer.
        asyncio.get_running_loop().call_later(_LINGER_S, writing.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open_ones.discard(self._transport)


def _bounded_protocol(headers_s_max: float, connections_max: int) -> type[H11Protocol]:
    """HTTP/1.1 whose connections end when the headers of a request take longer than that.

    A class, because uvicorn makes an object of it for each connection.

    uvicorn bounds only the pause between two requests of a connection, and while it has as many as it may, it refuses
    the requests of all of them: strangers without a token could keep everybody out with connections that ask for
    nothing. So the oldest of those makes room for a new one, as at the ports of the cluster.

    Args:
        headers_s_max: Seconds for the headers of a request.
        connections_max: Connections, from which on the oldest that asks for nothing is closed for a new one.
    """
    return type(
        "BoundedHttpProtocol",
        (_BoundedHttpProtocol,),
        {"headers_s_max": headers_s_max, "connections_max": connections_max, "_opened": {}},
    )


class _BoundedHttpProtocol(H11Protocol):
    headers_s_max: float
    connections_max: int
    _opened: dict[_BoundedHttpProtocol, None]
    """The connections of the server, the oldest first."""
    _headers_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first request is expected from now on."""
        super().connection_made(transport)
        if len(self._opened) >= self.connections_max:
            self._make_room()
        self._opened[self] = None
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Part of a request, or one and more."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:  # no headers are complete, nor is a body awaited
            self._expect()
        else:
            self._be_content()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more."""
        self._opened.pop(self, None)
        self._be_content()
        super().connection_lost(exc)

    def _make_room(self) -> None:
        """Close the oldest connection that has no request under way, if there is one."""
        for connection in self._opened:
            if connection.conn.their_state is h11.IDLE:
                del self._opened[connection]
                connection.transport.abort()
                return

    def _expect(self) -> None:
        if self._headers_due is None:
            self._headers_due = self.loop.call_later(self.headers_s_max, self._give_up)

    def _be_content(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None

    def _give_up(self) -> None:
        self._headers_due = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.timeout_keep_alive_handler()
