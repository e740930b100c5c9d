"""The state that the routes of one server share, and the part of it that belongs to the caller of a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request

from secateur.client.dbapi.connection import Connection
from secateur.errors import AuthenticationError
from secateur.server.callers import Caller, Callers
from secateur.server.connections import Connections
from secateur.server.dashboard.partition_heat import PartitionHeat
from secateur.server.dashboard.readings import Readings
from secateur.server.dashboard.templating import PageTexts
from secateur.server.idempotency import IdempotencyKeys
from secateur.server.limits import ServerLimits
from secateur.server.statements import SubmittedStatements
from secateur.wire import Tls

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
        self.callers = Callers(self.connections, limits.tokens_max)
        self.statements = SubmittedStatements(limits)
        self.keys = IdempotencyKeys(limits)
        self.readings = Readings(self.connections, limits.page_share_max)
        self.pages = PageTexts()
        self.heat = PartitionHeat()
        self._threads = ThreadPoolExecutor(limits.system_running_max, thread_name_prefix="secateur-http")

    async def in_thread(self, work: Callable[..., R], *args: Any) -> R:
        """Do something that blocks, in a thread that statements do not take."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def close(self) -> None:
        """End what runs, and close all connections. Blocks until the threads have ended."""
        self.statements.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.callers.close()
        self.connections.close()


class ServerOfCaller:
    """A server as one caller has it: connections are the caller's own.

    What the pages show of the cluster is read once for all callers, with the token of the server.

    Args:
        server: The server.
        caller: Who calls.
    """

    def __init__(self, server: ServerState, caller: Caller) -> None:
        self.limits = server.limits
        self.caller = caller
        self.connections = caller.connections
        self.statements = server.statements
        self.keys = server.keys
        self.readings = server.readings
        self.pages = server.pages
        self.heat = server.heat
        self.in_thread = server.in_thread

    async def ask(self, work: Callable[[Connection], R], settings: Mapping[str, str] | None = None) -> R:
        """Do something with a connection of the caller, in a thread that statements do not take.

        Args:
            work: It blocks.
            settings: Settings of SQL for it.
        """

        def asked() -> R:
            with self.connections.lent(settings) as connection:
                return work(connection)

        return await self.in_thread(asked)

    def check_sees_all(self) -> None:
        """Refuse what tells of all tables to a caller whose token is good for some only.

        What is read once for all callers the members do not check for each.

        Raises:
            AuthenticationError: It is.
        """
        if self.caller.is_limited:
            raise AuthenticationError(
                "the dashboard and the metrics tell of all tables, and the token of this request is good for some only:"
                " read those over /api/v1/statements"
            )


def server_of_caller(request: Request) -> ServerOfCaller:
    """The server as the caller of a request has it."""
    return ServerOfCaller(request.app.state.server, request.state.caller)


Server = Annotated[ServerOfCaller, Depends(server_of_caller)]
"""The parameter of a route that gets its server, as its caller has it."""
