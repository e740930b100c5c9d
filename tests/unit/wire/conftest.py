"""A loop thread that serves handlers, for tests that use the wire from outside of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from secateur.errors import UnknownTableError
from secateur.wire import FrameServer, Handler, Reply, Request


class Echo:
    """A handler with one op for each way to answer."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, dict[str, Any], bytes]] = []
        self.noted = threading.Event()
        self.release = asyncio.Event()
        self.begun = threading.Event()
        self.ended: list[str] = []
        self.streamed = 0
        self.server: FrameServer

    def handle(self, request: Request) -> Reply | Awaitable[Reply] | AsyncIterator[Reply]:
        match request.op:
            case "hello":
                return Reply({"cluster_id": "c1"})
            case "echo":
                return Reply(request.args, request.payload)
            case "later":
                return self.later(request)
            case "wait":
                return self.wait()
            case "stream":
                return self.stream(request.args["pieces"], request.args["bytes"])
            case "who":
                peer = request.peer
                return Reply(
                    {
                        "client": peer.client,
                        "authenticated": peer.authenticated,
                        "id_": peer.connection_id,
                        "role": peer.role.value,
                    }
                )
            case "unsendable":
                return Reply({"x": object()})
            case "stop":
                return self.stop()
            case "nonsense":
                return None  # type: ignore[return-value]
            case "bug":
                raise ZeroDivisionError("a bug in the handler")
            case "bad details":
                raise UnknownTableError("no table t", thing=object())
            case op:
                raise UnknownTableError(f"no table {op}", table=op)

    def notify(self, request: Request) -> None:
        if request.op == "bug":
            raise ZeroDivisionError("a bug in the handler")
        self.notes.append((request.op, request.args, bytes(request.payload)))
        if request.op == "last":
            self.noted.set()

    async def later(self, request: Request) -> Reply:
        await asyncio.sleep(0)
        if request.args.get("fail"):
            raise UnknownTableError("no table later", table="later")
        return Reply({"late": True, **request.args}, request.payload)

    async def wait(self) -> Reply:
        self.begun.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("done")
        return Reply({"waited": True})

    async def stop(self) -> Reply:
        await self.server.stop()
        self.ended.append("stopped")
        self.begun.set()
        return Reply()

    async def stream(self, pieces: int, piece_bytes: int) -> AsyncIterator[Reply]:
        try:
            for index in range(pieces):
                self.streamed += 1
                yield Reply({"index": index}, bytes([index % 256]) * piece_bytes)
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
        server = FrameServer(handler, **options)
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
