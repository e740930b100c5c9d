"""Frames, the messages of a connection: encoding and decoding, and the limits that both of its ends enforce.

A frame is a head of 24 bytes, a header (one msgpack value) and a payload (raw bytes, usually an Arrow IPC stream)::

    0    2         3      4           8            12              16               24
    | SC | version | kind | operation | request id | header length | payload length | header ... | payload ... |

All numbers are little endian. The head is checked before memory is allocated for the lengths in it. The operation says
what type the header has (:mod:`secateur.protocol.operations`); it is 0 in every frame but a REQUEST and a NOTIFY.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

import msgspec
import pyarrow as pa

from secateur.errors import LimitExceededError, ProtocolError
from secateur.protocol.hello import PROTOCOL_VERSION

Payload: TypeAlias = bytes | memoryview | Sequence[bytes | memoryview]
"""Bytes to send after the header: one buffer, or several that are sent one after the other."""

REQUEST_ID_MAX: Final = 2**32 - 1
_MAGIC: Final = b"SC"
FRAME_PREFIX: Final = _MAGIC + bytes([PROTOCOL_VERSION])
"""The bytes with which every frame begins."""
_HEAD: Final = struct.Struct("<2sBBIIIQ")
_EMPTY: Final = memoryview(b"")
_JOIN_BYTES_MAX: Final = 64 << 10  # up to here copying the payload behind the header costs less than a second write


class FrameKind(IntEnum):
    """The kind of a frame. The numbers are part of the protocol: never renumber."""

    REQUEST = 1
    RESPONSE = 2
    ERROR = 3
    NOTIFY = 4
    """A request without an answer."""
    PART = 5
    """A part of an answer that more parts follow; the last one is a RESPONSE."""
    ALIVE = 6
    """The server is still working on the requests of this connection.

    Sent every second, so that silence means that it does not work any more.
    """
    CANCEL = 7
    """The answer to request ``id`` is no longer needed: the server may stop working on it."""
    TRACE = 8
    """The span in which the next request of this connection is made; only to servers that take it."""


HEAD_BYTES: Final = _HEAD.size
SHORT_HEAD: Final = struct.Struct("<4sIIIQ")
"""The head of a frame for who writes or reads frames of one kind only: begin, operation, id, lengths."""
REQUEST_START: Final = FRAME_PREFIX + bytes([FrameKind.REQUEST])
RESPONSE_START: Final = FRAME_PREFIX + bytes([FrameKind.RESPONSE])
_KINDS: Final = {int(kind): kind for kind in FrameKind}


class Frame(msgspec.Struct, frozen=True):
    """A frame that has arrived.

    Attributes:
        kind: Its kind.
        operation: The code of the operation; 0 in an answer.
        request_id: The number by which an answer finds its request, counted by the side that asks; 0 where there is
            none.
        header: Its header, still as bytes.
        payload: Its bytes; empty when there are none. Read-only by convention; owned by this frame, so tables decoded
            from it may keep it.
    """

    kind: FrameKind
    operation: int
    request_id: int
    header: bytes
    payload: memoryview


def encode_frame(
    kind: FrameKind,
    header: bytes,
    payload: Payload = b"",
    limits: Limits | None = None,
    *,
    operation: int = 0,
    request_id: int = 0,
) -> list[bytes | memoryview]:
    """Turn a frame into buffers to write in order: one for a small frame, else the header and the payload uncopied.

    Raises:
        LimitExceededError: Header or payload are larger than ``limits`` allow; nothing was written.
    """
    if not payload and (limits is None or len(header) <= limits.header_bytes_max):  # most requests, and short answers
        return [_HEAD.pack(_MAGIC, PROTOCOL_VERSION, kind, operation, request_id, len(header), 0) + header]
    buffers = (payload,) if isinstance(payload, (bytes, memoryview)) else payload
    payload_bytes = 0
    for buffer in buffers:
        payload_bytes += buffer.nbytes if isinstance(buffer, memoryview) else len(buffer)
    if limits is not None and (len(header) > limits.header_bytes_max or payload_bytes > limits.frame_bytes_max):
        raise _too_large(len(header), payload_bytes, limits)
    head = _HEAD.pack(_MAGIC, PROTOCOL_VERSION, kind, operation, request_id, len(header), payload_bytes)
    if payload_bytes <= _JOIN_BYTES_MAX:
        return [b"".join((head, header, *buffers))]
    return [head + header, *(buffer for buffer in buffers if len(buffer))]


class FrameDecoder:
    """Cuts a stream of bytes into frames, in whatever pieces the bytes arrive.

    A payload that has not arrived in one piece is collected in a buffer of its own, so a large one is copied once.

    Attributes:
        limits: The bounds of the next frame; a server widens them after the hello.
        collecting: The memory of a payload that is being collected; None between two payloads. See :meth:`target`.
        partial: The start of a frame whose header is incomplete.
    """

    __slots__ = ("_filled", "_head", "_wanted", "collecting", "limits", "partial")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.partial = bytearray()
        self._wanted = 0  # bytes of it that make looking at it again worth while
        self._head = Frame(FrameKind.REQUEST, 0, 0, b"", _EMPTY)  # of the frame whose payload is being collected
        self.collecting: memoryview | None = None
        self._filled = 0

    @property
    def collected(self) -> int:
        """Bytes of a payload that is still on its way."""
        return self._filled if self.collecting is not None else 0

    def only(self, data: bytes) -> Frame | None:
        """The frame that the bytes are, if they are exactly one that begins where the last one ended.

        It is what nearly every read of a connection with short requests and answers returns, and costs a fifth of
        :meth:`feed`, which takes all other bytes.

        Returns:
            The frame; None if the bytes are anything else, of which nothing was taken in.
        """
        if self.partial or self.collecting is not None or len(data) < _HEAD.size or not data.startswith(FRAME_PREFIX):
            return None
        _, _, code, operation, request_id, header_bytes, payload_bytes = _HEAD.unpack_from(data)
        payload_start = _HEAD.size + header_bytes
        limits = self.limits
        if (
            payload_start + payload_bytes != len(data)
            or header_bytes > limits.header_bytes_max
            or payload_bytes > limits.frame_bytes_max
            or (kind := _KINDS.get(code)) is None
        ):
            return None
        payload = memoryview(data[payload_start:]) if payload_bytes else _EMPTY
        return Frame(kind, operation, request_id, data[_HEAD.size : payload_start], payload)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take in bytes and yield the frames that they complete; the iterator has to be exhausted before the next call.

        Raises:
            ProtocolError: The bytes are not frames; frames in front of them have been yielded. The decoder is of no
                further use.
            LimitExceededError: A frame announces more than the limits allow. The decoder is of no further use.
        """
        position = 0
        if self.collecting is not None:
            position = min(len(data), len(self.collecting) - self._filled)
            self.collecting[self._filled : self._filled + position] = memoryview(data)[:position]
            frame = self.filled(position)
            if frame is None:
                return
            yield frame
        if self.partial:
            self.partial += data[position:]
            if len(self.partial) < self._wanted:
                _check_prefix(self.partial)
                return
            data = bytes(self.partial)
            self.partial.clear()
            position = 0
        while len(data) - position >= _HEAD.size:
            if not data.startswith(FRAME_PREFIX, position):
                _check_prefix(data[position : position + _HEAD.size])
            _, _, code, operation, request_id, header_bytes, payload_bytes = _HEAD.unpack_from(data, position)
            if header_bytes > self.limits.header_bytes_max or payload_bytes > self.limits.frame_bytes_max:
                raise _too_large(header_bytes, payload_bytes, self.limits)
            kind = _KINDS.get(code)
            if kind is None:
                raise ProtocolError(
                    f"frame of kind {code}; kinds are {', '.join(f'{k.value} {k.name}' for k in FrameKind)}: is the"
                    " peer of a newer version?"
                )
            payload_start = position + _HEAD.size + header_bytes
            if payload_start > len(data):
                self._wanted = _HEAD.size + header_bytes
                self.partial += data[position:]
                return
            header = data[position + _HEAD.size : payload_start]
            position = payload_start + payload_bytes
            if position > len(data):
                self._head = Frame(kind, operation, request_id, header, _EMPTY)
                self._begin(payload_bytes, data[payload_start:])
                return
            payload = memoryview(data[payload_start:position]) if payload_bytes else _EMPTY
            yield Frame(kind, operation, request_id, header, payload)
        if position < len(data):
            self._wanted = _HEAD.size
            self.partial += data[position:]
            _check_prefix(self.partial)

    def target(self) -> memoryview:
        """Return the memory for the rest of the payload that is being collected.

        A socket may read straight into it and then call :meth:`filled`.
        """
        assert self.collecting is not None
        return self.collecting[self._filled :]

    def filled(self, count: int) -> Frame | None:
        """Note that ``count`` bytes of :meth:`target` were written; returns the frame when that completed it."""
        assert self.collecting is not None
        self._filled += count
        if self._filled < len(self.collecting):
            return None
        frame = msgspec.structs.replace(self._head, payload=self.collecting)
        self.collecting = None
        return frame

    def _begin(self, payload_bytes: int, arrived: bytes) -> None:
        # Arrow's allocator aligns for its kernels and touches no pages before bytes arrive, so a peer cannot
        # cost us memory by announcing a large payload
        payload = memoryview(pa.allocate_buffer(payload_bytes)).cast("B")
        payload[: len(arrived)] = arrived
        self.collecting, self._filled = payload, len(arrived)


def _check_prefix(start: bytes | bytearray) -> None:
    """Judge the first bytes of a frame, however few there are."""
    if start[:3] == FRAME_PREFIX[: len(start)]:
        return
    if start[:2] == _MAGIC:
        raise ProtocolError(
            f"the peer speaks protocol version {start[2]}, this side {PROTOCOL_VERSION}: install the same version of"
            " secateur on both sides",
            version=start[2],
        )
    raise ProtocolError(
        f"expected a secateur frame, got bytes that start with {bytes(start[:8])!r}: does the address belong to another"
        " service?"
    )


def _too_large(header_bytes: int, payload_bytes: int, limits: Limits) -> LimitExceededError:
    if header_bytes > limits.header_bytes_max:
        return LimitExceededError(
            f"a frame header of {header_bytes} bytes exceeds the limit of {limits.header_bytes_max}: shorten the"
            " statement or raise header_bytes_max",
            limit="header_bytes_max",
        )
    return LimitExceededError(
        f"a frame payload of {payload_bytes} bytes exceeds the limit of {limits.frame_bytes_max}: send or ask for less"
        " at a time, or raise frame_bytes_max",
        limit="frame_bytes_max",
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a connection; passing one is a :class:`~secateur.errors.LimitExceededError`, not an out-of-memory.

    Attributes:
        frame_bytes_max: Largest payload of one frame.
        header_bytes_max: Largest header of one frame; SQL text and parameters are sent in headers.
        connections_max: Connections after a valid hello that one server keeps open.
        unproven_max: Connections before it that one server keeps open; beyond that the oldest is dropped.
        held_bytes_max: Bytes of payloads that one server holds, over all connections, while they arrive and while their
            requests are processed. Above it, connections in the middle of a frame are not read from until there is
            room; data that is stored or queued is counted there, not here.
        stalled_s: Seconds without a byte after which a connection in the middle of a frame is dropped, when others wait
            for room.
        requests_in_flight_max: Requests of one connection that may be waiting for their answers.
        write_buffer_bytes_max: Unsent bytes of one connection above which its requests wait until the peer has read.
        hello_timeout_s: Seconds that a new connection has for its hello.
    """

    frame_bytes_max: int = 1 << 30
    header_bytes_max: int = 16 << 20
    connections_max: int = 4096
    unproven_max: int = 512
    held_bytes_max: int = 2 << 30
    stalled_s: float = 10.0
    requests_in_flight_max: int = 1024
    write_buffer_bytes_max: int = 4 << 20
    hello_timeout_s: float = 5.0


HANDSHAKE_LIMITS = Limits(frame_bytes_max=0, header_bytes_max=64 << 10)
"""The limits before a valid hello: an unauthenticated peer cannot make the server allocate more than this."""
