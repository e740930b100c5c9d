"""Keeps direct writes of a table apart from the publication of a load into it.

A write reaches the primary at one moment and each backup at another. If a load were published in between, the copies would apply the two in different
orders. So a member that prepares a load first lets its running writes reach their backups and starts no new ones until the load is published or
aborted.

**Invariant**: while the gate of a table is closed, none of its writes is on its way from this primary to a backup.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from secateur.errors import DeadlineError

__all__ = ["WriteGate"]

_WAIT_MAX_S: Final = 30.0
"""A load that stays between prepare and publish for longer has lost its controller."""


class WriteGate:
    """The gate of one table on one member. Lives on the member's event loop.

    Args:
        table: Name of the table, for messages.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._writes = 0
        self._loads: set[str] = set()
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Around a write at the primary, until its backups have it. Waits while a load is being published.

        Raises:
            DeadlineError: A load has been between prepare and publish for too long; nothing was written.
        """
        try:
            async with asyncio.timeout(_WAIT_MAX_S), self._changed:
                await self._changed.wait_for(lambda: not self._loads)
                self._writes += 1
        except TimeoutError as error:
            raise DeadlineError(
                f"{self._table}: a load has been waiting for its publication for more than {_WAIT_MAX_S:g} s; nothing was written, try again"
            ) from error
        try:
            yield
        finally:
            async with self._changed:
                self._writes -= 1
                self._changed.notify_all()

    async def close(self, load_id: str) -> None:
        """Let the running writes end, and no new ones begin, until :meth:`open` is called for the same load."""
        async with self._changed:
            self._loads.add(load_id)
            await self._changed.wait_for(lambda: not self._writes)

    async def open(self, load_id: str) -> None:
        """The load has been published or aborted. Nothing happens when it never closed the gate."""
        async with self._changed:
            self._loads.discard(load_id)
            self._changed.notify_all()
