"""Connections that have to send a request within a time: one that opens sockets and says nothing keeps none of them.

uvicorn bounds only the pause between two requests of a connection, and while it has as many as it may, it refuses the
requests of all of them: strangers without a token could keep everybody out with connections that ask for nothing. So
the oldest of those makes room for a new one, as at the ports of the cluster.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def bounded_protocol(headers_s_max: float, connections_max: int) -> type[H11Protocol]:
    """HTTP/1.1 whose connections end when the headers of a request take longer than that.

    A class, because uvicorn makes an object of it for each connection.

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
