"""The servers of the suite: ours and the control, in a process of their own."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable
from multiprocessing.connection import Connection
from typing import Any, Final

import msgpack

from secateur.wire import FrameServer, Reply, Request

__all__ = ["LENGTH", "serve"]

LENGTH: Final = struct.Struct("<I")


class Echo:
    """Answers with what it was asked."""

    def handle(self, request: Request) -> Reply | Awaitable[Reply] | AsyncIterator[Reply]:
        """Answer at once, or, for ``later``, from a task."""
        return self._later(request) if request.op == "later" else Reply(request.args, request.payload)

    def notify(self, request: Request) -> None:
        """Ignore it."""

    async def _later(self, request: Request) -> Reply:
        return Reply(request.args, request.payload)


class BareEcho(asyncio.Protocol):
    """The control: a length, a msgpack value, and back."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start with an empty buffer."""
        self._transport: Any = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        """Answer every complete value."""
        self._data += data
        while len(self._data) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._data)[0]
            if len(self._data) < end:
                return
            packed = msgpack.packb(msgpack.unpackb(self._data[LENGTH.size : end]))
            self._data = self._data[end:]
            self._transport.write(LENGTH.pack(len(packed)) + packed)


def serve(ports: Connection) -> None:
    """The server process: sends its two ports, and ends when the other end of the pipe does."""

    async def run() -> None:
        server = FrameServer(Echo())
        await server.start()
        bare = await asyncio.get_running_loop().create_server(BareEcho, "127.0.0.1", 0)
        ports.send((server.port, bare.sockets[0].getsockname()[1]))
        await asyncio.get_running_loop().run_in_executor(None, ports.recv)
        bare.close()
        await server.stop()

    asyncio.run(run())
