"""Write latches: keep direct writes of a table apart from the publication of a load into it.

A write reaches the primary at one moment and each backup at another. If a load were published in between, the copies
would apply the two in different orders. So a member that prepares a load first lets its running writes reach their
backups and starts no new ones until the load is published or aborted.

The latch of the primary opens when the primary has published. A write that follows at once may reach a backup that has
not published yet: it says which load was published before it, and waits there for that load
(:meth:`secateur.cluster.member.replication.received_changes.ReceivedChanges.write_copy`).

**Invariant**: while the latch of a table is closed, none of its writes is on its way from this primary to a backup.

The holder of a latch has a lease on it; see :mod:`secateur.cluster.load_leases`.
"""

from __future__ import annotations

import asyncio

from secateur.errors import LoadFailedError


class WriteLatch:
    """The latch of one table on one member. Lives on the member's event loop.

    Args:
        table: Name of the table, for messages.
        wait_max_s: Seconds that a write waits for it to open.

    Attributes:
        is_closed: Whether writes have to wait.
    """

    def __init__(self, table: str, wait_max_s: float) -> None:
        self._wait_max_s = wait_max_s
        self._table = table
        self._writes = 0
        self._holders: set[str] = set()
        self.is_closed = False
        self._opened = asyncio.Event()
        self._drained = asyncio.Event()

    async def wait_open(self) -> None:
        """Wait until the latch is open.

        Raises:
            LoadFailedError: It has been held for too long; nothing was written.
        """
        try:
            async with asyncio.timeout(self._wait_max_s):
                while self._holders:
                    self._opened.clear()
                    await self._opened.wait()
        except TimeoutError as error:
            raise LoadFailedError(
                f"{self._table}: load or change {' and '.join(sorted(self._holders))} has held back writes"
                f" for more than {self._wait_max_s:g} s; nothing was written, try again",
                table=self._table,
            ) from error

    def begin(self) -> None:
        """A write is on its way from now on, until :meth:`end`.

        To be called while the latch is open, or another write is on its way.
        """
        self._writes += 1

    def end(self, _: object = None) -> None:
        """A write has reached its backups, or was not made; it may be called by a future that is done then."""
        self._writes -= 1
        if not self._writes:
            self._drained.set()

    async def close(self, holder: str) -> None:
        """Let the running writes end, and no new ones begin, until :meth:`open` is called for the same holder."""
        self._holders.add(holder)
        self.is_closed = True
        while self._writes:
            self._drained.clear()
            await self._drained.wait()

    def open(self, holder: str) -> None:
        """The load has been published or aborted. Nothing happens when it never closed the latch."""
        self._holders.discard(holder)
        self.is_closed = bool(self._holders)
        if not self.is_closed:
            self._opened.set()
