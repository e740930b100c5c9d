"""A running job at its coordinator.

It has a state machine, its timers, and the future of the result. The state machine knows who still runs and the first
cause of failure, without I/O: events are method calls, and each returns the effects that the job has to carry out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from secateur.engine.execution_plan.plan_builder import ExecutionPlan, ExecutionPlanBuilder
from secateur.engine.failure import lost_member
from secateur.engine.runtime.result import JobResult, ResultCollector
from secateur.engine.runtime.services import MemberServices
from secateur.errors import DeadlineError, Error, JobCancelledError
from secateur.protocol.metrics import VertexMetrics

_LAST_ROWS_S: Final = 0.02
"""Once a result has enough rows, members that are about to end may do so for this long. Then they are stopped, and a
kernel that is interrupted loses its prepared statement.
"""


class RunningJob:
    """A job that was started on this member, which coordinates it.

    ``cancel_member`` tells a participant to stop: its id, the id of the job, and why. ``on_end`` is called with the id
    of the job when it has ended.

    Attributes:
        job_id: Unique in the cluster.
        plan: The plans of all participants.
        has_enough: Whether all rows of the result that are wanted are there, though members may still be at work.
    """

    def __init__(
        self,
        services: MemberServices,
        builder: ExecutionPlanBuilder,
        plan: ExecutionPlan,
        collector: ResultCollector,
        cancel_member: Callable[[str, str, Error], None],
        on_end: Callable[[str], object],
    ) -> None:
        self.job_id = plan.job.job_id
        self.plan = plan
        self._services = services
        self._builder = builder
        self._collector = collector
        self._cancel_member = cancel_member
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._machine = JobStateMachine(plan.job.participants)
        self._metrics: list[VertexMetrics] = []
        self._timers: list[asyncio.TimerHandle] = []
        self._when_done: list[Callable[[], None]] = []
        self._done: asyncio.Future[JobResult] = self._loop.create_future()
        self.has_enough = False
        collector.is_enough = self.enough

    @property
    def done(self) -> bool:
        """Whether :meth:`result` would return without waiting."""
        return self._done.done()

    @property
    def is_complete(self) -> bool:
        """Whether it has ended well, and no member was stopped because its rows were not wanted any more."""
        return self._done.done() and self._done.exception() is None and not self.has_enough

    @property
    def running_members(self) -> tuple[str, ...]:
        """The participants that have not ended, as far as is known."""
        return self._machine.running

    @property
    def metrics(self) -> tuple[VertexMetrics, ...]:
        """The metrics of the participants that have ended, well or not."""
        return tuple(self._metrics)

    async def result(self) -> JobResult:
        """Wait for the end of the job. If the waiting is cancelled, so is the job.

        Raises:
            Error: Why the job failed; see :mod:`secateur.errors`.
        """
        try:
            return await asyncio.shield(self._done)
        except asyncio.CancelledError:
            self.cancel("the client that waited for its result is gone")
            raise

    def when_done(self, call: Callable[[], None]) -> None:
        """Have a call made when the job has ended, well or not, and when it has rows enough."""
        self._when_done.append(call)
        self._done.add_done_callback(lambda _: call())

    def result_now(self) -> JobResult:
        """The result of a job that is :attr:`done`.

        Raises:
            Error: Why the job failed.
        """
        return self._done.result()

    def cancel(self, reason: str = "on request") -> None:
        """Stop the job everywhere.

        Does not wait; :meth:`result` then raises ``JobCancelledError``. Nothing happens when it has ended.
        """
        self.stop(JobCancelledError(f"job {self.job_id} was cancelled: {reason}", job=self.job_id))

    def stop(self, error: Error) -> None:
        """Stop the job everywhere for a reason."""
        self.apply(self._machine.cancel(error))

    def enough(self) -> None:
        """No further row is wanted: end the job everywhere, successfully.

        A participant that is about to end gets the time for it: stopping a kernel costs more.
        """
        if not self.has_enough and self._machine.error is None:
            self.has_enough = True
            unwanted = JobCancelledError(
                f"job {self.job_id} has produced all rows that its result needs", job=self.job_id
            )
            self._timers.append(self._loop.call_later(_LAST_ROWS_S, self.stop, unwanted))
            for call in self._when_done:
                call()

    def begin(self) -> None:
        """The start messages were sent."""
        timeout_s = self.plan.job.timeout_s
        if timeout_s is not None:
            self._timers.append(self._loop.call_later(timeout_s, self._deadline_passed, timeout_s))
        self.apply(self._machine.start())

    def member_ended(self, member: str, error: Error | None, metrics: Sequence[VertexMetrics]) -> None:
        """A participant has ended."""
        self._metrics += metrics
        self.apply(self._machine.member_ended(member, error))

    def member_lost(self, member: str, cause: BaseException | None) -> None:
        """A member cannot be reached any more."""
        self.apply(self._machine.member_ended(member, lost_member(member, cause)))

    def apply(self, effects: list[Effect]) -> None:
        """Perform the effects that the state machine asks for."""
        for effect in effects:
            match effect:
                case CancelMember(member, error):
                    self._cancel_member(member, self.job_id, error)
                case AwaitCancelled():
                    self._timers.append(
                        self._loop.call_later(self._services.limits.cancel_wait_s, self._cancel_wait_over)
                    )
                case FinishJob(error):
                    self._finish(error)
                case _:
                    assert_never(effect)

    def _deadline_passed(self, timeout_s: float) -> None:
        waiting = ", ".join(self._machine.running)
        self.stop(
            DeadlineError(
                f"job {self.job_id} took longer than its deadline of {timeout_s} s; still running on {waiting}",
                job=self.job_id,
            )
        )

    def _cancel_wait_over(self) -> None:
        self.apply(self._machine.cancel_wait_over())

    def _finish(self, error: Error | None) -> None:
        for timer in self._timers:
            timer.cancel()
        self._on_end(self.job_id)
        self._close_builder(error)
        if self._done.done():
            return
        if error is not None and not self.has_enough:
            self._done.set_exception(error)
            self._done.exception()  # a job nobody waits for must not be reported as a forgotten exception
        else:
            touched = tuple(sorted(self.plan.job.participants))
            self._done.set_result(JobResult(self.job_id, self._collector.tables(), touched, self.metrics))

    def _close_builder(self, error: Error | None) -> None:
        if self._builder.close_is_cooperative:
            self._builder.close(error)
        else:
            self._services.quick.submit(self._builder.close, error)


@dataclass(frozen=True, slots=True)
class CancelMember:
    """Tell this member to stop, and why."""

    member: str
    error: Error


@dataclass(frozen=True, slots=True)
class AwaitCancelled:
    """Call :meth:`JobStateMachine.cancel_wait_over` after a bounded time, if the job has not finished by then."""


@dataclass(frozen=True, slots=True)
class FinishJob:
    """The job has ended everywhere; ``error`` is the first cause, None for success.

    Comes exactly once, as the last effect.
    """

    error: Error | None


Effect = CancelMember | AwaitCancelled | FinishJob


class JobStateMachine:
    """Waits for all participants, and ends the job everywhere on the first failure.

    Invariant: every participant is asked to stop at most once, and only while it may still run; ``FinishJob`` comes
    exactly once, and not before every participant that may still run has ended, is lost, or had enough time.
    """

    def __init__(self, participants: Sequence[str]) -> None:
        self._running = dict.fromkeys(participants)
        self.error: Error | None = None
        """The first cause of failure so far."""
        self.is_finished = False

    @property
    def running(self) -> tuple[str, ...]:
        """The participants that have not ended, as far as is known."""
        return tuple(self._running)

    def start(self) -> list[Effect]:
        """The start messages were sent."""
        return self._finish_if_all_ended()

    def member_ended(self, member: str, error: Error | None) -> list[Effect]:
        """A participant has ended, well or with an error, or is lost. Repetitions and strangers change nothing."""
        if self.is_finished or member not in self._running:
            return []
        del self._running[member]
        return (self._fail(error) if error is not None else []) + self._finish_if_all_ended()

    def cancel(self, error: Error) -> list[Effect]:
        """Stop the job for a reason of our own: a request, a deadline."""
        return [] if self.is_finished else self._fail(error) + self._finish_if_all_ended()

    def cancel_wait_over(self) -> list[Effect]:
        """The participants that were asked to stop have had enough time."""
        if self.is_finished or self.error is None:
            return []
        self._running.clear()
        return self._finish_if_all_ended()

    def _fail(self, error: Error) -> list[Effect]:
        if self.error is not None:
            return []
        self.error = error
        effects: list[Effect] = [CancelMember(member, error) for member in self._running]
        return [*effects, AwaitCancelled()] if effects else effects

    def _finish_if_all_ended(self) -> list[Effect]:
        if self._running or self.is_finished:
            return []
        self.is_finished = True
        return [FinishJob(self.error)]
