"""The connections of the server to its cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from secateur.client.connect import connect
from secateur.client.dbapi.connection import Connection
from secateur.errors import Error, ParameterError, UnreachableError
from secateur.partitioning.tables.identifier import text_literal
from secateur.wire import Tls

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
