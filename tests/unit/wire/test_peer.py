from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from wire_operations import Echo, Note, Orders, Said, Stream, Wait, WireOperation

from secateur.errors import (
    AuthenticationError,
    DeadlineError,
    Error,
    InterfaceError,
    LimitExceededError,
    MemberLostError,
    ProtocolError,
    UnknownTableError,
    UnreachableError,
)
from secateur.protocol import Greeting, Hello, Server
from secateur.wire import (
    FrameKind,
    FrameServer,
    FrameService,
    Handled,
    Limits,
    Peer,
    Reply,
    Request,
    encode_frame,
    hello,
)

OPERATIONS = WireOperation.at_server(Server.ANY)


class Service:
    def __init__(self) -> None:
        self.latch = asyncio.Event()
        self.notes: list[int] = []

    def handle(self, request: Request[Any]) -> Handled:
        match request.message:
            case Hello():
                return Reply(Greeting())
            case Echo(args):
                return Reply(Said(args), request.payload)
            case Wait():
                return self.wait(request)
            case Stream(pieces, _):
                return self.stream(pieces)
            case _:
                raise UnknownTableError(f"no table {request.operation.title}")

    def notify(self, request: Request[Any]) -> None:
        self.notes.append(request.message.n)
        if request.message.n < 0:
            self.latch.set()

    async def wait(self, request: Request[Any]) -> Reply[Said]:
        await self.latch.wait()
        return Reply(Said(request.message.args))

    async def stream(self, pieces: int) -> AsyncIterator[Reply[Said]]:
        for index in range(pieces):
            yield Reply(Said({"index": index}), bytes(1 << 16))


@asynccontextmanager
async def pair(**options: Any) -> AsyncIterator[tuple[Service, Peer, FrameServer]]:
    service = Service()
    server = FrameServer(FrameService(service, OPERATIONS, limits=options.pop("server_limits", Limits())))
    await server.start()
    peer = Peer(server.host, server.port, **options)
    try:
        yield service, peer, server
    finally:
        await peer.close()
        await server.stop()


def run(test: Any) -> Any:
    """Run an async test on a loop of its own and see that it leaves nothing there."""

    def body(*args: Any, **kwargs: Any) -> None:
        async def whole() -> None:
            await asyncio.wait_for(test(*args, **kwargs), 20)
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(whole())

    body.__name__ = test.__name__
    return body


@run
async def test_many_requests_share_a_connection_and_are_answered_in_any_order() -> None:
    async with pair() as (service, peer, server):
        waiting = asyncio.create_task(peer.request(Wait({"n": 1})))
        answers = await asyncio.gather(*(peer.request(Echo({"n": n}), b"x" * n) for n in range(300)))
        assert [(a.message.args["n"], len(a.payload)) for a in answers] == [(n, n) for n in range(300)]
        assert not waiting.done()
        service.latch.set()
        assert (await waiting).message.args == {"n": 1}
        assert server.connection_count == 1


@run
async def test_an_error_is_raised_for_its_request_only() -> None:
    async with pair() as (_, peer, _):
        results = await asyncio.gather(peer.request(Orders()), peer.request(Echo({"n": 1})), return_exceptions=True)
        assert isinstance(results[0], UnknownTableError)
        assert results[1].message.args == {"n": 1}  # type: ignore[union-attr]


@run
async def test_notifications_keep_their_order() -> None:
    async with pair() as (service, peer, _):
        for n in [*range(500), -1]:
            await peer.notify(Note("", n), b"x" * 1000)
        await service.latch.wait()
        assert service.notes == [*range(500), -1]


@run
async def test_the_pieces_of_an_answer_are_collected() -> None:
    async with pair() as (_, peer, _):
        assert len((await peer.request(Stream(50, 0))).parts) == 50


@run
async def test_no_answer_in_time_is_a_deadline_error_and_the_connection_goes_on() -> None:
    async with pair(timeout_s=20) as (service, peer, server):
        with pytest.raises(DeadlineError, match=r"did not answer 'wait' within 0.02 s"):
            await peer.request(Wait(), timeout_s=0.02)
        service.latch.set()
        assert (await peer.request(Echo({"n": 1}))).message.args == {"n": 1}
        assert server.connection_count == 1


@run
async def test_a_lost_server_fails_all_that_wait_and_the_next_request_connects_anew() -> None:
    async with pair() as (service, peer, server):
        waiting = [asyncio.create_task(peer.request(Wait())) for _ in range(5)]
        await peer.request(Echo())
        await server.stop()
        for failed in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(failed, MemberLostError)
        with pytest.raises(UnreachableError, match="check that the process there lives"):
            await peer.request(Echo())
        again = FrameServer(FrameService(service, OPERATIONS), port=server.port)
        await again.start()
        answers = await asyncio.gather(*(peer.request(Echo({"n": n})) for n in range(20)))
        assert [a.message.args["n"] for a in answers] == list(range(20))
        assert again.connection_count == 1
        await peer.close()
        await again.stop()


@run
async def test_close_fails_what_waits_and_what_comes_after() -> None:
    async with pair() as (_, peer, _):
        waiting = asyncio.create_task(peer.request(Wait()))
        await peer.request(Echo())
        await peer.close()
        with pytest.raises(InterfaceError, match="closed by this side"):
            await waiting
        with pytest.raises(InterfaceError, match="is closed"):
            await peer.request(Echo())
        await peer.close()


@run
async def test_too_many_in_flight_is_refused_here() -> None:
    async with pair(limits=Limits(requests_in_flight_max=2)) as (service, peer, _):
        await peer.request(Echo())
        waiting = [asyncio.create_task(peer.request(Wait())) for _ in range(2)]
        await asyncio.sleep(0)  # both have asked
        with pytest.raises(LimitExceededError, match=r"2 requests to .* are in flight"):
            await peer.request(Wait())
        service.latch.set()
        await asyncio.gather(*waiting)


@run
async def test_a_wrong_token_is_said() -> None:
    server = FrameServer(FrameService(Service(), OPERATIONS, token="secret"))
    await server.start()
    peer = Peer(server.host, server.port, hello("other"))
    for _ in range(2):
        with pytest.raises(AuthenticationError, match="the token is wrong"):
            await peer.request(Echo())
    await peer.close()
    await server.stop()


@pytest.mark.parametrize(
    ("answer", "message", "error"),
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", "expected a secateur frame", ProtocolError, id="http"),
        pytest.param(None, "did not answer the hello", UnreachableError, id="hang up"),
        pytest.param(b"", "did not answer the hello", UnreachableError, id="silence"),
        pytest.param(
            b"".join(encode_frame(FrameKind.NOTIFY, b"", request_id=1)),
            "sent a NOTIFY frame to the side that asks",
            ProtocolError,
            id="kind",
        ),
    ],
)
def test_somebody_else_answers(answer: bytes | None, message: str, error: type[Exception]) -> None:
    writers: list[asyncio.StreamWriter] = []

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        if answer is None:
            writer.close()
        else:
            writer.write(answer)

    @run
    async def body() -> None:
        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        peer = Peer("127.0.0.1", listener.sockets[0].getsockname()[1], timeout_s=0.2)
        with pytest.raises(error, match=message):
            await peer.request(Echo())
        await peer.close()
        listener.close()
        for writer in writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await listener.wait_closed()

    body()


@run
async def test_closing_ends_an_attempt_to_connect() -> None:
    """A process that is stopped accepts connections, by its kernel, and never says hello."""
    accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set_result(writer)

    listener = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    peer = Peer("127.0.0.1", listener.sockets[0].getsockname()[1], timeout_s=60)
    waiting = [asyncio.create_task(peer.request(Echo())) for _ in range(2)]
    writer = await accepted
    await peer.close()
    for request in waiting:
        with pytest.raises(InterfaceError, match="closed"):
            await request
    listener.close()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    await listener.wait_closed()


@run
async def test_a_refused_connection_says_so() -> None:
    async with pair() as (_, peer, server):
        await server.stop()
        with pytest.raises(UnreachableError) as refused:
            await peer.request(Echo())
        assert refused.value.details["refused"] is True


@run
async def test_notices_that_a_broken_connection_may_have_lost_are_reported_once() -> None:
    broken: list[Error] = []
    async with pair(on_broken=broken.append) as (service, peer, server):
        await peer.notify(Note("", -1))
        await service.latch.wait()
        await server.stop()
        with pytest.raises(UnreachableError):
            await peer.request(Echo({}))
        assert [type(error) for error in broken] == [MemberLostError]


@run
async def test_a_connection_without_notices_breaks_in_silence() -> None:
    broken: list[Error] = []
    async with pair(on_broken=broken.append) as (_, peer, server):
        await peer.request(Echo({}))
        await server.stop()
        with pytest.raises((MemberLostError, UnreachableError)):
            await peer.request(Echo({}))
    assert broken == []


@run
async def test_closing_a_connection_loses_no_notice() -> None:
    broken: list[Error] = []
    async with pair(on_broken=broken.append) as (service, peer, _):
        await peer.notify(Note("", -1))
        await service.latch.wait()
    assert broken == []


@run
async def test_an_answer_is_heard_without_a_task() -> None:
    async with pair() as (service, peer, _):
        heard: asyncio.Queue[Any] = asyncio.Queue()
        assert not peer.ask_now(Echo({"n": 0}), b"", heard.put_nowait), "it is not connected yet"
        await peer.request(Echo())
        assert peer.ask_now(Wait({"n": 1}), b"", heard.put_nowait)
        assert peer.ask_now(Echo({"n": 2}), b"xyz", heard.put_nowait)
        assert peer.ask_now(Orders(), b"", heard.put_nowait)
        assert (await heard.get()).args == {"n": 2}
        assert isinstance(await heard.get(), UnknownTableError)
        service.latch.set()
        assert (await heard.get()).args == {"n": 1}
        assert heard.empty()


@run
async def test_what_hears_an_answer_may_fail_without_harm_to_others() -> None:
    async with pair() as (_, peer, server):
        await peer.request(Echo())
        heard: asyncio.Queue[Any] = asyncio.Queue()

        def fail(_: object) -> None:
            raise ValueError("a bug of the caller")

        assert peer.ask_now(Echo(), b"", fail)
        assert peer.ask_now(Echo({"n": 1}), b"", heard.put_nowait)
        assert (await heard.get()).args == {"n": 1}
        assert server.connection_count == 1


@run
async def test_a_lost_or_silent_server_is_heard() -> None:
    async with pair() as (_, peer, server):
        heard: asyncio.Queue[Any] = asyncio.Queue()
        await peer.request(Echo())
        for _ in range(3):
            assert peer.ask_now(Wait(), b"", heard.put_nowait)
        await server.stop()
        assert [type(await heard.get()) for _ in range(3)] == [MemberLostError] * 3
        assert not peer.ask_now(Echo(), b"", heard.put_nowait)
    async with pair(timeout_s=20) as (service, peer, _):
        await peer.request(Echo())
        assert peer.ask_now(Wait(), b"", heard.put_nowait)
        await peer.close()
        assert isinstance(await heard.get(), InterfaceError)
        assert not peer.ask_now(Echo(), b"", heard.put_nowait)
        service.latch.set()
    assert heard.empty()


@run
async def test_no_answer_in_time_is_heard_and_the_connection_goes_on() -> None:
    async with pair(timeout_s=0.05) as (service, peer, server):
        heard: asyncio.Queue[Any] = asyncio.Queue()
        await peer.request(Echo())
        assert peer.ask_now(Wait(), b"", heard.put_nowait)
        error = await heard.get()
        assert isinstance(error, DeadlineError)
        assert "did not answer 'wait' within 0.05 s" in error.message
        service.latch.set()
        assert (await peer.request(Echo({"n": 1}), timeout_s=20)).message.args == {"n": 1}
        assert server.connection_count == 1
