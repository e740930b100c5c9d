"""Bounds the time for which a blocking socket waits for its peer.

Python bounds a wait with a call of ``poll`` before each ``send`` and ``recv``: four system calls for a request and its
answer, where the kernel can bound two by itself.

A thread that looked for its answer without waiting before it waits, 24 to 48 times with ``sched_yield`` between, had an
echo in 20 microseconds instead of 29, and a row by key in the same time as one that waits at once. It does not look.
"""

from __future__ import annotations

import math
import socket
import struct
import sys
from typing import Final

from secateur.wire.waits import Stream

TIMEOUTS: Final = (TimeoutError, BlockingIOError)
"""The errors of ``send`` and ``recv`` at the end of a wait: by Python's own bound, and by that of the kernel."""

_TIMEVAL: Final = struct.Struct("ll")
_KERNEL_BOUNDS: Final = sys.platform == "linux" and _TIMEVAL.size == 16
_TICK_S: Final = 0.01
"""The kernel counts in ticks, the first of which has begun already: a wait may be shorter by one than was asked."""


def wait_at_most(connected: Stream, seconds: float) -> None:
    """Bound the time for which each following ``send`` or ``recv`` waits; at its end they raise one of `TIMEOUTS`.

    Args:
        connected: A connected socket.
        seconds: More than 0. Never less, and up to 20 ms more.
    """
    # A socket of TLS looks at the time-out of Python's alone.
    if not _KERNEL_BOUNDS or type(connected) is not socket.socket:
        connected.settimeout(seconds)
        return
    whole = math.ceil((seconds + _TICK_S) * 1e6)
    bound = _TIMEVAL.pack(whole // 1_000_000, whole % 1_000_000)
    connected.setblocking(True)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bound)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)
