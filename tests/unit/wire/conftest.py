"""A loop thread that serves handlers, for tests that use the wire from outside of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import wire_operations
from wire_operations import Said, WireOperation

from secateur.errors import UnknownTableError
from secateur.protocol import Greeting, Hello, Server
from secateur.wire import FrameServer, FrameService, Handled, Handler, Reply, Request


class Echo:
    """A handler with one op for each way to answer."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, int, bytes]] = []
        self.noted = threading.Event()
        self.release = asyncio.Event()
        self.begun = threading.Event()
        self.ended: list[str] = []
        self.promises: list[asyncio.Future[Reply[Any]]] = []
        self.streamed = 0
        self.server: FrameServer

    def handle(self, request: Request[Any]) -> Handled:
        match request.message:
            case Hello():
                return Reply(Greeting(cluster_id="c1"))
            case wire_operations.Echo(args):
                return Reply(Said(args), request.payload)
            case wire_operations.Later():
                return self.later(request)
            case wire_operations.Wait() | wire_operations.WaitAbandoned():
                return self.wait()
            case wire_operations.Promise():
                self.promises.append(asyncio.get_running_loop().create_future())
                return self.promises[-1]
            case wire_operations.Stream(pieces, size):
                return self.stream(pieces, size)
            case wire_operations.Who():
                peer = request.peer
                return Reply(
                    Said(
                        {
                            "client": peer.client,
                            "authenticated": peer.authenticated,
                            "id_": peer.connection_id,
                            "role": peer.role.value,
                        }
                    )
                )
            case wire_operations.Unsendable():
                return Reply(Said({"x": object()}))
            case wire_operations.Stop():
                return self.stop()
            case wire_operations.Nonsense():
                return None  # type: ignore[return-value]
            case wire_operations.Bug():
                raise ZeroDivisionError("a bug in the handler")
            case wire_operations.BadDetails():
                raise UnknownTableError("no table t", thing=object())
            case _:
                title = request.operation.title
                raise UnknownTableError(f"no table {title}", table=title)

    def notify(self, request: Request[Any]) -> None:
        note = request.message
        if note.text == "bug":
            raise ZeroDivisionError("a bug in the handler")
        self.notes.append((note.text, note.n, bytes(request.payload)))
        if note.text == "last":
            self.noted.set()

    async def later(self, request: Request[Any]) -> Reply[Said]:
        await asyncio.sleep(0)
        if request.message.args.get("fail"):
            raise UnknownTableError("no table later", table="later")
        return Reply(Said({"late": True, **request.message.args}), request.payload)

    async def wait(self) -> Reply[Said]:
        self.begun.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("done")
        return Reply(Said({"waited": True}))

    async def stop(self) -> Reply[Said]:
        await self.server.stop()
        self.ended.append("stopped")
        self.begun.set()
        return Reply(Said())

    async def stream(self, pieces: int, piece_bytes: int) -> AsyncIterator[Reply[Said]]:
        try:
            for index in range(pieces):
                self.streamed += 1
                yield Reply(Said({"index": index}), bytes([index % 256]) * piece_bytes)
            if pieces == 3:
                raise UnknownTableError("no table in the middle")
        finally:
            self.ended.append("stream closed")
            self.begun.set()


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="test server")
        self.thread.start()

    def run(self, work: Any, timeout_s: float = 20) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout_s)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(20)
        assert not asyncio.all_tasks(self.loop)
        self.loop.close()


@pytest.fixture
def loop() -> Iterator[Loop]:
    running = Loop()
    yield running
    running.stop()


@pytest.fixture
def serve(loop: Loop) -> Iterator[Callable[..., FrameServer]]:
    """``serve(handler, **options)`` starts a server on a free port; it is stopped after the test and must then have no
    connection left.
    """
    servers: list[FrameServer] = []

    def start(handler: Handler, **options: Any) -> FrameServer:
        of_server = {name: options.pop(name) for name in ("host", "port", "alive_s", "tls") if name in options}
        service = FrameService(handler, WireOperation.at_server(Server.ANY), **options)
        server = FrameServer(service, **of_server)
        loop.run(server.start())
        servers.append(server)
        return server

    yield start
    for server in servers:
        loop.run(server.stop())
        assert server.connection_count == 0


@pytest.fixture
def echo(loop: Loop) -> Echo:
    return Echo()
