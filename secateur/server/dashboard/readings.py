"""The cluster is read once for all who look at pages or metrics, and no more often than watching may cost."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from secateur.client.dbapi.connection import Connection
from secateur.errors import DeadlineError, Error, UnreachableError
from secateur.server.callers import Connections

PERIOD_S: Final = 1.4
"""Time is divided into periods, and each query is made at most once in each. A page is fetched at the beginning of
each, so what it shows is at most 1.4 seconds old, and the time of the fetch, however many pages are open. A change is
to be on a page within 2 seconds.
"""
_STALE_S: Final = 15.0
_TIMES: Final = 5
"""A reading costs what the quickest of the last ones took: the others have waited for something else, and a page of a
busy cluster should not be old for it. Until so many were made, it is made again in every period.
"""
_DOWN_S: Final = 1.0
ANSWER_S: Final = 5.0
_KEPT_MAX: Final = 64

T = TypeVar("T")
Key = tuple[str, tuple[Any, ...]]


class PacedReading(Generic[T]):
    """Something that is read from the cluster, and kept until it may be read again. Thread-safe.

    If it takes long, it is read less often: after its own time divided by ``share_max``.

    Args:
        connections: To the cluster.
        read: Reads it.
        share_max: The share of the time for which it may be read.
        period_s: The seconds within which it is read at most once.
        stale_s: It is read again after so many seconds, whatever it costs.
        times: So many of its newest times decide about its cost.

    Attributes:
        took_s: The seconds that it took the last time.
    """

    def __init__(
        self,
        connections: Connections,
        read: Callable[[Connection], T],
        share_max: float,
        period_s: float,
        *,
        stale_s: float = _STALE_S,
        times: int = _TIMES,
    ) -> None:
        self._connections = connections
        self._read = read
        self._share_max = share_max
        self._period_s = period_s
        self._stale_s = stale_s
        self._times_s: deque[float] = deque(maxlen=times)
        self._kept: T | Error
        self._next_s = 0.0
        self._lock = threading.Lock()
        self.took_s = 0.0

    def get(self) -> T:
        """Returns the last reading, or a new one. It blocks while the cluster is asked.

        Raises:
            Error: The cluster did not answer; it is asked again after a second.
        """
        with self._lock:
            if time.monotonic() >= self._next_s:
                self._renew()
            if isinstance(self._kept, Error):
                raise self._kept
            return self._kept

    def _renew(self) -> None:
        begun_s = time.monotonic()
        try:
            with self._connections.lent() as connection:
                self._kept = self._read(connection)
        except Error as error:
            error.__traceback__ = None
            self._kept, self._next_s = self._described(error), time.monotonic() + _DOWN_S
            return
        self.took_s = time.monotonic() - begun_s
        self._times_s.append(self.took_s)
        periods = 1
        if len(self._times_s) == self._times_s.maxlen:
            pause_s = min(min(self._times_s) / self._share_max, self._stale_s)
            periods = max(math.ceil(pause_s / self._period_s), 1)
        self._next_s = (begun_s // self._period_s + periods) * self._period_s

    def _described(self, error: Error) -> Error:
        if not isinstance(error, DeadlineError):
            return error
        return UnreachableError(
            f"the cluster at {self._connections.address} has not answered for {ANSWER_S:g} s: its controller is gone,"
            " cannot be reached, or has too much to do"
        )


def row_objects(
    connection: Connection, sql: str, params: Sequence[Any] = (), timeout_s: float | None = None
) -> Iterator[dict[str, Any]]:
    """Execute a query, and yield its rows by the names of their columns.

    Raises:
        DeadlineError: It has not ended in time.
        Error: The query failed.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql, list(params), timeout=timeout_s)
        assert cursor.description is not None, "a query has columns"
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row, strict=True))


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows of a query as they were at one moment.

    Attributes:
        rows: The rows by the names of their columns.
        read_s: When they were asked for, on the clock of ``time.monotonic``.
    """

    rows: Sequence[dict[str, Any]]
    read_s: float


class Readings:
    """Queries of system tables whose rows are kept for a moment. Thread-safe; it blocks while the cluster is asked.

    Args:
        connections: To the cluster.
        share_max: The share of the time for which each query may be under way.
        period_s: The seconds within which a query is made at most once.
    """

    def __init__(self, connections: Connections, share_max: float, period_s: float = PERIOD_S) -> None:
        self.connections = connections
        self._share_max = share_max
        self._period_s = period_s
        self._kept: OrderedDict[Key, PacedReading[Reading]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, sql: str, params: Sequence[Any] = ()) -> Reading:
        """The rows of a query, at most some moments old.

        Raises:
            Error: The cluster did not answer; it is asked again after a second.
        """

        def asked(connection: Connection) -> Reading:
            asked_s = time.monotonic()
            return Reading(list(row_objects(connection, sql, params, ANSWER_S)), asked_s)

        key = (sql, tuple(params))
        with self._lock:
            if key not in self._kept:
                self._kept[key] = PacedReading(self.connections, asked, self._share_max, self._period_s)
            kept = self._kept[key]
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
        return kept.get()

    def rows(self, sql: str, params: Sequence[Any] = ()) -> Sequence[dict[str, Any]]:
        """The rows of :meth:`read`."""
        return self.read(sql, params).rows

    def next_ms(self) -> int:
        """The milliseconds until the next period begins: a page that is fetched before would show what it shows now."""
        return math.ceil(1000 * (self._period_s - time.monotonic() % self._period_s))
