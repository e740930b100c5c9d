"""Whether the server reaches its cluster, for probes that have no token."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from secateur.errors import AuthenticationError, Error
from secateur.server.state import ServerState

_FRESH_S: Final = 1.0
"""However many ask, the cluster is asked once in that time."""


class Health:
    """The last look at the cluster. Lives on one event loop.

    Args:
        server: Whose cluster.
    """

    def __init__(self, server: ServerState) -> None:
        self._server = server
        self._looked_s = 0.0
        self._is_reachable = False
        self._lock = asyncio.Lock()

    async def is_reachable(self) -> bool:
        """Whether the controller answered, at most a second ago."""
        async with self._lock:
            if time.monotonic() - self._looked_s > _FRESH_S:
                self._is_reachable = await self._server.in_thread(self._look)
                self._looked_s = time.monotonic()
            return self._is_reachable

    def _look(self) -> bool:
        try:
            with self._server.connections.lent() as connection:
                connection.jobs()  # the controller alone answers this, from memory
        except AuthenticationError:
            return True  # it has answered
        except Error:
            return False
        return True
