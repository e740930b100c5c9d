"""The controller's record of one job, without I/O: which attempt runs where, when it restarts, and how it ended.

Events are method calls; each returns the effects that the caller has to carry out. Every attempt has a number, so late
messages of an abandoned attempt change nothing.

Source: Hazelcast Jet, ``MasterJobContext``, as a machine without I/O.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from secateur.client.execution.retry_policy import LOST_MEMBERS_MAX, cost_too_many
from secateur.errors import (
    DataChangedError,
    Error,
    JobCancelledError,
    MemberLostError,
    TopologyChangedError,
    UnreachableError,
)
from secateur.protocol.jobs import JobStatus

RESTARTS_MAX: Final = 10
"""With the delays between them, restarts take several times as long as the controller needs to notice a dead member."""

_DELAY_S: Final = 0.05
_DELAY_MAX_S: Final = 1.0
_RESTARTABLE: Final = (MemberLostError, UnreachableError, TopologyChangedError, DataChangedError, JobCancelledError)
"""Errors that are not the job's fault.

A ``JobCancelledError`` that was not requested comes from a member that abandoned its work.
"""


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """After a delay, choose a coordinator, say so by :meth:`JobRecord.chosen`, and tell it to run this attempt."""

    attempt: int
    delay_s: float


@dataclass(frozen=True, slots=True)
class AskAttempt:
    """Tell a coordinator to run an attempt that it may run already, or have ended: it then reports the end again."""

    member: str
    attempt: int


@dataclass(frozen=True, slots=True)
class CancelAttempt:
    """Tell the coordinator of an attempt to stop it, and why. No answer is waited for."""

    member: str
    attempt: int
    error: Error


@dataclass(frozen=True, slots=True)
class AwaitAttemptEnd:
    """Call :meth:`JobRecord.cancel_wait_over` after a bounded time, if the job has not finished by then."""


@dataclass(frozen=True, slots=True)
class FinishRecord:
    """The job has ended; ``error`` is the reason, None for success. Comes exactly once, as the last effect."""

    error: Error | None


Effect = StartAttempt | AskAttempt | CancelAttempt | AwaitAttemptEnd | FinishRecord


@dataclass(eq=False, kw_only=True, slots=True)
class JobRecord:
    """One job from submission to its end, or from where an earlier controller had it: :meth:`resumed` goes on then.

    Invariant: at most one attempt counts at any time; ``FinishRecord`` comes exactly once; a coordinator whose state is
        unknown is asked to stop before another is chosen.

    Attributes:
        restarts: Whether the job restarts when a member is lost or partitions moved.
        status: Its status.
        attempt: The number of the attempt that counts, from 1.
        coordinator: The member that runs it, None between attempts and after the end.
        error: Why it ended, or why it restarted last.
        cause: Why it is being stopped; None while nobody wants that.
    """

    restarts: bool
    status: JobStatus = JobStatus.NOT_RUNNING
    attempt: int = 1
    coordinator: str | None = None
    error: Error | None = None
    cause: Error | None = None
    _blamed: set[str] = field(default_factory=set)  # members that did not answer while they worked on the job
    _left: set[str] = field(default_factory=set)  # members that have left the cluster since it was submitted

    def resumed(self, members: Collection[str]) -> list[Effect]:
        """Another controller has taken over; ``members`` are those of the cluster now.

        The coordinator may run the attempt, may have ended it, or may never have heard of it.
        """
        if self.status.is_final:
            return []
        if self.coordinator is None:
            return [StartAttempt(self.attempt, 0.0)]
        if self.coordinator not in members:
            return self.member_lost(self.coordinator)
        asked: list[Effect] = [AskAttempt(self.coordinator, self.attempt)]
        if self.cause is not None:
            asked += [CancelAttempt(self.coordinator, self.attempt, self.cause), AwaitAttemptEnd()]
        return asked

    def submitted(self) -> list[Effect]:
        """The job was accepted."""
        return [StartAttempt(self.attempt, 0.0)]

    def waits_for(self, attempt: int) -> bool:
        """Whether that attempt has still to be started."""
        return attempt == self.attempt and self.coordinator is None and not self.status.is_final

    def chosen(self, attempt: int, member: str) -> list[Effect]:
        """A coordinator was chosen for an attempt and will now be asked; only when :meth:`waits_for` it."""
        if self.waits_for(attempt):
            self.coordinator = member
            self.status = JobStatus.STARTING
        return []

    def started(self, attempt: int) -> list[Effect]:
        """The coordinator reports that the attempt runs. It may have ended already: messages overtake each other."""
        if attempt == self.attempt and self.status is JobStatus.STARTING:
            self.status = JobStatus.RUNNING
        return []

    def ended(self, attempt: int, error: Error | None) -> list[Effect]:
        """An attempt has ended, or could not be started. Repetitions and attempts that were given up change nothing."""
        if attempt != self.attempt or self.status.is_final:
            return []
        if error is None or self.cause is not None:
            # What had succeeded before it was stopped has succeeded.
            return self._finish(None if error is None else self.cause)
        if isinstance(error, MemberLostError) and isinstance(error.details.get("member"), str):
            self._blamed.add(error.details["member"])
            if self._cost_too_many:
                return self._finish(self._too_many())
        if self.restarts and isinstance(error, _RESTARTABLE) and self.attempt <= RESTARTS_MAX:
            return self._restart(error)
        return self._finish(error)

    def unsure(self, attempt: int, error: Error) -> list[Effect]:
        """The coordinator did not answer. It may run the attempt, therefore it is asked to stop it."""
        if attempt != self.attempt or self.coordinator is None:
            return []
        if isinstance(error, MemberLostError):
            self._blamed.add(self.coordinator)
        return [CancelAttempt(self.coordinator, attempt, error), *self.ended(attempt, error)]

    def member_lost(self, member: str) -> list[Effect]:
        """A member has left. Only the coordinator's loss is noticed here; the coordinator notices the participants'.

        A job that has cost too many members by now is not begun on another.
        """
        self._left.add(member)
        if member == self.coordinator:
            return self.ended(
                self.attempt, MemberLostError(f"member {member}, which coordinated the job, was lost", member=member)
            )
        if self.status.is_final or self.cause is not None or not self._cost_too_many:
            return []
        error = self._too_many()
        running = [] if self.coordinator is None else [CancelAttempt(self.coordinator, self.attempt, error)]
        return [*running, *self._finish(error)]

    def cancel(self, error: Error) -> list[Effect]:
        """Stop the job for a reason: a request or a deadline. Has no effect after its end or an earlier call."""
        if self.status.is_final or self.cause is not None:
            return []
        self.cause = error
        if self.coordinator is None:
            return self._finish(error)
        self.status = JobStatus.COMPLETING
        return [CancelAttempt(self.coordinator, self.attempt, error), AwaitAttemptEnd()]

    def cancel_wait_over(self) -> list[Effect]:
        """The coordinator was asked to stop and has had enough time."""
        return [] if self.status.is_final or self.cause is None else self._finish(self.cause)

    @property
    def _cost_too_many(self) -> bool:
        return len(self._blamed & self._left) >= LOST_MEMBERS_MAX

    def _too_many(self) -> MemberLostError:
        return cost_too_many("job", sorted(self._blamed & self._left))

    def _restart(self, error: Error) -> list[Effect]:
        delay_s = min(_DELAY_S * 2 ** (self.attempt - 1), _DELAY_MAX_S)
        self.attempt += 1
        self.coordinator = None
        self.error = error
        self.status = JobStatus.RESTARTING
        return [StartAttempt(self.attempt, delay_s)]

    def _finish(self, error: Error | None) -> list[Effect]:
        self.coordinator = None
        self.error = error
        if error is None:
            self.status = JobStatus.COMPLETED
        else:
            self.status = (
                JobStatus.CANCELLED
                if error is self.cause and isinstance(error, JobCancelledError)
                else JobStatus.FAILED
            )
        return [FinishRecord(error)]
