"""The loop that executes every kind of statement and every load, and retries while the cluster changes.

A kind of statement is a :class:`Retryable`: it sends the request, reads the reply, and decides which errors a retry may
solve. It keeps what must be the same in every attempt, such as the id under which a change is made only once.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar

import msgspec

from secateur import errors
from secateur.client.dbapi.stats import QueryStats
from secateur.client.execution.retry_policy import LOST_MEMBERS_MAX, MOVED, cost_too_many, is_final
from secateur.client.execution.routing import ExecutionMode
from secateur.client.member_calls import Sign
from secateur.client.session import Prepared, Session

Params: TypeAlias = list[Any] | dict[str, Any]
"""Plain parameters as the user gave them, by position or by name."""

_PAUSE_MIN_S: Final = 0.02
_PAUSE_MAX_S: Final = 0.5

S_co = TypeVar("S_co", covariant=True)
T = TypeVar("T")


class StatementCall(msgspec.Struct, Generic[S_co], frozen=True):
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
    statement: S_co
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
        execution: ExecutionMode,
        members_touched: int,
        partitions_read: int,
        partitions_total: int,
        topology_version: int,
    ) -> QueryStats:
        """Return the cost of the call until now."""
        session = self.session
        return QueryStats(
            members_touched,
            len(session.known_topology.members),
            partitions_read,
            partitions_total,
            execution,
            session.pruning,
            topology_version,
            self.cached,
            self.elapsed_ms,
        )


def planned(session: Session, sql: str, params: Params) -> StatementCall[Prepared]:
    """The call of a statement that begins now, once it is planned.

    Raises:
        Error: The planner refuses it.
    """
    prepared, cached = session.prepare(sql, params)
    return StatementCall(session, sql, params, prepared, cached, time.perf_counter(), time.time())


R = TypeVar("R")


class Retryable(ABC, Generic[R]):
    """The loop's interface to a kind of statement, or to a load.

    Attributes:
        session: The session in which it runs.
        work: Its name in messages: ``"statement"`` or ``"write"``.
        repeated: The errors of an attempt that may be repeated, unless :meth:`may_repeat` says otherwise.
        is_read: Whether it changes nothing, so that a user may repeat it in any case.
        lost_answer: Why the answer to an attempt was lost, which may have changed something; None for no such attempt.
    """

    session: Session
    work = "statement"
    repeated: ClassVar[tuple[type[errors.Error], ...]] = MOVED
    is_read: ClassVar[bool] = False
    lost_answer: errors.MemberLostError | None = None

    @abstractmethod
    def attempt(self) -> R:
        """Make the request and read the reply.

        Raises:
            UnknownRangesError, UnknownOwnersError: It needs metadata that the session has to fetch. Nothing was done.
        """

    def may_repeat(self, error: errors.Error) -> bool:
        """Whether an attempt that failed with this error may be repeated.

        It may if it had no effect, or if repeating it has no further effect.
        """
        return isinstance(error, self.repeated)

    @abstractmethod
    def prepare_again(self, because: errors.Error) -> None:
        """Prepare the statement again, since its plan may be stale.

        Without a controller the old plan stays: no other can be had, and it may still be valid.

        Raises:
            Error: The statement is not valid any more.
        """

    def given_up(self, error: errors.Error) -> errors.Error:
        """The error to raise when no further attempt is made after this one."""
        is_about_member = isinstance(error, (errors.MemberLostError, errors.UnreachableError))
        if self.is_read and is_about_member and not is_final(error):
            error.safe_to_retry()  # others take over
        return error


def execute(execution: Retryable[R], failed: errors.Error | None = None) -> R:
    """Attempt until it succeeds, or a further attempt cannot help.

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
    retries: Retries | None = None
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
            if retries is None:
                retries = Retries(execution.session, execution.work)
            decided = retries.after(error)
            if isinstance(decided, errors.Error):
                last = execution.given_up(error) if decided is error else decided
                if last is error:
                    raise
                raise last from error
            if decided:
                execution.prepare_again(error)


class Retries:
    """The attempts of one statement or load, from its first failure for a limited time.

    A statement whose work ends its member (it takes all memory, or triggers a bug of a kernel) would end one member
    after the other if it were repeated as long as there are any. A member that dies for another reason while a
    statement runs looks the same from outside, so the first loss proves nothing, and the statement is retried once.
    After the second it is not.

    Args:
        session: Where.
        work: The kind of work, ``"statement"`` or ``"write"``, for messages.
    """

    def __init__(self, session: Session, work: str) -> None:
        self._session = session
        self._work = work
        self._deadline_s = time.monotonic() + session.retry_s
        self._pause_s = _PAUSE_MIN_S
        self._ended: list[str] = []
        self._lost_in_version: int | None = None
        self._nobody_since_s: float | None = None

    def after(self, error: errors.Error) -> bool | errors.Error:
        """Learn the owners of now after an attempt that has failed, and wait until another one may help.

        Args:
            error: A copy of a partition is lost, or the client's view of the cluster is out of date.

        Returns:
            Whether the plan may be stale too, and is to be made again; the error to raise if there is no further
            attempt.

        Raises:
            Error: The statement was ended meanwhile.
        """
        if is_final(error):
            return error
        session, member = self._session, None
        has_time = time.monotonic() < self._deadline_s
        if isinstance(error, (errors.MemberLostError, errors.UnreachableError)):
            member = session.member_named_by(error)
        if isinstance(error, errors.MemberLostError) and member is not None and member not in self._ended:
            self._ended += [member] if session.sign_of(member) is Sign.GONE else []
            if len(self._ended) >= LOST_MEMBERS_MAX:
                return cost_too_many(self._work, self._ended)
        if not has_time and not isinstance(error, errors.PartitionLostError):
            return error
        try:
            known = session.topology.version
            version = session.refresh_topology().version
            # Another request to a member that stays silent would take as long as the first; others replace it.
            while member and time.monotonic() < self._deadline_s and session.sign_of(member) is Sign.SILENT:
                version = session.refresh_topology().version
                session.check_control()
        except (errors.UnreachableError, errors.MemberLostError, errors.DeadlineError):
            session.check_control()
            return self._after_nobody_answered(error)
        if isinstance(error, errors.PartitionLostError):
            return self._after_lost_partition(error, version, has_time=has_time)
        if version == known:
            self._pause()
        # A member whose lease has ended gets another one, or others replace it. The plan is still valid.
        return not error.details.get("lease_ended")

    def _after_lost_partition(
        self, error: errors.PartitionLostError, version: int, *, has_time: bool
    ) -> bool | errors.Error:
        if error.details.get("topology_version", version) < version and has_time:
            self._pause()  # whoever said so did not know yet that the partition has owners again
            return False
        if version == self._lost_in_version:
            return error  # no backup has taken over in the newest topology either
        self._lost_in_version = version
        return False

    def _after_nobody_answered(self, error: errors.Error) -> bool | errors.Error:
        """Neither the controller nor a member could be asked for the owners: all may be starting anew."""
        now_s, wait_s = time.monotonic(), self._session.controller_wait_s
        if self._nobody_since_s is None:
            self._nobody_since_s = now_s
            self._deadline_s = max(self._deadline_s, now_s + wait_s)
        if now_s >= self._nobody_since_s + wait_s:
            return error
        self._pause()
        return False

    def _pause(self) -> None:
        self._session.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, _PAUSE_MAX_S)


class StatementExecution(Retryable[R], Generic[S_co, R]):
    """A statement that the planner has prepared.

    Attributes:
        call: The call, with the plan of the next attempt.
    """

    def __init__(self, call: StatementCall[S_co]) -> None:
        self.session = call.session
        self.call = call

    @abstractmethod
    def of_this_kind(self, prepared: Prepared, because: errors.Error) -> S_co:
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
