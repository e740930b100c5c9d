"""The loop that executes every kind of statement and every load, and retries while the cluster changes.

A kind of statement is a :class:`Retryable`: it sends the request, reads the reply, and decides which errors a retry may
solve. It keeps what must be the same in every attempt, such as the id under which a change is made only once.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Any, Generic, TypeAlias, TypeVar, assert_never

import msgspec

from secateur import errors
from secateur.client.dbapi.stats import QueryStats
from secateur.client.execution import retry_policy
from secateur.client.execution.routing import ExecutionMode
from secateur.client.member_calls import Sign
from secateur.client.session import Prepared, Session

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
        )


R = TypeVar("R")


class Retryable(ABC, Generic[R]):
    """The loop's interface to a kind of statement, or to a load.

    Attributes:
        session: The session in which it runs.
        work: Its name in messages: ``"statement"`` or ``"write"``.
        lost_answer: Why the answer to an attempt was lost, which may have changed something; None for no such attempt.
    """

    session: Session
    work = "statement"
    lost_answer: errors.MemberLostError | None = None

    @abstractmethod
    def attempt(self) -> R:
        """Make the request and read the reply.

        Raises:
            UnknownRangesError, UnknownOwnersError: It needs metadata that the session has to fetch. Nothing was done.
        """

    @abstractmethod
    def may_repeat(self, error: errors.Error) -> bool:
        """Whether an attempt that failed with this error may be repeated.

        It may if it had no effect, or if repeating it has no further effect.
        """

    @abstractmethod
    def prepare_again(self, because: errors.Error) -> None:
        """Prepare the statement again, since its plan may be stale.

        Without a controller the old plan stays: no other can be had, and it may still be valid.

        Raises:
            Error: The statement is not valid any more.
        """

    def given_up(self, error: errors.Error) -> errors.Error:
        """The error to raise when no further attempt is made after this one."""
        return error


def execute(execution: Retryable[R], failed: errors.Error | None = None) -> R:
    """Attempt until it succeeds, or the policy gives up.

    Args:
        execution: The statement or load.
        failed: The error of a first attempt, if that was made already.

    Raises:
        Error: The error of an attempt that may not be repeated; of the last one, through :meth:`Retryable.given_up`;
            or an error between two attempts. Where it says that nothing was done, and an answer was lost before, that
            is true of the last attempt alone: then :attr:`Retryable.lost_answer`.
    """
    try:
        return _attempts(execution, failed)
    except errors.Error as error:
        lost = execution.lost_answer
        if lost is None or not (error.retry_safe or isinstance(error, errors.UnknownTableError)):
            raise
        raise lost from error


def _attempts(execution: Retryable[R], failed: errors.Error | None) -> R:
    policy: retry_policy.RetryPolicy | None = None
    while True:
        try:
            try:
                if failed is not None:
                    raise failed
                return execution.attempt()
            except (errors.UnknownRangesError, errors.UnknownOwnersError):
                return execution.session.when_known(execution.attempt)  # which fetches them
        except errors.Error as error:
            failed = None
            if not execution.may_repeat(error):
                raise
            session = execution.session
            if policy is None:
                policy = retry_policy.RetryPolicy(execution.work, time.monotonic() + session.retry_s)
            decided = _decide(session, policy, error)
            if isinstance(decided, retry_policy.GiveUp):
                last = execution.given_up(error) if decided.error is error else decided.error
                if last is error:
                    raise
                raise last from error
            if decided.prepare:
                execution.prepare_again(error)
            if decided.pause_s:
                session.sleep(decided.pause_s)


def _decide(
    session: Session, policy: retry_policy.RetryPolicy, error: errors.Error
) -> retry_policy.TryAgain | retry_policy.GiveUp:
    """Gather the information that the policy asks for, until it has decided."""
    member = (
        session.member_named_by(error) if isinstance(error, (errors.MemberLostError, errors.UnreachableError)) else None
    )
    action: retry_policy.Action = policy.failed(error, member, time.monotonic())
    while True:
        match action:
            case retry_policy.TryAgain() | retry_policy.GiveUp():
                return action
            case retry_policy.ProbeMember(member):
                action = policy.probed(has_ended=session.is_gone(member), now_s=time.monotonic())
            case retry_policy.RefreshOwners(silent):
                try:
                    known = session.topology.version
                    session.refresh_topology()
                    while (
                        silent is not None
                        and time.monotonic() < policy.deadline_s
                        and session.sign_of(silent) is Sign.SILENT
                    ):
                        session.refresh_topology()
                        session.check_control()
                    action = policy.refreshed(known=known, topology_version=session.topology.version)
                except (errors.UnreachableError, errors.MemberLostError, errors.DeadlineError):
                    session.check_control()
                    action = policy.nobody_answered(time.monotonic(), session.controller_wait_s)
            case _:
                assert_never(action)


class StatementExecution(Retryable[R], Generic[S, R]):
    """A statement that the planner has prepared.

    Attributes:
        call: The call, with the plan of the next attempt.
    """

    def __init__(self, call: StatementCall[S]) -> None:
        self.session = call.session
        self.call = call

    @abstractmethod
    def of_this_kind(self, prepared: Prepared, because: errors.Error) -> S:
        """Return the newly prepared statement, if it still is of this kind.

        Raises:
            InterfaceError: The text is another kind of statement now.
        """

    def prepare_again(self, because: errors.Error) -> None:
        session, call = self.session, self.call
        try:
            prepared = session.prepare_anew(call.sql, call.params, waits=False)
        except (errors.UnreachableError, errors.MemberLostError, errors.DeadlineError):
            session.check_control()
            return
        self.call = call.of(self.of_this_kind(prepared, because))
