"""The bytes that connections on an event loop hold: arriving, not sent yet, and how many a server allows.

Small frames are cut out of what a read returned; a large payload is read straight into its final memory.

In the payload budget of a server, bytes count from their arrival until their request has been processed. Announced
bytes that have not arrived cost nothing, so they do not count. Above the budget, connections in the middle of a frame
are not read from until a request has been processed.

**Invariant**: of the connections in the middle of a frame, the one whose frame began first is always read from, so that
frames that wait for each other cannot wait for ever; it alone may exceed the budget. If it falls silent while others
wait, it is dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from secateur.errors import Error
from secateur.wire.frames import Frame, FrameDecoder, Limits

_READ_BYTES: Final = 64 << 10
_FIRST_READ_BYTES: Final = 2 << 10

_PIECE_BYTES: Final = 1 << 20


class FrameReceiver(asyncio.BufferedProtocol):
    """The receiving half of a connection; the subclass handles the frames.

    The event loop asks for a buffer for the next bytes instead of passing bytes: a payload of megabytes is never
    copied, which halves the time it takes. After the last wanted frame, or an invalid one, further bytes are dropped.

    Args:
        limits: The bounds of the first frames.
        is_stranger: Whether the peer has not proved its identity yet: it is then read in small pieces, until
            :meth:`read_more`.
    """

    def __init__(self, limits: Limits, *, is_stranger: bool = False) -> None:
        self._decoder = FrameDecoder(limits)
        self._read = memoryview(bytearray(_FIRST_READ_BYTES if is_stranger else _READ_BYTES))
        self._reads_payload = False
        self._has_ended = False

    def read_more(self) -> None:
        """Read in large pieces from now on."""
        self._read = memoryview(bytearray(_READ_BYTES))

    def payload_grew(self, size: int) -> None:
        """So many bytes of a payload that is still on its way have arrived."""

    def frame_arrived(self, frame: Frame) -> bool:
        """Take a frame. Returns whether more of them are wanted."""
        raise NotImplementedError(f"{type(self).__name__} has no frame_arrived()")

    def frames_failed(self, error: Error) -> None:
        """Called when the bytes are not valid frames, or a frame could not be accepted."""
        raise NotImplementedError(f"{type(self).__name__} has no frames_failed()")

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._decoder.collecting is None or self._has_ended:
            self._reads_payload = False
            return self._read
        self._reads_payload = True
        return self._decoder.target()

    def buffer_updated(self, nbytes: int) -> None:
        if self._has_ended:
            return
        try:
            if self._reads_payload:
                self.payload_grew(nbytes)
                frame = self._decoder.filled(nbytes)
                self._has_ended = frame is not None and not self.frame_arrived(frame)
                return
            data = bytes(self._read[:nbytes])
            only = self._decoder.only(data)
            if only is not None:
                self._has_ended = not self.frame_arrived(only)
                return
            for frame in self._decoder.feed(data):
                if not self.frame_arrived(frame):
                    self._has_ended = True
                    return
            if self._decoder.collected:
                self.payload_grew(self._decoder.collected)
        except Error as error:
            self._has_ended = True
            self.frames_failed(error)


class SendBuffer:
    """Feeds a transport in pieces, in order, as fast as the peer reads.

    A transport copies the bytes that it cannot send at once (always on Python 3.11), so passing it a large payload
    whole would hold the payload twice. Here at most ``buffer_bytes_max`` plus one piece are copied; the rest waits
    uncopied.

    Attributes:
        clear: Set while everything has been passed to the transport and the transport accepts more. Callers that can
            wait for it should do so before they write.
        is_clear: Whether it is set; a server looks at that several times for each request.
    """

    __slots__ = ("_paused", "_transport", "_waiting", "clear", "is_clear")

    def __init__(self, transport: asyncio.Transport, buffer_bytes_max: int) -> None:
        transport.set_write_buffer_limits(high=buffer_bytes_max)
        self._transport = transport
        self._waiting: deque[memoryview] = deque()
        self._paused = False
        self.clear = asyncio.Event()
        self._set_clear()

    def write(self, buffers: Sequence[bytes | memoryview]) -> None:
        """Send buffers after everything written before; returns at once."""
        if self.is_clear and len(buffers) == 1:  # every small frame
            self._transport.write(buffers[0])
            return
        self._waiting.extend(memoryview(buffer).cast("B") for buffer in buffers if len(buffer))
        self._flush()

    def pause(self) -> None:
        """The transport asks for a pause."""
        self._paused = True
        self._unset_clear()

    def resume(self) -> None:
        """The transport has room again."""
        self._paused = False
        self._flush()

    def abandon(self) -> None:
        """The peer has disconnected: drop the unsent data and fail the writers that wait."""
        self._waiting.clear()
        self._paused = False
        self._set_clear()

    def _set_clear(self) -> None:
        self.is_clear = True
        self.clear.set()

    def _unset_clear(self) -> None:
        self.is_clear = False
        self.clear.clear()

    def _flush(self) -> None:
        while self._waiting and not self._paused:
            buffer = self._waiting.popleft()
            if len(buffer) > _PIECE_BYTES:
                self._waiting.appendleft(buffer[_PIECE_BYTES:])
            self._transport.write(buffer[:_PIECE_BYTES])
        if self._waiting:
            self._unset_clear()
        elif not self._paused:
            self._set_clear()


class PausableConnection(Protocol):
    """A connection, as far as it can be held up."""

    def hold_up(self) -> None:
        """Do not read for now."""

    def go_on(self) -> None:
        """Read again."""

    def give_way(self) -> None:
        """Hang up: others wait, and nothing has come for long."""


class PayloadBudget:
    """Lives on the event loop of a server.

    Args:
        bytes_max: Bytes to hold.
        stalled_s: Seconds without a byte after which a frame has stalled.
    """

    def __init__(self, bytes_max: int, stalled_s: float) -> None:
        self.held = 0
        self._bytes_max = bytes_max
        self._stalled_s = stalled_s
        # When the last byte came, in the order in which the frames began.
        self._arriving: dict[PausableConnection, float] = {}
        self._held_up: set[PausableConnection] = set()
        self._look: asyncio.TimerHandle | None = None

    def arrived(self, receiver: PausableConnection, size: int) -> None:
        """Bytes of a frame that is not whole yet."""
        self.held += size
        self._arriving[receiver] = asyncio.get_running_loop().time()
        if self.held > self._bytes_max and next(iter(self._arriving)) is not receiver:
            receiver.hold_up()
            self._held_up.add(receiver)
            self._look_later()

    def completed(self, receiver: PausableConnection, size: int) -> None:
        """Record that a frame is complete, with ``size`` bytes that were not counted yet."""
        self.held += size
        if self._arriving.pop(receiver, None) is not None:
            self._let_go_on()

    def given_up(self, receiver: PausableConnection, size: int) -> None:
        """A frame will not become whole; ``size`` bytes of it had arrived."""
        self._held_up.discard(receiver)
        self._arriving.pop(receiver, None)
        self.release(size)

    def release(self, size: int) -> None:
        """Bytes have been worked on."""
        self.held -= size
        if self._held_up:
            self._let_go_on()

    def _let_go_on(self) -> None:
        for receiver in [receiver for receiver in self._arriving if receiver in self._held_up]:
            if self.held > self._bytes_max and next(iter(self._arriving)) is not receiver:
                break
            self._held_up.discard(receiver)
            receiver.go_on()

    def _look_later(self) -> None:
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(self._stalled_s, self._drop_stalled)

    def _drop_stalled(self) -> None:
        self._look = None
        if not self._held_up:
            return
        oldest, last_s = next(iter(self._arriving.items()))
        if asyncio.get_running_loop().time() - last_s >= self._stalled_s and oldest not in self._held_up:
            oldest.give_way()
        self._look_later()
