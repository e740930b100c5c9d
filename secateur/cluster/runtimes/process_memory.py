"""Configures how a member's process treats freed memory."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from typing import Final

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3

_ARRAY_BYTES_MAX: Final = 32 << 20
_FREE_BYTES_MAX: Final = 64 << 20


def keep_freed_memory() -> None:
    """Keep up to 64 MB of freed memory for the next arrays of up to 32 MB, instead of returning it to the system.

    Kernels make arrays of a megabyte for every block of rows, and getting fresh pages for each takes longer than the
    computation in them. For a process that belongs to a member; Arrow's buffers and DuckDB's have allocators of their
    own. Does nothing where the C library is not glibc.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):  # AttributeError: musl has no mallopt
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _ARRAY_BYTES_MAX)
        libc.mallopt(_M_TRIM_THRESHOLD, _FREE_BYTES_MAX)
