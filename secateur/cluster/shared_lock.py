"""A lock with many shared holders, or one exclusive holder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class SharedLock:
    """A lock for tasks. Lives on one event loop.

    Who waits to hold it exclusively comes before those who come later to share it, so no holder may ask to share it
    again.
    """

    def __init__(self) -> None:
        self._holders = 0
        self._waiting = 0
        self._is_alone = False
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Hold it together with others."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._is_alone and not self._waiting)
            self._holders += 1
        try:
            yield
        finally:
            async with self._changed:
                self._holders -= 1
                self._changed.notify_all()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Hold it without others."""
        async with self._changed:
            self._waiting += 1
            try:
                await self._changed.wait_for(lambda: not self._is_alone and not self._holders)
                self._is_alone = True
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            async with self._changed:
                self._is_alone = False
                self._changed.notify_all()
