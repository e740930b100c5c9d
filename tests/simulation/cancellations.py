"""How clients end statements early: with a time-out, a cancel, an interrupt or a KILL.

A call of any group of tables may be ended so. Its group judges what it has left behind, as after any other error.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import secateur
from call_log import CallLog, Kind
from machine import Process, machine
from secateur.errors import DeadlineError, JobCancelledError, ProgrammingError
from secateur.wire import SILENCE_S
from world import World

__all__ = ["CancellableConnection", "Cancellations"]

_SOON_S: Final = 1.0
"""A statement whose time is over raises within this time: nobody has to answer for that."""
_CANCELLED_S: Final = SILENCE_S + _SOON_S
"""So does one that was cancelled, but it may be connecting to a host that does not answer."""
_RUNNING: Final = (
    "SELECT id FROM secateur.running_statements WHERE statement NOT LIKE '%secateur.running_statements%' ORDER BY id"
)
_NOT_KILLED: Final = ("it has ended", "there was none", "there is no member", "cannot be ended any more")
"""Why a statement that was listed is not killed."""


class CancellableConnection(secateur.Connection):
    """A connection that knows its newest cursor, and may have a time-out for each call.

    Args:
        conn: The connection that it takes the place of.
        world: The cluster, which hears of statements that do not end when they are to.

    Attributes:
        newest: The cursor that was made last.
        timeout_s: The ``timeout`` of each :meth:`execute`; None for that of the connection.
        ended_s: When what runs was told to end, on the clock of the machine; infinite if it was not.
    """

    def __init__(self, conn: secateur.Connection, world: World) -> None:
        super().__init__(conn._session)
        self._world = world
        self.newest: secateur.Cursor | None = None
        self.timeout_s: float | None = None
        self.ended_s = math.inf

    def cursor(self) -> secateur.Cursor:
        """A new cursor."""
        self.newest = super().cursor()
        return self.newest

    def execute(self, sql: str, params: Any = (), *, timeout: float | None = None) -> secateur.Cursor:
        """Execute one statement with the time-out of this connection, after which it has to end soon."""
        timeout_s = self.timeout_s if timeout is None else timeout
        limit_s = timeout_s or self._session.statement_timeout.milliseconds / 1000 or math.inf
        if sql.startswith("SET"):  # it ends with no time-out, which could not be lifted then
            limit_s = math.inf
        late_s = self._world.now_s + limit_s
        self.ended_s = math.inf
        try:
            return super().execute(sql, params, timeout=timeout_s)
        finally:
            if self._world.now_s > min(late_s + _SOON_S, self.ended_s + _CANCELLED_S):
                over_s = self._world.now_s - min(late_s, self.ended_s)
                self._world.violated(f"{sql} has gone on for {over_s:.3f} s after it was to end")


class Cancellations:
    """Ends some of the statements of clients, and says which errors may come of it.

    Args:
        log: Of all calls.
        share: How many of the calls are ended early.
    """

    def __init__(self, log: CallLog, share: float) -> None:
        self._log = log
        self._share = share
        self._reasons: defaultdict[Process, set[str]] = defaultdict(set)
        self._killed: set[str] = set()
        log.may_be_ended = self._may_be_ended

    def call(self, conn: CancellableConnection, kind: Kind) -> bool:
        """Have a client make a call, which may be ended early; whether it was answered."""
        draw = self._log.world.random
        if draw.random() >= self._share:
            return kind(conn)
        match draw.choice(("setting", "timeout", "timeout", "cancel", "interrupt", "kill")):
            case "setting":
                self._set_timeout(conn)
                return kind(conn)
            case "timeout":
                with self._limited(conn):
                    return kind(conn)
            case "kill":
                return self._kill(conn)
            case way:
                self._end_later(conn, way)
                return kind(conn)

    def _set_timeout(self, conn: CancellableConnection) -> None:
        """From now on statements of a connection have this long; about every third has no limit."""
        limit_ms = 0 if self._log.world.random.random() < 0.3 else max(1, round(1000 * self._moment_s()))
        self._reasons[machine().current.process].add(f"longer than statement_timeout = '{limit_ms}ms'")
        self._log.execute(conn, "set time-out", f"SET statement_timeout = '{limit_ms}ms'", [])

    @contextmanager
    def _limited(self, conn: CancellableConnection) -> Iterator[None]:
        conn.timeout_s = self._moment_s()
        self._reasons[machine().current.process].add(f"longer than its timeout={conn.timeout_s:g} seconds")
        try:
            yield
        finally:
            conn.timeout_s = None

    def _end_later(self, conn: CancellableConnection, way: str) -> None:
        """Another thread of the client ends what runs in a moment."""
        process, moment_s = machine().current.process, self._moment_s()
        self._reasons[process].add(f"{'cursor.cancel' if way == 'cancel' else 'connection.interrupt'}() was called")

        def end() -> None:
            time.sleep(moment_s)
            conn.ended_s = self._log.world.now_s
            if way == "interrupt":
                conn.interrupt()
            elif conn.newest is not None:
                conn.newest.cancel()

        process.run(end, way)

    def _kill(self, conn: CancellableConnection) -> bool:
        """End one of the statements that members and the controller work on, whosever it is."""
        with self._log.call("list statements") as listed:
            ids = [row[0] for row in conn.execute(_RUNNING).fetchall()]
        if not listed or not ids:
            return bool(listed)
        chosen = self._log.world.random.choice(ids)
        self._killed.add(f"KILL '{chosen}' was executed")
        with self._log.call("kill") as answered:
            try:
                conn.execute(f"KILL '{chosen}'")
            except ProgrammingError as error:
                if not any(why in error.message for why in _NOT_KILLED):
                    raise
                self._log.errors["kill: nothing to end any more"] += 1
        return bool(answered)

    def _moment_s(self) -> float:
        """From a fraction of a round trip to longer than most faults, each order of magnitude as often."""
        return float(10 ** self._log.world.random.uniform(-3.5, 0.5))

    def _may_be_ended(self, error: DeadlineError | JobCancelledError) -> bool:
        """Whether the statement of a client was ended by what its error says."""
        reasons = self._reasons[machine().current.process]
        return any(reason in error.message for reason in (*reasons, *self._killed))
