"""Answers to a channel that has nothing left to read, waits for no certain time and sends no traces.

It reads a short answer in fewer steps than others, which have to mean the same.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from wire_operations import Echo, Said, WireOperation

from secateur.errors import (
    DeadlineError,
    Error,
    InterfaceError,
    JobCancelledError,
    MemberLostError,
    ProtocolError,
    UnknownTableError,
)
from secateur.protocol import Failure, Greeting, encode
from secateur.wire import CallControl, Channel, FrameKind, SilenceRule, encode_frame

HEAD_BYTES = 24
Answers = Callable[[int], Sequence[bytes]]


def frame(kind: FrameKind, request_id: int, header: bytes = b"", payload: bytes = b"") -> bytes:
    return b"".join(encode_frame(kind, header, payload, request_id=request_id))


def said(request_id: int, payload: bytes = b"", text: str = "fine") -> bytes:
    return frame(FrameKind.RESPONSE, request_id, encode(Said({"x": text})), payload)


def greeting(request_id: int) -> list[bytes]:
    return [frame(FrameKind.RESPONSE, request_id, encode(Greeting()))]


ALIVE = frame(FrameKind.ALIVE, 0)


class Scripted:
    """Listens to one channel; answers the hello and each request with the next list of pieces."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.answers: list[Answers] = []
        self.asked = threading.Semaphore(0)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connected, _ = self.listener.accept()
            except OSError:
                return
            with connected:
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                is_greeted = False
                while request := self._request(connected):
                    answer = self.answers.pop(0) if is_greeted else greeting
                    is_greeted = True
                    for piece in answer(request):
                        connected.sendall(piece)
                        time.sleep(0.01 if piece else 0)
                    self.asked.release()

    @staticmethod
    def _request(connected: socket.socket) -> int:
        try:
            head = connected.recv(HEAD_BYTES, socket.MSG_WAITALL)
            if len(head) < HEAD_BYTES:
                return 0
            _, number, header_bytes, payload_bytes = struct.unpack("<8sIIQ", head)
            connected.recv(header_bytes + payload_bytes, socket.MSG_WAITALL)
        except OSError:
            return 0
        return int(number)


@pytest.fixture
def server() -> Iterator[Scripted]:
    server = Scripted()
    yield server
    server.listener.close()


@pytest.fixture
def channel(server: Scripted) -> Iterator[Channel]:
    """A channel at rest."""
    with closing(Channel(*server.listener.getsockname(), timeout_s=None)) as channel:
        server.answers.append(lambda number: [said(number)])
        channel.request(Echo())
        assert channel._at_rest is not None
        yield channel


def asked_once_more(server: Scripted, channel: Channel) -> None:
    for _ in range(2):
        server.answers.append(lambda number: [said(number, text="again")])
        assert channel.request(Echo()).message.args == {"x": "again"}
    assert channel._at_rest is not None


@pytest.mark.parametrize(
    ("pieces", "payload"),
    [
        pytest.param(lambda number: [said(number)], b"", id="whole"),
        pytest.param(lambda number: [said(number)[:10], said(number)[10:]], b"", id="two pieces of a head"),
        pytest.param(lambda number: [said(number)[:HEAD_BYTES], said(number)[HEAD_BYTES:]], b"", id="head, header"),
        pytest.param(lambda number: [ALIVE + said(number)], b"", id="behind a sign of life"),
        pytest.param(lambda number: [ALIVE, ALIVE, said(number)], b"", id="after signs of life"),
        pytest.param(lambda number: [said(number) + ALIVE], b"", id="before a sign of life"),
        pytest.param(lambda number: [said(number) + ALIVE[:7], ALIVE[7:]], b"", id="before a part of a sign of life"),
        pytest.param(lambda number: [said(number, b"rows")], b"rows", id="with a payload"),
        pytest.param(lambda number: [said(number, bytes(200_000))], bytes(200_000), id="with a large payload"),
        pytest.param(lambda number: [said(number, text="y" * 100_000)], b"", id="long"),
        pytest.param(
            lambda number: [frame(FrameKind.PART, number, encode(Said()), b"ro"), said(number, b"ws")],
            b"rows",
            id="in parts",
        ),
    ],
)
def test_an_answer_is_read_however_it_comes(
    server: Scripted, channel: Channel, pieces: Answers, payload: bytes
) -> None:
    server.answers.append(pieces)
    answer = channel.request(Echo())
    assert answer.message.args.keys() == {"x"} or len(answer.parts) > 1
    assert b"".join(answer.parts) == payload
    asked_once_more(server, channel)


@pytest.mark.parametrize(
    ("pieces", "error", "message"),
    [
        pytest.param(
            lambda number: [frame(FrameKind.ERROR, number, encode(Failure("UnknownTableError", "no t")))],
            UnknownTableError,
            "no t",
            id="an error",
        ),
        pytest.param(lambda number: [said(number + 1)], ProtocolError, "answered request", id="of another request"),
        pytest.param(
            lambda number: [frame(FrameKind.RESPONSE, number, b"\xc1")], ProtocolError, "should be Said", id="no value"
        ),
        pytest.param(
            lambda number: [frame(FrameKind.RESPONSE, number, b"\x81\xa4args\x07")],
            ProtocolError,
            "Said cannot be read",
            id="of another type",
        ),
        pytest.param(
            lambda number: [frame(FrameKind.CANCEL, number)], ProtocolError, "with a CANCEL frame", id="no answer"
        ),
        pytest.param(lambda number: [b"HTTP/1.1 400 Bad Request\r\n\r\n"], ProtocolError, "secateur frame", id="HTTP"),
        pytest.param(
            lambda number: [said(number)[:2] + b"\x63" + said(number)[3:]], ProtocolError, "version 99", id="version"
        ),
    ],
)
def test_what_is_wrong_with_an_answer_is_said_and_the_next_request_has_its_own(
    server: Scripted, channel: Channel, pieces: Answers, error: type[Error], message: str
) -> None:
    server.answers.append(pieces)
    with pytest.raises(error, match=message):
        channel.request(Echo())
    asked_once_more(server, channel)


@pytest.mark.parametrize("has_control", [False, True], ids=["time-out", "deadline"])
def test_a_time_out_or_a_deadline_is_for_one_request_only(
    server: Scripted, channel: Channel, has_control: bool
) -> None:
    server.answers += [lambda number: [said(number)], lambda number: [b""], lambda number: [said(number)]]
    for wait_s in (20, 0.3):
        control = CallControl(time.monotonic() + wait_s, DeadlineError("too late")) if has_control else None
        timeout_s = None if has_control else wait_s
        if wait_s == 20:
            assert channel.request(Echo(), timeout_s=timeout_s, control=control).message.args == {"x": "fine"}
            continue
        with pytest.raises(DeadlineError):
            channel.request(Echo(), timeout_s=timeout_s, control=control)
    channel.request(Echo(), timeout_s=20)
    asked_once_more(server, channel)


def test_a_silent_server_is_given_up_after_the_silence_that_is_allowed(server: Scripted) -> None:
    asked: list[CallControl | None] = []

    def is_awaited(control: CallControl | None) -> bool:
        asked.append(control)
        return len(asked) < 3

    address, control = server.listener.getsockname(), CallControl()
    with closing(Channel(*address, timeout_s=None, silence=SilenceRule(0.05, is_awaited))) as channel:
        server.answers += [lambda number: [said(number)], lambda number: [b""]]
        channel.request(Echo())
        begin_s = time.monotonic()
        with pytest.raises(MemberLostError, match="silent"):
            channel.request(Echo(), control=control)
        assert time.monotonic() - begin_s > 0.15
        assert asked == [control] * 3
        asked_once_more(server, channel)


@pytest.mark.parametrize("how", ["cancelled", "closed"])
def test_a_request_that_waits_is_ended_by_another_thread(server: Scripted, channel: Channel, how: str) -> None:
    control = CallControl()
    server.answers.append(lambda number: [b""])
    server.asked.acquire(timeout=20)
    server.asked.acquire(timeout=20)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(channel.request, Echo(), control=control)
        assert server.asked.acquire(timeout=20)
        if how == "closed":
            channel.close()
            with pytest.raises(InterfaceError):
                waiting.result(20)
            with pytest.raises(InterfaceError):
                channel.request(Echo())
            return
        control.end(JobCancelledError("enough"))
        with pytest.raises(JobCancelledError, match="enough"):
            waiting.result(20)
    assert not control.calls
    asked_once_more(server, channel)


def test_a_server_that_hangs_up_is_lost(server: Scripted, channel: Channel) -> None:
    server.listener.close()
    channel.abort()
    with pytest.raises(MemberLostError, match="broke"):
        channel.request(Echo())


def test_others_are_asked_meanwhile(server: Scripted, channel: Channel) -> None:
    order: list[str] = []

    def answer(number: int) -> list[bytes]:
        order.append("asked")
        return [said(number)]

    server.answers.append(answer)
    assert channel.request(Echo(), meanwhile=lambda: order.append("meanwhile")).message.args == {"x": "fine"}
    assert sorted(order) == ["asked", "meanwhile"]


def test_a_long_request_is_held_against_the_limits(server: Scripted, channel: Channel) -> None:
    server.answers.append(lambda number: [said(number)])
    assert channel.request(Echo({"x": "y" * 100_000})).message.args == {"x": "fine"}
    asked_once_more(server, channel)


def test_a_forked_process_does_not_read_the_answers_of_its_parent(server: Scripted, channel: Channel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the server has a thread
        child = os.fork()
    if not child:
        os._exit(int(channel._at_rest is not None))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    asked_once_more(server, channel)


def test_an_encoded_request_is_one_as_any_other(server: Scripted, channel: Channel) -> None:
    server.answers.append(lambda number: [said(number)])
    answer: Any = channel.exchange(WireOperation.ECHO, encode(Echo({"x": 1})))
    assert answer.message == Said({"x": "fine"})
