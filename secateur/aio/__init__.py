"""The client for asyncio: ``conn = await secateur.aio.connect(address)``.

Everything that a connection does is there, with methods that are awaited. Hundreds of statements may be in flight on
one connection. Needs ``pip install secateur[aio]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.exports import exports

if TYPE_CHECKING:
    from secateur.aio.connection import AsyncChanges, AsyncConnection, AsyncCursor, AsyncJob, AsyncTableHandle, connect

__all__ = ["AsyncChanges", "AsyncConnection", "AsyncCursor", "AsyncJob", "AsyncTableHandle", "connect"]

_FILES = {
    "connection": ["AsyncChanges", "AsyncConnection", "AsyncCursor", "AsyncJob", "AsyncTableHandle", "connect"],
}

_, __getattr__ = exports(__name__, _FILES)
