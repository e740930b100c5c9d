"""HTTPS that tells a client without TLS what is wrong, where uvicorn alone would hang up without a word."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any, Final, cast

import uvicorn

from secateur.wire.limits import Limits
from secateur.wire.tls_listener import TlsListener

_LINGER_S: Final = 1.0


class HttpsServer(uvicorn.Server):
    """uvicorn's server, which accepts its connections by a :class:`~secateur.wire.tls_listener.TlsListener`.

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
    """Answers whatever a client without TLS asks, and hangs up."""

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
