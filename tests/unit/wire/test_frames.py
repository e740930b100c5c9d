from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import LimitExceededError, ProtocolError
from secateur.wire import Frame, FrameDecoder, FrameKind, Limits, encode_frame

TIGHT = Limits(frame_bytes_max=1000, header_bytes_max=200)


def joined(*frames: tuple[FrameKind, int, int, bytes, Any]) -> bytes:
    return b"".join(
        b"".join(encode_frame(kind, header, payload, operation=operation, request_id=number))
        for kind, operation, number, header, payload in frames
    )


def only(stream: bytes, limits: Limits = TIGHT) -> Frame | None:
    return FrameDecoder(limits).only(stream)


def decode(stream: bytes, limits: Limits, step: int = 10**9) -> list[Frame]:
    decoder = FrameDecoder(limits)
    frames = [frame for start in range(0, len(stream), step) for frame in decoder.feed(stream[start : start + step])]
    assert not (decoder.partial or decoder.collecting) or frames != FRAMES
    return frames


def head(magic: bytes = b"SC", version: int = 4, kind: int = 1, header_bytes: int = 0, payload_bytes: int = 0) -> bytes:
    return struct.pack("<2sBBIIIQ", magic, version, kind, 7, 1, header_bytes, payload_bytes)


def test_the_bytes_of_a_frame_are_these() -> None:
    """The protocol, spelled out: clients in other languages rely on it."""
    assert joined((FrameKind.REQUEST, 50, 1, b"\x91\x01", b"pay")) == bytes.fromhex(
        "53430401 32000000 01000000 02000000 0300000000000000 9101 706179"
    )


def test_a_small_frame_is_one_buffer_and_a_large_payload_is_not_copied() -> None:
    assert len(encode_frame(FrameKind.RESPONSE, b"\x80", [b"ab", memoryview(b"cd")])) == 1
    large = memoryview(bytes(100_000))
    buffers = encode_frame(FrameKind.RESPONSE, b"\x80", [large, b"", b"tail"])
    assert buffers[1] is large
    assert buffers[2] == b"tail"
    assert len(buffers) == 3


def test_payload_sizes_are_bytes_not_items() -> None:
    numbers = memoryview(pa.array(range(20_000), pa.int64()).buffers()[1]).cast("q")
    (frame,) = FrameDecoder(Limits()).feed(joined((FrameKind.REQUEST, 7, 1, b"", numbers)))
    assert len(frame.payload) == 160_000


FRAMES = [
    (FrameKind.REQUEST, 50, 1, b"execute", b""),
    (FrameKind.RESPONSE, 0, 1, b"", bytes(range(256)) * 300),
    (FrameKind.NOTIFY, 101, 0, b"", b"x"),
    (FrameKind.PART, 0, 2**32 - 1, b"b" * 5000, b"yz" * 40),
    (FrameKind.ERROR, 0, 2, b"why", b""),
]


@pytest.mark.parametrize("step", [1, 2, 23, 24, 25, 1000, 65_536, 10**9])
def test_frames_are_found_however_the_stream_is_chopped(step: int) -> None:
    stream = joined(*FRAMES)
    assert [
        (f.kind, f.operation, f.request_id, f.header, bytes(f.payload)) for f in decode(stream, Limits(), step)
    ] == FRAMES


@given(st.lists(st.integers(1, 4000), max_size=40))
def test_law_chopping_changes_nothing(cuts: list[int]) -> None:
    stream = joined(*FRAMES)
    decoder = FrameDecoder(Limits())
    got: list[Frame] = []
    position = 0
    for cut in [*cuts, len(stream)]:
        got.extend(decoder.feed(stream[position : position + cut]))
        position += cut
    got.extend(decoder.feed(stream[position:]))
    assert [(f.kind, f.operation, f.request_id, f.header, bytes(f.payload)) for f in got] == FRAMES


def test_bytes_that_are_one_frame_are_that_frame() -> None:
    for frame in FRAMES:
        stream = joined(frame)
        found, (expected,) = only(stream, Limits()), FrameDecoder(Limits()).feed(stream)
        assert found == expected


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(head()[:-1], id="part of a head"),
        pytest.param(head(header_bytes=3) + b"ab", id="part of a header"),
        pytest.param(head(payload_bytes=3) + b"ab", id="part of a payload"),
        pytest.param(head() + head(), id="two frames"),
        pytest.param(head() + b"S", id="more bytes"),
        pytest.param(head(header_bytes=201) + bytes(201), id="header past the limit"),
        pytest.param(head(payload_bytes=1001) + bytes(1001), id="payload past the limit"),
        pytest.param(head(kind=99), id="unknown kind"),
        pytest.param(head(version=99), id="another version"),
        pytest.param(head(magic=b"HT"), id="another protocol"),
    ],
)
def test_other_bytes_are_left_to_the_stream(stream: bytes) -> None:
    assert only(stream) is None


def test_a_frame_inside_of_a_payload_is_not_taken_for_one() -> None:
    decoder = FrameDecoder(TIGHT)
    inner = joined((FrameKind.REQUEST, 50, 2, b"x", b""))
    whole = joined((FrameKind.REQUEST, 50, 1, b"y", inner))
    start = len(whole) - len(inner)
    assert list(decoder.feed(whole[:start])) == []
    assert decoder.only(inner) is None
    (frame,) = decoder.feed(inner)
    assert (frame.request_id, bytes(frame.payload)) == (1, inner)
    assert list(decoder.feed(whole[:10])) == []
    assert decoder.only(whole) is None


def test_a_socket_may_fill_the_payload_in_place() -> None:
    stream = joined((FrameKind.RESPONSE, 0, 3, b"", bytes(range(200))), (FrameKind.RESPONSE, 0, 4, b"", b""))
    decoder = FrameDecoder(Limits())
    cut = stream.index(b"\x05\x06")
    assert list(decoder.feed(stream[:cut])) == []
    target = decoder.target()
    assert target is not None
    assert len(target) == 195
    target[:] = stream[cut : cut + 195]
    assert decoder.filled(100) is None
    frame = decoder.filled(95)
    assert frame is not None
    assert bytes(frame.payload) == bytes(range(200))
    assert decoder.collecting is None
    assert [f.request_id for f in decoder.feed(stream[cut + 195 :])] == [4]


REFUSED = [
    pytest.param(b"G", "expected a secateur frame, got bytes that start with b'G'", id="one wrong byte"),
    pytest.param(b"GET / HTTP/1.1\r\n\r\n", "does the address belong to another service", id="http"),
    pytest.param(b"\x16\x03\x01", "expected a secateur frame", id="tls"),
    pytest.param(head(magic=b"SD"), "expected a secateur frame", id="wrong magic"),
    pytest.param(b"SC\x01", "the peer speaks protocol version 1, this side 4", id="wrong version"),
    pytest.param(
        head(kind=9), "frame of kind 9; kinds are 1 REQUEST, 2 RESPONSE, 3 ERROR, 4 NOTIFY, 5 PART", id="wrong kind"
    ),
]


@pytest.mark.parametrize(("data", "message"), REFUSED)
@pytest.mark.parametrize("step", [1, 1000])
def test_garbage_is_refused_at_the_first_byte_that_shows_it(data: bytes, message: str, step: int) -> None:
    with pytest.raises(ProtocolError, match=re.escape(message)):
        decode(data, TIGHT, step)


@pytest.mark.parametrize(
    ("data", "limit", "bytes_announced"),
    [
        pytest.param(head(header_bytes=201), "header_bytes_max", 201, id="header"),
        pytest.param(head(header_bytes=2**32 - 1), "header_bytes_max", 2**32 - 1, id="giant header"),
        pytest.param(head(payload_bytes=1001), "frame_bytes_max", 1001, id="payload"),
        pytest.param(head(payload_bytes=2**64 - 1), "frame_bytes_max", 2**64 - 1, id="giant payload"),
    ],
)
def test_an_announced_size_past_the_limit_is_refused_before_anything_is_allocated(
    data: bytes, limit: str, bytes_announced: int, allocated: Callable[[], int]
) -> None:
    before = allocated()
    with pytest.raises(LimitExceededError, match=f"{bytes_announced} bytes exceeds the limit.*{limit}") as caught:
        list(FrameDecoder(TIGHT).feed(data))
    assert caught.value.details == {"limit": limit}
    assert allocated() == before


def test_frames_in_front_of_garbage_are_delivered() -> None:
    frames = FrameDecoder(Limits()).feed(joined(FRAMES[0]) + b"garbage")
    assert next(frames).header == FRAMES[0][3]
    with pytest.raises(ProtocolError):
        next(frames)


def test_the_sender_holds_the_limits_too() -> None:
    with pytest.raises(LimitExceededError, match="header of 300 bytes"):
        encode_frame(FrameKind.REQUEST, bytes(300), b"", TIGHT)
    with pytest.raises(LimitExceededError, match="payload of 1001 bytes"):
        encode_frame(FrameKind.REQUEST, b"", bytes(1001), TIGHT)


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with contextlib.suppress(ProtocolError, LimitExceededError):
        decode(data, TIGHT)


@given(st.data())
def test_no_damage_raises_anything_else(data: st.DataObject) -> None:
    stream = bytearray(joined(*FRAMES[2:]))
    for _ in range(data.draw(st.integers(1, 4))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ProtocolError, LimitExceededError):
        decode(bytes(stream), TIGHT)
