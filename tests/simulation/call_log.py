"""The calls of simulated clients: which fail, how long they take, and when they have to work."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import secateur
from secateur.client.execution.retry_policy import CONTROLLER_WAIT_S, RETRY_S
from secateur.errors import DeadlineError, JobCancelledError, OperationalError, PartitionLostError
from world import World

__all__ = ["Answer", "CallLog", "Kind", "TableGroup"]

_CALL_S_MAX: Final = RETRY_S + CONTROLLER_WAIT_S + 1.0
"""A call is repeated for some time, and its last attempt may wait for a controller, also if all members have ended."""
_QUIET_S_MAX: Final = 20.0
_PAUSE_S: Final = 0.3

Kind = Callable[[secateur.Connection], bool]
"""One call of a client, or a few that belong together; True if all were answered."""


class TableGroup(ABC):
    """Tables that are about one promise, and the calls that show whether it is kept.

    Args:
        log: Of all calls.
        placement: Where rows are, as in CREATE TABLE.

    Attributes:
        is_loaded: Whether rows come only by loads and changes of several partitions, of which all members know.
    """

    is_loaded = False

    def __init__(self, log: CallLog, placement: str) -> None:
        self._log = log
        self._placement = placement

    @abstractmethod
    def create(self, conn: secateur.Connection) -> None:
        """Make the tables; before any fault."""

    @abstractmethod
    def kinds(self) -> list[tuple[Kind, int]]:
        """What clients do with them, and how often."""

    @abstractmethod
    def read_back(self, conn: secateur.Connection) -> None:
        """Read everything once more, after quiet: each call has to work soon."""

    def check(self) -> Iterator[str]:
        """Judge the history of all calls: a sentence for what takes more than one of them to see."""
        yield from ()

    def _differs(self, sentence: str) -> None:
        """Rows are not as was acknowledged."""
        self._log.world.differs(sentence, is_loaded=self.is_loaded)

    def _create(self, conn: secateur.Connection, name: str, value: str, options: str = "") -> None:
        """Make a table of an id and another number."""
        conn.execute(f"CREATE TABLE {name} (id BIGINT, {value} BIGINT, PRIMARY KEY (id)) {self._placement}{options}")


@dataclass
class Answer:
    """How a call has ended; true if it was answered.

    Attributes:
        is_given: Whether it was answered.
        says_unchanged: Whether its error says that nothing was changed: to repeat it is safe.
    """

    is_given: bool = False
    says_unchanged: bool = False

    def __bool__(self) -> bool:
        return self.is_given


class CallLog:
    """Counts calls, and says which errors break a promise.

    Args:
        world: The cluster.

    Attributes:
        may_lose: Whether so many members are lost that partitions may be: statements may then say so.
        may_be_ended: Whether somebody has ended the statement of the client that runs, as its error says.
        calls: How many there were.
        errors: Calls that failed, counted by kind and class.
        longest_s: The longest call.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.may_lose = False
        self.may_be_ended: Callable[[DeadlineError | JobCancelledError], bool] = lambda _: False
        self.calls = 0
        self.errors: dict[str, int] = defaultdict(int)
        self.longest_s = 0.0
        self._last_error = ""
        self._value = 0

    def next_value(self) -> int:
        """A number that nobody has written before."""
        self._value += 1
        return self._value

    @contextmanager
    def call(self, kind: str) -> Iterator[Answer]:
        """Make a call, and say how it has ended."""
        answer = Answer()
        began_s = self.world.now_s
        self.calls += 1
        try:
            yield answer
            answer.is_given = True
        except OperationalError as error:
            answer.says_unchanged = error.retry_safe or error.message.endswith("; nothing was changed")
            self._failed(kind, error)
            if isinstance(error, PartitionLostError) and not self.may_lose:
                self.world.violated(f"{kind}: {type(error).__name__}: {error}")
            if isinstance(error, (DeadlineError, JobCancelledError)) and not self.may_be_ended(error):
                self.world.violated(f"{kind} was ended by nobody: {type(error).__name__}: {error}")
        except secateur.Error as error:
            self._failed(kind, error)
            self.world.violated(f"{kind} failed for good: {type(error).__name__}: {error}")
        took_s = self.world.now_s - began_s
        self.longest_s = max(self.longest_s, took_s)
        if took_s > _CALL_S_MAX:
            self.world.violated(f"{kind} took {took_s:.1f} s")

    def execute(self, conn: secateur.Connection, kind: str, sql: str, values: list[Any]) -> bool:
        """Execute a statement whose rows nobody wants; whether it was answered."""
        with self.call(kind) as answered:
            conn.execute(sql, values)
        return bool(answered)

    def check_rows(self, conn: secateur.Connection, sql: str, values: list[Any], expected: list[Any]) -> None:
        """A query has these rows, in any order, if it is answered."""
        with self.call("read back"):
            if (rows := sorted(conn.execute(sql, values).fetchall())) != expected:
                self.world.differs(f"{sql} with {values} has the rows {rows}, not {expected}", is_loaded=False)

    def check_count(self, kind: str, count: int, *expected: int) -> None:
        """A change says how many rows it has changed, also if it was asked for again: its client goes by that."""
        if count not in expected:
            self.world.violated(f"{kind} says that it has changed {count} rows")

    def until_answered(self, call: Callable[[], bool]) -> None:
        """Make a call until it is answered, which has to be soon."""
        end_s = self.world.now_s + _QUIET_S_MAX
        while not call():
            if self.may_lose:
                return
            if self.world.now_s > end_s:
                self.world.violated(
                    f"a call does not work for {_QUIET_S_MAX:g} s after everything is whole again: {self._last_error}"
                )
                return
            time.sleep(_PAUSE_S)

    def _failed(self, kind: str, error: secateur.Error) -> None:
        self._last_error = f"{type(error).__name__}: {error}"
        self.errors[f"{kind}: {type(error).__name__}{'' if error.retry_safe else ', not retryable'}"] += 1
