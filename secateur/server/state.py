"""What the routes of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request

from secateur.server.connections import Connections
from secateur.server.dashboard.cluster_line import ClusterLines
from secateur.server.dashboard.readings import Readings
from secateur.server.idempotency import IdempotencyKeys
from secateur.server.limits import ServerLimits
from secateur.server.statements import SubmittedStatements
from secateur.wire import Tls

__all__ = ["Server", "ServerState"]

R = TypeVar("R")


class ServerState:
    """The connections, threads and records of one server.

    Args:
        address: ``secateur://host:port`` of the cluster.
        token: Its secret; ``""`` for none.
        limits: The bounds of the server.
        tls: How connections to the cluster are encrypted; None for one without TLS.
    """

    def __init__(self, address: str, token: str, limits: ServerLimits, tls: Tls | None = None) -> None:
        self.limits = limits
        self.connections = Connections(address, token, limits.running_max + limits.system_running_max, tls)
        self.statements = SubmittedStatements(self.connections, limits)
        self.keys = IdempotencyKeys(limits)
        self.readings = Readings(self.connections, limits.page_share_max)
        self.lines = ClusterLines(self.readings)
        self._threads = ThreadPoolExecutor(limits.system_running_max, thread_name_prefix="secateur-http")

    async def in_thread(self, work: Callable[..., R], *args: Any) -> R:
        """Do something that blocks, in a thread that statements do not take."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def close(self) -> None:
        """End what runs, and close all connections. Blocks until the threads have ended."""
        self.statements.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.connections.close()


def _state_of(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


Server = Annotated[ServerState, Depends(_state_of)]
"""The parameter of a route that gets the state of its server."""
