"""The control: 200 bytes to a process of its own and back, over a blocking socket with TCP_NODELAY.

The server is a bare asyncio protocol, the kind of socket that a member of secateur reads from.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from benchmarks.peers.caller import Call, serve_calls
from benchmarks.peers.service import serve
from benchmarks.peers.statements import Statement

_DATA: Final = b"x" * 200


class _Caller:
    def connect(self, service: dict[str, Any]) -> None:
        self._socket = socket.create_connection(("127.0.0.1", service["port"]))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def bound(self, statement: Statement, values: Sequence[Any]) -> Any:
        return None

    def call(self, statement: Statement) -> Call:
        return self._echo

    def close(self) -> None:
        self._socket.close()

    def _echo(self, _: Any) -> list[Any]:
        self._socket.sendall(_DATA)
        missing = len(_DATA)
        while missing:
            missing -= len(self._socket.recv(missing))
        return []


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


@contextmanager
def _started(_: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(_Echo, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield {"port": server.sockets[0].getsockname()[1]}
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(_started)
    else:
        serve_calls(_Caller())
