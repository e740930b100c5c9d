"""Serves a cluster over HTTP with uvicorn."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
import time
from collections.abc import Collection
from types import TracebackType
from typing import Final, Self

import uvicorn

from secateur.client.address import parse_address
from secateur.client.connect import connect, token_for
from secateur.errors import InterfaceError, NotSupportedError, OperationalError
from secateur.server.application import app
from secateur.server.http_protocol import bounded_protocol
from secateur.server.https_server import HttpsServer
from secateur.server.limits import ServerLimits
from secateur.wire.tls import Tls, server_context

_CONNECTIONS_MAX: Final = 512
"""With so many uvicorn refuses requests, so room is made before that."""
_BACKLOG: Final = 128
_KEEP_ALIVE_S: Final = 30
_STOP_S: Final = 5
_START_S: Final = 30.0
_CONNECT_S: Final = 2.0


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
            http=bounded_protocol(bounds.request_s_max, _CONNECTIONS_MAX - 1),
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
            uvicorn.Server(config) if context is None else HttpsServer(config, context, bounds.request_s_max, self.url)
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
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
