"""The server against peers that behave badly, seen through bare sockets."""

from __future__ import annotations

import asyncio
import logging
import queue
import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from wire_operations import (
    BadDetails,
    Bug,
    Echo,
    Later,
    Nonsense,
    Note,
    Orders,
    Promise,
    Said,
    Stop,
    Stream,
    Unsendable,
    Wait,
    WireOperation,
)

from secateur.errors import OperationalError
from secateur.protocol import (
    Failure,
    FrameLimits,
    Greeting,
    Hello,
    Notice,
    Operation,
    Server,
    decode,
    encode,
    operation_of,
    pack,
)
from secateur.tracing import TraceContext, is_installed
from secateur.wire import (
    Channel,
    Frame,
    FrameDecoder,
    FrameKind,
    FrameServer,
    FrameService,
    Handled,
    Limits,
    Reply,
    Request,
    encode_frame,
    hello,
)

Serve = Callable[..., FrameServer]


class Raw:
    """A socket that sends any bytes and reads frames."""

    def __init__(self, server: FrameServer) -> None:
        self.socket = socket.create_connection((server.host, server.port), timeout=20)
        self.decoder = FrameDecoder(Limits())
        self.frames: list[Frame] = []

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, message: Any, request_id: int = 0, payload: bytes = b"") -> None:
        self.socket.sendall(sent(message, request_id, payload))

    def greet(self, **hello: Any) -> Frame:
        header = pack({"client": "raw", **hello})
        self.socket.sendall(
            b"".join(encode_frame(FrameKind.REQUEST, header, operation=Operation.HELLO.code, request_id=1))
        )
        return self.read()

    def read(self) -> Frame:
        while not self.frames:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError
            self.frames.extend(
                frame for frame in self.decoder.feed(data) if frame.kind is not FrameKind.ALIVE
            )  # these come when a test takes long
        return self.frames.pop(0)

    def ended(self) -> bool:
        with pytest.raises(EOFError):
            self.read()
        return True


def sent(message: Any, request_id: int = 0, payload: bytes = b"") -> bytes:
    operation = operation_of(message)
    kind = FrameKind.NOTIFY if isinstance(message, Notice) else FrameKind.REQUEST
    return b"".join(encode_frame(kind, encode(message), payload, operation=operation.code, request_id=request_id))


def refusal(frame: Frame) -> tuple[FrameKind, int, str, str]:
    failure = decode(frame.header, Failure)
    return frame.kind, frame.request_id, failure.error, failure.message


def said(frame: Frame) -> tuple[int, dict[str, Any]]:
    return frame.request_id, decode(frame.header, Said).args


def alive(server: FrameServer, **options: Any) -> bool:
    channel = Channel(server.host, server.port, **options)
    try:
        return channel.request(Echo({"x": 1})).message.args == {"x": 1}
    finally:
        channel.close()


GARBAGE = [
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "ProtocolError", "expected a secateur frame", id="http"),
    pytest.param(
        b"SC\x07\x01" + bytes(12), "ProtocolError", "the peer speaks protocol version 7, this side 4", id="version"
    ),
    pytest.param(
        struct.pack("<2sBBIIIQ", b"SC", 4, 1, 50, 1, 2**31, 0),
        "LimitExceededError",
        "a frame header of 2147483648 bytes",
        id="giant header",
    ),
    pytest.param(
        struct.pack("<2sBBIIIQ", b"SC", 4, 1, 50, 1, 1, 2**63),
        "LimitExceededError",
        "a frame payload of 9223372036854775808 bytes",
        id="giant payload",
    ),
    pytest.param(
        b"".join(encode_frame(FrameKind.RESPONSE, b"", request_id=1)),
        "ProtocolError",
        "a client may not send RESPONSE",
        id="response",
    ),
]


@pytest.mark.parametrize("greeted", [False, True], ids=["first", "after hello"])
@pytest.mark.parametrize(("data", "error", "message"), GARBAGE)
def test_garbage_gets_a_reason_and_the_server_lives(
    serve: Serve, echo: Any, data: bytes, error: str, message: str, greeted: bool
) -> None:
    server = serve(echo)
    with Raw(server) as raw:
        if greeted:
            assert raw.greet().kind is FrameKind.RESPONSE
        raw.socket.sendall(data + bytes(200_000))
        kind, request_id, name, text = refusal(raw.read())
        assert (kind, request_id, name) == (FrameKind.ERROR, 0, error)
        assert message in text
        assert raw.ended()
    assert alive(server)


def test_random_garbage_never_harms_the_server(serve: Serve, echo: Any) -> None:
    server = serve(echo)
    chance = random.Random(20240101)
    with Raw(server) as bystander:
        bystander.greet()
        for _ in range(100):
            good = sent(Echo({"x": "y" * 20}), 2, b"payload")
            damaged = bytearray(good)
            for _ in range(chance.randint(1, 3)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            data = chance.choice(
                [chance.randbytes(chance.randint(1, 300)), good[: chance.randrange(len(good))], bytes(damaged)]
            )
            with Raw(server) as raw:
                if chance.random() < 0.5:
                    raw.greet()
                raw.socket.sendall(data)
        bystander.send(Echo({"still": "here"}), 7)
        assert said(bystander.read()) == (7, {"still": "here"})
    assert alive(server)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        pytest.param({}, "AuthenticationError", "asks for a token and none was given", id="none"),
        pytest.param({"token": "Secret"}, "AuthenticationError", "the token is wrong", id="wrong"),
        pytest.param(
            {"token": 5},
            "ProtocolError",
            "Hello cannot be read: Expected `str | null`, got `int` - at `$.token`",
            id="not text",
        ),
    ],
)
def test_without_a_good_hello_nothing_is_served(
    serve: Serve, echo: Any, given: dict[str, Any], error: str, message: str
) -> None:
    server = serve(echo, token="secret")
    with Raw(server) as raw:
        kind, request_id, name, text = refusal(raw.greet(**given))
        assert (kind, request_id, name) == (FrameKind.ERROR, 1, error)
        assert message in text
        assert raw.ended()
    assert alive(server, said=hello("secret"))


def test_the_first_request_is_the_hello(serve: Serve, echo: Any) -> None:
    with Raw(serve(echo)) as raw:
        raw.send(Echo(), 1)
        assert refusal(raw.read())[2:] == (
            "AuthenticationError",
            "the first request of a connection has to be the hello, and this one asks for operation 2001",
        )
        assert raw.ended()


def test_whoever_said_hello_is_known_to_be_gone(serve: Serve, echo: Any) -> None:
    gone: queue.SimpleQueue[str] = queue.SimpleQueue()
    server = serve(echo, on_gone=lambda peer: gone.put(peer.client))
    with Raw(server):
        pass  # without a hello
    with Raw(server) as raw:
        raw.greet(client="somebody")
        assert gone.empty()
    assert gone.get(timeout=20) == "somebody"
    assert gone.empty()


def test_a_notification_before_the_hello_is_refused(serve: Serve, echo: Any) -> None:
    with Raw(serve(echo)) as raw:
        raw.send(Note("last"))
        assert refusal(raw.read())[3] == "a client may not send NOTIFY before its hello"
        assert raw.ended()
    assert echo.notes == []


def test_before_the_hello_a_payload_is_refused_however_small(serve: Serve, echo: Any) -> None:
    with Raw(serve(echo)) as raw:
        raw.send(Hello(), 1, b"x")
        assert refusal(raw.read())[2] == "LimitExceededError"


def test_who_says_nothing_is_disconnected(serve: Serve, echo: Any) -> None:
    with Raw(serve(echo, limits=Limits(hello_timeout_s=0.05))) as raw:
        assert refusal(raw.read())[3] == "no hello within 0.05 s"
        assert raw.ended()


def test_the_hello_says_what_the_handler_adds_and_the_limits(serve: Serve, echo: Any) -> None:
    with Raw(serve(echo, limits=Limits(frame_bytes_max=5, header_bytes_max=500))) as raw:
        expected = Greeting(cluster_id="c1", limits=FrameLimits(5, 500), takes_traces=is_installed())
        assert decode(raw.greet().header, Greeting) == expected


def trace_frame(header: bytes) -> bytes:
    return b"".join(encode_frame(FrameKind.TRACE, header))


def test_a_trace_before_the_hello_is_refused(serve: Serve, echo: Any) -> None:
    with Raw(serve(echo)) as raw:
        raw.socket.sendall(trace_frame(encode(TraceContext("00-1f-2e-01"))))
        assert refusal(raw.read())[2:] == ("ProtocolError", "a client may not send TRACE before its hello")
        assert raw.ended()


def test_a_trace_is_of_the_next_request_alone(serve: Serve, echo: Any) -> None:
    """One that cannot be read is an error of that request; one that nobody can use, or that ends, is none."""
    with Raw(serve(echo)) as raw:
        raw.greet()
        raw.socket.sendall(trace_frame(b"\xc1") + sent(Echo(), 2) + sent(Echo({"x": 1}), 3))
        assert refusal(raw.read())[:3] == (FrameKind.ERROR, 2, "ProtocolError")
        assert said(raw.read()) == (3, {"x": 1})
        raw.socket.sendall(trace_frame(encode(TraceContext("no trace", "x" * 10_000))) + sent(Later({"y": 2}), 4))
        assert said(raw.read()) == (4, {"late": True, "y": 2})


def test_one_connection_too_many_is_told_so(serve: Serve, echo: Any) -> None:
    server = serve(echo, limits=Limits(connections_max=1))
    with Raw(server) as first:
        first.greet()
        with Raw(server) as second:
            kind, _, name, text = refusal(second.greet())
            assert (kind, name) == (FrameKind.ERROR, "LimitExceededError")
            assert "at most 1 connections" in text
        first.send(Echo(), 2)
        assert said(first.read()) == (2, {})


def test_sockets_without_a_hello_keep_nobody_out(serve: Serve, echo: Any) -> None:
    server = serve(echo, limits=Limits(connections_max=2, unproven_max=3, hello_timeout_s=60))
    with ExitStack() as stack:
        strangers = [stack.enter_context(Raw(server)) for _ in range(10)]
        for _ in range(2):
            assert stack.enter_context(Raw(server)).greet().kind is FrameKind.RESPONSE
        assert all(stranger.ended() for stranger in strangers[:7])  # the oldest gave way
        assert server.connection_count <= 5


def _begun(raw: Raw, size: int, part: int) -> bytes:
    """Send the beginning of a request; returns the rest of it."""
    data = sent(Later(), 2, b"x" * size)
    raw.socket.sendall(data[:part])
    return data[part:]


def test_frames_of_all_connections_together_are_bounded(serve: Serve, echo: Any) -> None:
    size, bound = 8_000_000, 1_000_000
    server = serve(echo, limits=Limits(held_bytes_max=bound, stalled_s=60))
    with ExitStack() as stack:
        raws = [stack.enter_context(Raw(server)) for _ in range(6)]
        for raw in raws:
            raw.greet()
        most = 0

        def send(raw: Raw) -> None:
            rest = _begun(raw, size, 1_000)
            raw.socket.sendall(rest)

        senders = [threading.Thread(target=send, args=(raw,)) for raw in raws]
        for sender in senders:
            sender.start()
        answered = 0
        for raw in raws:
            while True:
                most = max(most, server.held_bytes)
                if len(raw.read().payload) == size:
                    answered += 1
                    break
        for sender in senders:
            sender.join(20)
        assert answered == 6
        # What arrives is held up after the bound, but for the oldest frame; each of the others has one more read in it.
        assert most < bound + 2 * size + 6 * (4 << 20)
        until(lambda: server.held_bytes == 0)


def test_a_frame_that_stalls_gives_way_to_those_that_wait(serve: Serve, echo: Any) -> None:
    server = serve(echo, limits=Limits(held_bytes_max=100_000, stalled_s=0.1))
    with Raw(server) as stalls, Raw(server) as waits:
        stalls.greet()
        waits.greet()
        _begun(stalls, 10_000_000, 1_000_000)
        until(lambda: server.held_bytes > 100_000)
        waits.socket.sendall(_begun(waits, 1_000_000, 0))
        assert len(waits.read().payload) == 1_000_000
        until(lambda: server.held_bytes == 0)
        until(lambda: server.connection_count == 1)


def test_a_stalled_frame_that_nobody_waits_for_may_go_on(serve: Serve, echo: Any) -> None:
    server = serve(echo, limits=Limits(held_bytes_max=100_000, stalled_s=0.01))
    with Raw(server) as alone:
        alone.greet()
        rest = _begun(alone, 1_000_000, 500_000)
        until(lambda: server.held_bytes > 100_000)
        threading.Event().wait(0.05)
        alone.socket.sendall(rest)
        assert len(alone.read().payload) == 1_000_000


def test_who_goes_in_the_middle_of_a_frame_leaves_nothing(serve: Serve, echo: Any) -> None:
    server = serve(echo)
    with Raw(server) as raw:
        raw.greet()
        _begun(raw, 10_000_000, 5_000_000)
        until(lambda: server.held_bytes > 0)
    until(lambda: server.held_bytes == 0)


def until(condition: Callable[[], bool]) -> None:
    """Wait for what the server's loop does."""
    deadline_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline_s
        threading.Event().wait(0.005)


def test_one_request_too_many_in_flight_is_refused_and_the_others_finish(serve: Serve, echo: Any, loop: Any) -> None:
    with Raw(serve(echo, limits=Limits(requests_in_flight_max=2))) as raw:
        raw.greet()
        for request_id in (2, 3, 4):
            raw.send(Wait(), request_id)
        refused = raw.read()
        assert refusal(refused)[1:3] == (4, "LimitExceededError")
        assert "raise requests_in_flight_max" in refusal(refused)[3]
        loop.loop.call_soon_threadsafe(echo.release.set)
        assert {raw.read().request_id, raw.read().request_id} == {2, 3}


def test_the_future_of_an_answer_is_the_answer(serve: Serve, echo: Any, loop: Any) -> None:
    """It may hold a reply or an error, and nobody is told of one that is cancelled."""
    with Raw(serve(echo, limits=Limits(requests_in_flight_max=3, held_bytes_max=3000))) as raw:
        raw.greet()
        for request_id in (2, 3, 4):
            raw.send(Promise(), request_id, bytes(1000))
        until(lambda: len(echo.promises) == 3)
        raw.send(Promise(), 5)
        assert refusal(raw.read())[1:3] == (5, "LimitExceededError")

        def end() -> None:
            replied, failed, cancelled = echo.promises
            failed.set_exception(OperationalError("it was not to be"))
            cancelled.cancel()
            replied.set_result(Reply(Said({"x": 1})))

        loop.loop.call_soon_threadsafe(end)
        assert refusal(raw.read())[1:3] == (3, "OperationalError")
        answer = raw.read()
        assert (answer.kind, answer.request_id, decode(answer.header, Said).args) == (FrameKind.RESPONSE, 2, {"x": 1})
        for request_id in (6, 7, 8):
            raw.send(Promise(), request_id, bytes(1000))
        until(lambda: len(echo.promises) == 6)


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        pytest.param(Orders(), "UnknownTableError", "no table orders", id="ours"),
        pytest.param(Bug(), "InternalError", "ZeroDivisionError: a bug in the handler", id="not ours"),
        pytest.param(Nonsense(), "InternalError", "TypeError", id="no reply"),
        pytest.param(
            Unsendable(), "SerializationError", "builtins.object does not travel", id="reply that does not travel"
        ),
        pytest.param(BadDetails(), "InternalError", "it was: no table t", id="error that does not travel"),
    ],
)
def test_an_exception_is_an_error_frame_and_the_connection_goes_on(
    serve: Serve, echo: Any, caplog: Any, asked: Any, error: str, message: str
) -> None:
    caplog.set_level(logging.CRITICAL)
    with Raw(serve(echo)) as raw:
        raw.greet()
        raw.send(asked, 2)
        kind, request_id, name, text = refusal(raw.read())
        assert (kind, request_id, name) == (FrameKind.ERROR, 2, error)
        assert message in text
        raw.send(Echo(), 3)
        assert said(raw.read()) == (3, {})


def test_a_message_that_cannot_be_read_is_an_error_of_its_request_and_the_connection_goes_on(
    serve: Serve, echo: Any
) -> None:
    """Also one that would become a thousand times its size, and an operation that is not known."""
    with Raw(serve(echo)) as raw:
        raw.greet()
        for number, (header, operation, error, message) in enumerate(
            [
                (b"\xc1", WireOperation.ECHO.code, "ProtocolError", "1 bytes that should be Echo are not"),
                (b"", WireOperation.ECHO.code, "ProtocolError", "0 bytes that should be Echo are not"),
                (
                    pack({"args": 5}),
                    WireOperation.ECHO.code,
                    "ProtocolError",
                    "Echo cannot be read: Expected `object`, got `int` - at `$.args`",
                ),
                (
                    pack({"args": {"x": []}})[:-1] + b"\xdd\x00\x10\x00\x00" + b"\x90" * 0x100000,
                    2001,
                    "LimitExceededError",
                    "lists, maps and special values",
                ),
                (b"\x80", 9999, "ProtocolError", "this server has no operation 9999"),
            ],
            2,
        ):
            raw.socket.sendall(
                b"".join(encode_frame(FrameKind.REQUEST, header, operation=operation, request_id=number))
            )
            kind, request_id, name, text = refusal(raw.read())
            assert (kind, request_id, name) == (FrameKind.ERROR, number, error)
            assert message in text
        raw.send(Echo({"x": 1}), 9)
        assert said(raw.read()) == (9, {"x": 1})


def test_requests_that_come_together_are_answered_in_order(serve: Serve, echo: Any) -> None:
    with Raw(serve(echo)) as raw:
        raw.greet()
        raw.socket.sendall(b"".join(sent(Echo(), i, b"x" * i) for i in range(2, 500)))
        assert [(f.request_id, len(f.payload)) for f in (raw.read() for _ in range(2, 500))] == [
            (i, i) for i in range(2, 500)
        ]


def test_notifications_arrive_in_order_and_a_failing_one_is_logged(serve: Serve, echo: Any, caplog: Any) -> None:
    with Raw(serve(echo)) as raw:
        raw.greet()
        raw.send(Note("a", 1), payload=b"p")
        raw.send(Note("bug"))
        raw.send(Note("last"))
        assert echo.noted.wait(20)
    assert echo.notes == [("a", 1, b"p"), ("last", 0, b"")]
    assert "the notice of operation 2013" in caplog.text


def test_a_peer_that_does_not_read_is_not_answered_without_bound(serve: Serve, echo: Any) -> None:
    """It asks for 100 MB and reads nothing: the server stops reading its requests until it reads again, and then
    nothing is lost.
    """
    server = serve(echo, limits=Limits(write_buffer_bytes_max=1 << 16))
    pieces, piece_bytes = 100, 1 << 20
    with Raw(server) as raw:
        raw.greet()
        raw.send(Stream(pieces, piece_bytes), 2)
        with Raw(server) as other:  # the loop serves others meanwhile, and by then the stream has run as far as it may
            other.greet()
            for request_id in range(2, 50):
                other.send(Echo(), request_id)
                other.read()
        assert echo.streamed < 20  # what fits into the socket's buffers and ours
        read = [raw.read() for _ in range(pieces + 1)]
        assert [said(f)[1]["index"] for f in read[:-1]] == [*range(pieces)]
        assert {len(f.payload) for f in read[:-1]} == {piece_bytes}
        assert read[-1].kind is FrameKind.RESPONSE


def test_requests_of_a_peer_that_does_not_read_wait_their_turn(serve: Serve, echo: Any) -> None:
    count, payload = 60, bytes(1 << 20)
    with Raw(serve(echo, limits=Limits(write_buffer_bytes_max=1 << 16))) as raw:
        raw.greet()
        raw.send(Echo(), 2, payload * 16)  # more than the sockets' buffers hold: the answer is stuck
        raw.socket.sendall(b"".join(sent(Echo(), i, b"x" * 1000) for i in range(3, count)))
        assert len(raw.read().payload) == 16 << 20
        assert [raw.read().request_id for _ in range(3, count)] == list(range(3, count))


def test_a_stream_whose_reader_goes_is_closed(serve: Serve, echo: Any) -> None:
    server = serve(echo, limits=Limits(write_buffer_bytes_max=1 << 16))
    with Raw(server) as raw:
        raw.greet()
        raw.send(Stream(10_000, 1 << 20), 2)
        raw.read()
    assert echo.begun.wait(20)
    assert echo.ended == ["stream closed"]
    assert echo.streamed < 10_000


def test_work_goes_on_when_its_asker_goes(serve: Serve, echo: Any, loop: Any) -> None:
    """A write that was begun must not be torn in the middle by a client that dies."""
    server = serve(echo)
    with Raw(server) as raw:
        raw.greet()
        raw.send(Wait(), 2)
        assert echo.begun.wait(20)
    loop.loop.call_soon_threadsafe(echo.release.set)
    assert alive(server)
    assert alive(server)
    assert echo.ended == ["done"]


def test_stop_cancels_what_runs_and_drops_everybody(serve: Serve, echo: Any, loop: Any) -> None:
    server = serve(echo)
    with Raw(server) as raw:
        raw.greet()
        raw.send(Wait(), 2)
        assert echo.begun.wait(20)
        loop.run(server.stop())
        assert echo.ended == ["cancelled"]
        with pytest.raises((EOFError, ConnectionResetError)):
            raw.read()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((server.host, server.port), timeout=20)
    loop.run(server.stop())


def test_a_handler_may_stop_its_own_server(serve: Serve, echo: Any) -> None:
    echo.server = serve(echo)
    with Raw(echo.server) as raw:
        raw.greet()
        raw.send(Stop(), 2)
        assert echo.begun.wait(20)
    assert echo.ended == ["stopped"]


def test_a_taken_port_is_a_clear_error(serve: Serve, echo: Any) -> None:
    server = serve(echo)
    with pytest.raises(OperationalError, match=f"cannot listen on 127.0.0.1:{server.port}.*choose another port"):
        serve(echo, port=server.port)


class NoHandler:
    """For a server of which nothing is asked."""

    def handle(self, request: Request[Any]) -> Handled:
        raise AssertionError(request)

    def notify(self, request: Request[Any]) -> None:
        raise AssertionError(request)


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("library", ["asyncio", "uvloop"])
def test_a_connection_that_is_just_being_made_goes_with_its_server(library: str, turns: int) -> None:
    async def stopped_meanwhile() -> socket.socket:
        server = FrameServer(FrameService(NoHandler(), WireOperation.at_server(Server.ANY)))
        await server.start()
        client = socket.create_connection((server.host, server.port), timeout=5)
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.stop()
        return client

    loop = pytest.importorskip(library).new_event_loop()
    try:
        with loop.run_until_complete(stopped_meanwhile()) as client, suppress(ConnectionResetError):
            assert client.recv(1) == b""
    finally:
        loop.close()
