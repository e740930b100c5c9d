"""The servers of the suite: ours and the control, in a process of their own."""

from __future__ import annotations

import asyncio
import struct
from multiprocessing.connection import Connection
from typing import Any, Final

import msgpack
import msgspec

from secateur.protocol.hello import Greeting, Hello
from secateur.protocol.message import Message
from secateur.protocol.operations import OperationBase, Server
from secateur.protocol.tokens import TokenRole
from secateur.wire import FrameServer, FrameService, Handled, Reply, Request

__all__ = ["LENGTH", "EchoLater", "EchoNow", "Echoed", "serve"]

LENGTH: Final = struct.Struct("<I")


class Echoed(msgspec.Struct, frozen=True):
    """What was asked."""

    plan: str
    params: list[Any]
    pruning: bool
    topology_version: int
    catalog_version: int


class EchoNow(Message[Echoed], frozen=True):
    """To be answered at once."""

    plan: str = ""
    params: list[Any] = msgspec.field(default_factory=list)
    pruning: bool = True
    topology_version: int = 0
    catalog_version: int = 0


class EchoLater(Message[Echoed], frozen=True):
    """To be answered from a task."""

    plan: str = ""
    params: list[Any] = msgspec.field(default_factory=list)
    pruning: bool = True
    topology_version: int = 0
    catalog_version: int = 0


class EchoOperation(OperationBase):
    """What the echo answers."""

    ECHO_NOW = 1001, Server.MEMBER, EchoNow, TokenRole.READ
    ECHO_LATER = 1002, Server.MEMBER, EchoLater, TokenRole.READ


class Echo:
    """Answers with what it was asked."""

    def handle(self, request: Request[Any]) -> Handled:
        """Answer at once, or from a task."""
        if isinstance(request.message, Hello):
            return Reply(Greeting())
        return self._later(request) if request.operation is EchoOperation.ECHO_LATER else self._echoed(request)

    def notify(self, request: Request[Any]) -> None:
        """Ignore it."""

    async def _later(self, request: Request[Any]) -> Reply[Echoed]:
        return self._echoed(request)

    def _echoed(self, request: Request[Any]) -> Reply[Echoed]:
        asked = request.message
        return Reply(
            Echoed(asked.plan, asked.params, asked.pruning, asked.topology_version, asked.catalog_version),
            request.payload,
        )


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
        server = FrameServer(FrameService(Echo(), EchoOperation.at_server(Server.MEMBER)))
        await server.start()
        bare = await asyncio.get_running_loop().create_server(BareEcho, "127.0.0.1", 0)
        ports.send((server.port, bare.sockets[0].getsockname()[1]))
        await asyncio.get_running_loop().run_in_executor(None, ports.recv)
        bare.close()
        await server.stop()

    asyncio.run(run())
