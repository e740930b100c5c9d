"""Receives frames from a socket.

Small frames are cut out of what a read returned; a large payload is read straight into its final memory.
"""

from __future__ import annotations

import asyncio
from typing import Final

from secateur.errors import Error
from secateur.wire.frames import Frame, FrameDecoder
from secateur.wire.limits import Limits

_READ_BYTES: Final = 64 << 10
_FIRST_READ_BYTES: Final = 2 << 10


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
