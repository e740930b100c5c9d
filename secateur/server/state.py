"""The state that the routes of one server share, and the part of it that belongs to the caller of a request."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from secateur.client.dbapi.connection import Connection
from secateur.errors import AuthenticationError
from secateur.server.callers import Caller, Callers, Connections
from secateur.server.dashboard.partition_map import PartitionHeat
from secateur.server.dashboard.readings import Readings
from secateur.server.dashboard.templating import PageTexts
from secateur.server.limits import ServerLimits
from secateur.server.statements import SubmittedStatements
from secateur.wire import Tls

_HEADER: Final = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class _Made:
    body: bytes
    task: asyncio.Future[str]
    time_s: float


class IdempotencyKeys:
    """Remembers the ids of what requests with a key have made. Lives on one event loop.

    Source: the IETF draft "The Idempotency-Key HTTP Header Field".

    Args:
        limits: How many keys are remembered, and for how long.
    """

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._made: OrderedDict[tuple[bytes, str, str], _Made] = OrderedDict()

    async def once(
        self, caller: bytes, path: str, key: str | None, body: bytes, make: Callable[[], Awaitable[str]]
    ) -> str:
        """Make something, unless a request with this key has; its id.

        A failure makes nothing: the next request with the key tries again. Requests that come at once wait for the
        first, whose making goes on when its caller goes away.

        Args:
            caller: Who asks, as the digest of a token; keys of different callers are different.
            path: Where the request goes; keys of different paths are different.
            key: The key of the request; None always makes something new.
            body: What the request says.
            make: Makes it.

        Raises:
            HTTPException: The key has come with another body: status 422.
            Error: Why it could not be made.
        """
        if key is None:
            return await make()
        self._forget_old()
        digest = hashlib.sha256(body).digest()
        made = self._made.get((caller, path, key))
        if made is not None and made.body != digest:
            raise HTTPException(422, f"the {_HEADER} {key!a} has come with another body: each request needs a new one")
        if made is None:
            made = self._made[caller, path, key] = _Made(digest, asyncio.ensure_future(make()), time.monotonic())
            made.task.add_done_callback(lambda task: self._forget_failure((caller, path, key), task))
        return await asyncio.shield(made.task)

    def _forget_failure(self, place: tuple[bytes, str, str], task: asyncio.Future[str]) -> None:
        if task.cancelled() or task.exception() is not None:
            found = self._made.get(place)
            if found is not None and found.task is task:
                del self._made[place]

    def _forget_old(self) -> None:
        oldest_s = time.monotonic() - self._limits.keys_kept_s
        while self._made:
            place, first = next(iter(self._made.items()))
            if not first.task.done() or (first.time_s > oldest_s and len(self._made) < self._limits.keys_max):
                return
            del self._made[place]


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
