"""One call of a user: a statement, its parameters, and the statistics of its execution."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from secateur.client.dbapi.stats import QueryStats
from secateur.client.execution.routing import ExecutionMode
from secateur.client.session import Session
from secateur.protocol.steps import StepResult

Params: TypeAlias = list[Any] | dict[str, Any]
"""Plain parameters as the user gave them, by position or by name."""

S = TypeVar("S")
T = TypeVar("T")


class StatementCall(msgspec.Struct, Generic[S], frozen=True):
    """A statement that a user has called.

    Attributes:
        session: Where.
        sql: The text, to plan again if the plan has become stale.
        params: Plain parameters as the user gave them.
        statement: The plan.
        cached: Whether the plan was known before.
        started_s: ``time.perf_counter()`` when the user called.
        started: ``time.time()`` when the user called: the time of a statement that reads the clock, at each attempt.
    """

    session: Session
    sql: str
    params: Params
    statement: S
    cached: bool
    started_s: float
    started: float

    def of(self, statement: T) -> StatementCall[T]:
        """The same call for another plan, such as the query that a change begins with."""
        return StatementCall(self.session, self.sql, self.params, statement, self.cached, self.started_s, self.started)

    @property
    def now(self) -> datetime:
        """The time of the statement."""
        return datetime.fromtimestamp(self.started, UTC)

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds since the user called."""
        return (time.perf_counter() - self.started_s) * 1000

    def stats(
        self,
        *,
        execution: ExecutionMode,
        members_touched: int,
        partitions_read: int,
        partitions_total: int,
        topology_version: int,
        members_total: int,
        steps: tuple[StepResult, ...] = (),
    ) -> QueryStats:
        """Return the cost of the call until now."""
        return QueryStats(
            members_touched=members_touched,
            members_total=members_total,
            partitions_read=partitions_read,
            partitions_total=partitions_total,
            execution=execution,
            pruning=self.session.pruning,
            topology_version=topology_version,
            plan_cached=self.cached,
            elapsed_ms=self.elapsed_ms,
            steps=steps,
        )
