"""Frames out of a socket, however the reads fall."""

from __future__ import annotations

import random

import pytest

from secateur.errors import Error, ProtocolError
from secateur.wire import Frame, FrameKind, FrameReceiver, Limits, encode_frame

SIZES = [0, 1, 70_000, 5, 300_000, 0]


class Receiver(FrameReceiver):
    def __init__(self, wanted: int = 1000) -> None:
        super().__init__(Limits())
        self.frames: list[Frame] = []
        self.errors: list[Error] = []
        self._wanted = wanted

    def frame_arrived(self, frame: Frame) -> bool:
        self.frames.append(frame)
        return len(self.frames) < self._wanted

    def frames_failed(self, error: Error) -> None:
        self.errors.append(error)


def sent(sizes: list[int]) -> bytes:
    return b"".join(
        b"".join(encode_frame(FrameKind.REQUEST, b"", bytes([number]) * size, request_id=number))
        for number, size in enumerate(sizes)
    )


def receive(receiver: FrameReceiver, data: bytes, read_max: int) -> list[int]:
    """Do as an event loop does; returns how much was read into each buffer that was longer than a read of small
    frames.
    """
    rest, large = memoryview(data), []
    while rest:
        buffer = receiver.get_buffer(-1)
        count = min(len(buffer), len(rest), read_max)
        buffer[:count] = rest[:count]
        receiver.buffer_updated(count)
        rest = rest[count:]
        if len(buffer) > 64 << 10:
            large.append(count)
    return large


@pytest.mark.parametrize("read_max", [1 << 20, 65_536, 1000, 17])
def test_all_frames_arrive(read_max: int) -> None:
    receiver = Receiver()
    receive(receiver, sent(SIZES), read_max)
    assert [(frame.request_id, bytes(frame.payload)) for frame in receiver.frames] == [
        (n, bytes([n]) * size) for n, size in enumerate(SIZES)
    ]
    assert receiver.errors == []


def test_random_reads() -> None:
    chance = random.Random(7)
    for _ in range(50):
        receiver, sizes = Receiver(), [chance.choice(SIZES) for _ in range(5)]
        receive(receiver, sent(sizes), chance.randint(1, 100_000))
        assert [len(frame.payload) for frame in receiver.frames] == sizes


def test_a_large_payload_is_read_where_it_stays() -> None:
    receiver = Receiver()
    assert receive(receiver, sent([4 << 20]), 1 << 30) == [(4 << 20) - (64 << 10) + 24]


def test_after_the_last_frame_that_is_wanted_nothing_arrives() -> None:
    receiver = Receiver(wanted=2)
    receive(receiver, sent([1, 200_000, 3, 4]), 1 << 20)
    receive(receiver, sent([5]), 1 << 20)
    assert [len(frame.payload) for frame in receiver.frames] == [1, 200_000]


def test_what_is_no_frame_ends_it() -> None:
    receiver = Receiver()
    receive(receiver, sent([1]) + b"GET / HTTP/1.1\r\n\r\n" + sent([2]), 1 << 20)
    receive(receiver, sent([3]), 1 << 20)
    assert ([len(frame.payload) for frame in receiver.frames], [type(error) for error in receiver.errors]) == (
        [1],
        [ProtocolError],
    )
