"""The connections of the server to its cluster: its own, and those of each caller, whose token the cluster accepts.

What a caller may do, the cluster says: its statements and jobs run on connections that were opened with its own token.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from secateur.client.connect import connect, parse_address
from secateur.client.dbapi.connection import Connection
from secateur.errors import AuthenticationError, Error, LimitExceededError, ParameterError, UnreachableError
from secateur.partitioning.types.sql_text import text_literal
from secateur.protocol.hello import Greeting
from secateur.protocol.tokens import SIGNED_CHARS_MAX, digest_of
from secateur.wire import Channel, Tls, hello

_CONNECT_TIMEOUT_S: Final = 2.0
"""A caller over HTTP may come back; a thread that waits for a controller serves nobody."""
_SETTING_LENGTH_MAX: Final = 64


class Connections:
    """Lends connections, one to a thread at a time; as many exist as threads ask at once. Thread-safe.

    Args:
        address: ``secateur://host:port`` of the cluster.
        token: The token that they are opened with; ``""`` for none.
        idle_max: Connections that are kept while nobody uses them.
        tls: How they are encrypted; None for a cluster without TLS.
    """

    def __init__(self, address: str, token: str, idle_max: int, tls: Tls | None = None) -> None:
        self.address = address
        self.token = token
        self.tls = tls
        self._idle_max = idle_max
        self._idle: list[Connection] = []
        self._is_closed = False
        self._lock = threading.Lock()

    @contextmanager
    def lent(self, settings: Mapping[str, str] | None = None) -> Iterator[Connection]:
        """A connection on which nobody has set anything, and which refuses statements about this process.

        Args:
            settings: Settings of SQL for this use; the connection is not used again after it.

        Raises:
            Error: The cluster cannot be reached, or a setting has no such value.
        """
        if settings:
            with self._opened() as connection:
                for name, value in settings.items():
                    connection.execute(_set_statement(name, value))
                connection.local_effects = False
                yield connection
            return
        connection = self._take()
        try:
            yield connection
        except UnreachableError:
            connection.close()  # perhaps another cluster has the address by now
            raise
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close what is idle; what is lent is closed when it comes back."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        connection = self._opened()
        connection.local_effects = False
        return connection

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            keep = not self._is_closed and not connection.closed and len(self._idle) < self._idle_max
            if keep:
                self._idle.append(connection)
        if not keep:
            with suppress(Error):
                connection.close()

    def _opened(self) -> Connection:
        return connect(self.address, token=self.token, connect_timeout_s=_CONNECT_TIMEOUT_S, tls=self.tls)


def _set_statement(name: str, value: str) -> str:
    """``SET name = 'value'``, of a name that is one and a value that stays within its quotes."""
    if not (name.isascii() and name.isidentifier() and len(name) <= _SETTING_LENGTH_MAX) or name.upper() == "GLOBAL":
        raise ParameterError(f"{name!a} is no name of a setting; docs/settings.md has those of a connection")
    return f"SET {name} = {text_literal(value)}"


_FRESH_S: Final = 2.0
"""A token that was looked at longer ago is looked at again, while its caller is served."""
_VALID_S: Final = 5.0
"""A token that was looked at longer ago is looked at before its caller is served: the time for which one that was
revoked may still be shown what the server keeps. The cluster itself refuses it at once.
"""
_ASKED_MAX: Final = 64
"""Looks that wait. A wrong token costs the cluster a hello, and strangers may not make it busy with them."""
_LOOK_S_MAX: Final = 5.0
_IDLE_MAX: Final = 2


@dataclass(eq=False, slots=True)
class Caller:
    """A caller, known by one token.

    Attributes:
        digest: That of the token.
        connections: Connections that were opened with it.
        looked_s: When the cluster last accepted it, on the clock of ``time.monotonic``.
        is_limited: Whether the token is good for some tables only.
        ends_s: When the token is over, on that clock.
    """

    digest: bytes
    connections: Connections
    looked_s: float = -math.inf
    is_limited: bool = False
    ends_s: float = math.inf


class Callers:
    """Admits callers by their tokens. Lives on one event loop.

    Args:
        own: The connections of the server.
        tokens_max: Callers whose connections are kept, beside those with the token of the server.
    """

    def __init__(self, own: Connections, tokens_max: int) -> None:
        self.own = Caller(digest_of(own.token), own)
        self._tokens_max = tokens_max
        self._known: OrderedDict[bytes, Caller] = OrderedDict({self.own.digest: self.own})  # the oldest use first
        self._looks: dict[bytes, asyncio.Task[None]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="secateur-http-tokens")

    async def admitted(self, token: str | None) -> Caller | None:
        """The caller with a token; None if the cluster does not accept it. A new token costs a connection.

        Everybody is the server itself where the cluster asks for no token. While the cluster is out of reach, tokens
        that it has accepted stay as they are: nobody can revoke them either.

        Args:
            token: As it came with the request; None if none did.

        Raises:
            LimitExceededError: Too many unknown tokens are being looked at.
            Error: The cluster is out of reach, and the token unknown.
        """
        if not self.own.connections.token:
            return self.own
        if token is None or len(token) > SIGNED_CHARS_MAX:
            return None
        digest = digest_of(token)
        caller = self._known.get(digest)
        if caller is not None and caller.ends_s <= time.monotonic():
            self._forget(digest)
            caller = None
        age_s = math.inf if caller is None else time.monotonic() - caller.looked_s
        if age_s > _FRESH_S:
            look = self._look_at(digest, token)
            if age_s > _VALID_S:
                await asyncio.shield(look)
        caller = self._known.get(digest)
        if caller is not None:
            self._known.move_to_end(digest)
        return caller

    def close(self) -> None:
        """Close the connections of all callers but the server's own. Blocks until the thread has ended."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        for caller in self._known.values():
            if caller is not self.own:
                caller.connections.close()

    def _look_at(self, digest: bytes, token: str) -> asyncio.Task[None]:
        """Ask the cluster about a token, once for all requests that wait for it."""
        look = self._looks.get(digest)
        if look is None:
            if len(self._looks) >= _ASKED_MAX:
                raise LimitExceededError(
                    f"{_ASKED_MAX} tokens that the HTTP server does not know are being looked at: try again",
                    limit=_ASKED_MAX,
                    retry_safe=True,
                )
            look = self._looks[digest] = asyncio.create_task(self._look(digest, token))
            look.add_done_callback(lambda done: self._looked(digest, done))
        return look

    def _looked(self, digest: bytes, look: asyncio.Task[None]) -> None:
        del self._looks[digest]
        if not look.cancelled():
            look.exception()  # it may be that nobody has waited for it

    async def _look(self, digest: bytes, token: str) -> None:
        own = self.own.connections

        def greet() -> Greeting:
            host, port = parse_address(own.address)
            with closing(Channel(host, port, hello(token), timeout_s=_LOOK_S_MAX, tls=own.tls)) as channel:
                return channel.connect()

        asked_s = time.monotonic()
        try:
            greeting = await asyncio.get_running_loop().run_in_executor(self._thread, greet)
        except AuthenticationError:
            self._forget(digest)
            return
        except Error:
            if digest not in self._known:
                raise
            self._known[digest].looked_s = time.monotonic()
            return
        if digest not in self._known:
            self._known[digest] = (
                self.own
                if digest == self.own.digest
                else Caller(digest, Connections(own.address, token, _IDLE_MAX, own.tls))
            )
        caller = self._known[digest]
        caller.looked_s, caller.is_limited = time.monotonic(), greeting.is_limited
        caller.ends_s = math.inf if greeting.expires_in_s is None else asked_s + greeting.expires_in_s
        while len(self._known) > self._tokens_max + 1:
            self._forget(next(one for one in self._known if one != self.own.digest))

    def _forget(self, digest: bytes) -> None:
        caller = self._known.pop(digest, None)
        if caller is not None and caller is not self.own:
            caller.connections.close()
