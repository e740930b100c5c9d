"""The unsent data of one connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

_PIECE_BYTES: Final = 1 << 20


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
