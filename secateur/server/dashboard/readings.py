"""What the pages show of the cluster, read once for all browsers, and no more often than watching may cost."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from secateur.client.dbapi.connection import Connection
from secateur.errors import DeadlineError, Error, UnreachableError
from secateur.server.connections import Connections
from secateur.server.row_objects import row_objects

PERIOD_S: Final = 1.4
"""Time is divided into periods, and each query is made at most once in each. A page is fetched at the beginning of
each, so what it shows is at most 1.4 seconds old, and the time of the fetch, however many pages are open. A change is
to be on a page within 2 seconds.
"""
_STALE_S: Final = 15.0
_TIMES_MAX: Final = 5
"""A reading costs what the quickest of the last ones took: the others have waited for something else, and a page of a
busy cluster should not be old for it. Until so many were made, it is made again in every period.
"""
_DOWN_S: Final = 1.0
ANSWER_S: Final = 5.0
_KEPT_MAX: Final = 64

Key = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows of a query as they were at one moment.

    Attributes:
        rows: The rows by the names of their columns.
        read_s: When they were asked for, on the clock of ``time.monotonic``.
    """

    rows: Sequence[dict[str, Any]] = ()
    read_s: float = 0.0


@dataclass(slots=True)
class _Kept:
    reading: Reading = field(default_factory=Reading)
    failure: Error | None = None
    next_s: float = 0.0
    times_s: deque[float] = field(default_factory=lambda: deque(maxlen=_TIMES_MAX))
    lock: threading.Lock = field(default_factory=threading.Lock)


class Readings:
    """Queries of system tables whose rows are kept for a moment. Thread-safe; it blocks while the cluster is asked.

    A query that takes long is repeated less often: after its own time divided by ``share_max``.

    Args:
        connections: To the cluster.
        share_max: The share of the time for which each query may be under way.
        period_s: The seconds within which a query is made at most once.
    """

    def __init__(self, connections: Connections, share_max: float, period_s: float = PERIOD_S) -> None:
        self._connections = connections
        self._share_max = share_max
        self._period_s = period_s
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, sql: str, params: Sequence[Any] = ()) -> Reading:
        """The rows of a query, at most some moments old.

        Raises:
            Error: The cluster did not answer; it is asked again after a second.
        """
        key = (sql, tuple(params))
        with self._lock:
            kept = self._kept.setdefault(key, _Kept())
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
        with kept.lock:
            if time.monotonic() >= kept.next_s:
                self._renew(kept, sql, params)
            if kept.failure is not None:
                raise kept.failure
            return kept.reading

    def rows(self, sql: str, params: Sequence[Any] = ()) -> Sequence[dict[str, Any]]:
        """The rows of :meth:`read`."""
        return self.read(sql, params).rows

    def next_ms(self) -> int:
        """The milliseconds until the next period begins: a page that is fetched before would show what it shows now."""
        return math.ceil(1000 * (self._period_s - time.monotonic() % self._period_s))

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection, for what is read anew for every caller."""
        with self._connections.lent() as connection:
            yield connection

    def _described(self, error: Error) -> Error:
        if not isinstance(error, DeadlineError):
            return error
        return UnreachableError(
            f"the cluster at {self._connections.address} has not answered for {ANSWER_S:g} s: its controller is gone,"
            " cannot be reached, or has too much to do"
        )

    def _renew(self, kept: _Kept, sql: str, params: Sequence[Any]) -> None:
        begun_s = time.monotonic()
        try:
            with self._connections.lent() as connection:
                rows = list(row_objects(connection, sql, params, ANSWER_S))
        except Error as error:
            error.__traceback__ = None
            kept.failure, kept.next_s = self._described(error), time.monotonic() + _DOWN_S
            return
        ended_s = time.monotonic()
        kept.reading, kept.failure = Reading(rows, begun_s), None
        kept.times_s.append(ended_s - begun_s)
        periods = 1
        if len(kept.times_s) == _TIMES_MAX:
            pause_s = min(min(kept.times_s) / self._share_max, _STALE_S)
            periods = max(math.ceil(pause_s / self._period_s), 1)
        kept.next_s = (begun_s // self._period_s + periods) * self._period_s
