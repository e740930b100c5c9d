"""The coordinator's state machine of a running job, without I/O: who still runs, and the first cause of failure.

Events are method calls; each returns the effects that the caller has to carry out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from secateur.errors import Error, MemberLostError


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
        self._error: Error | None = None
        self.is_finished = False

    @property
    def running(self) -> tuple[str, ...]:
        """The participants that have not ended, as far as is known."""
        return tuple(self._running)

    @property
    def error(self) -> Error | None:
        """The first cause of failure so far."""
        return self._error

    def start(self) -> list[Effect]:
        """The start messages were sent."""
        return self._finish_if_all_ended()

    def member_ended(self, member: str, error: Error | None) -> list[Effect]:
        """A participant has ended, well or with an error. Repetitions and strangers change nothing."""
        if self.is_finished or member not in self._running:
            return []
        del self._running[member]
        return (self._fail(error) if error is not None else []) + self._finish_if_all_ended()

    def member_lost(self, member: str, error: MemberLostError) -> list[Effect]:
        """A member cannot be reached any more. Nothing happens unless it was still taking part."""
        return self.member_ended(member, error)

    def cancel(self, error: Error) -> list[Effect]:
        """Stop the job for a reason of our own: a request, a deadline."""
        return [] if self.is_finished else self._fail(error) + self._finish_if_all_ended()

    def cancel_wait_over(self) -> list[Effect]:
        """The participants that were asked to stop have had enough time."""
        if self.is_finished or self._error is None:
            return []
        self._running.clear()
        return self._finish_if_all_ended()

    def _fail(self, error: Error) -> list[Effect]:
        if self._error is not None:
            return []
        self._error = error
        effects: list[Effect] = [CancelMember(member, error) for member in self._running]
        return [*effects, AwaitCancelled()] if effects else effects

    def _finish_if_all_ended(self) -> list[Effect]:
        if self._running or self.is_finished:
            return []
        self.is_finished = True
        return [FinishJob(self._error)]
