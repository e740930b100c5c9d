"""The retry policy: when a statement or load is retried while the cluster changes, and what to refresh before.

The policy only decides: a failure and the client's view of the cluster go in, and the next action comes out.
:mod:`~secateur.client.execution.execute` performs it.

A statement whose work ends its member (it takes all memory, or triggers a bug of a kernel) would end one member after
the other if it were repeated as long as there are any. A member that dies for another reason while a statement runs
looks the same from outside, so the first loss proves nothing, and the statement is retried once. After the second it is
not.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, TypeAlias

from secateur.errors import (
    Error,
    MemberLostError,
    PartitionLostError,
    TopologyChangedError,
    UnknownTableError,
    UnreachableError,
)

RETRY_S: Final = 10.0
"""Seconds for which a statement is tried again; the cluster notices the loss of a member sooner."""
CONTROLLER_WAIT_S: Final = 20.0
"""Seconds that a request waits for a controller that is being started anew: a process has to start for it."""
CONNECT_TIMEOUT_S: Final = 10.0
"""Seconds that a first connection waits for the controller: fewer, since the address may be a wrong one."""
REFUSED_S: Final = 1.5
"""Seconds that a refused connection is tried again where this process has never found a cluster: most often, none is
there."""
MOVED: Final = (TopologyChangedError, MemberLostError, UnreachableError, PartitionLostError, UnknownTableError)
"""The errors of a member that may mean that partitions have moved to other members."""
_PAUSE_MIN_S: Final = 0.02
_PAUSE_MAX_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class ProbeMember:
    """Find out whether a member has ended, and call :meth:`RetryPolicy.probed`."""

    member: str


@dataclass(frozen=True, slots=True)
class RefreshOwners:
    """Refresh the owners of partitions, and call :meth:`RetryPolicy.refreshed`.

    Attributes:
        unless_silent: A member that did not answer. While it stays silent, refresh the owners again: another request to
            that member would take as long as the first, and meanwhile the cluster replaces it. None for none.
    """

    unless_silent: str | None


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Try again.

    Attributes:
        prepare: Whether the plan may be stale too, and is to be made again first.
        pause_s: How long to wait before.
    """

    prepare: bool
    pause_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Raise this error."""

    error: Error


Action: TypeAlias = ProbeMember | RefreshOwners | TryAgain | GiveUp


class RetryPolicy:
    """The attempts of one statement or load, from its first failure for a limited time.

    Args:
        work: The kind of work, ``"statement"`` or ``"write"``, for messages.
        deadline_s: Until when to retry, on the clock of the events' ``now_s``.
    """

    def __init__(self, work: str, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self._work = work
        self._lost_in_version: int | None = None
        self._pause_s = _PAUSE_MIN_S
        self._ended: list[str] = []
        self._error: Error | None = None
        self._member: str | None = None
        self._has_time = True
        self._nobody_since_s: float | None = None

    def failed(self, error: Error, member: str | None, now_s: float) -> Action:
        """A try has failed.

        Args:
            error: How: a copy of a partition is lost, or the client's view of the cluster is out of date.
            member: The member that did not answer; None where the error is about none.
            now_s: The time.
        """
        self._error, self._member, self._has_time = error, member, now_s < self.deadline_s
        if is_final(error):
            return GiveUp(error)
        if isinstance(error, MemberLostError) and member is not None and member not in self._ended:
            return ProbeMember(member)
        return self._go_on(error, now_s)

    def probed(self, *, has_ended: bool, now_s: float) -> Action:
        """The client has probed the member that did not answer.

        A statement that has cost too many members is not retried; see :mod:`~secateur.client.execution.retry_policy`.
        """
        assert self._error is not None
        assert self._member is not None
        if has_ended:
            self._ended.append(self._member)
            if len(self._ended) >= LOST_MEMBERS_MAX:
                return GiveUp(cost_too_many(self._work, self._ended))
        return self._go_on(self._error, now_s)

    def refreshed(self, *, known: int, topology_version: int) -> Action:
        """The client has learned the owners.

        Args:
            known: The version of the topology that it knew.
            topology_version: The version that it knows now.
        """
        assert self._error is not None
        if isinstance(self._error, PartitionLostError):
            if self._error.details.get("topology_version", topology_version) < topology_version and self._has_time:
                # Whoever said so did not know yet that the partition has owners again.
                return TryAgain(prepare=False, pause_s=self._next_pause_s())
            if topology_version == self._lost_in_version:
                return GiveUp(self._error)  # no backup has taken over in the newest topology either
            self._lost_in_version = topology_version
            return TryAgain(prepare=False, pause_s=0.0)
        # A member whose lease has ended gets another one, or others replace it. The plan is still valid.
        is_stale = not self._error.details.get("lease_ended")
        return TryAgain(prepare=is_stale, pause_s=0.0 if topology_version != known else self._next_pause_s())

    def nobody_answered(self, now_s: float, wait_s: float) -> Action:
        """Neither the controller nor a member could be asked for the owners: all may be starting anew.

        Args:
            now_s: The time.
            wait_s: How long to wait for a controller from now on, if this is the first time.
        """
        assert self._error is not None
        if self._nobody_since_s is None:
            self._nobody_since_s = now_s
            self.deadline_s = max(self.deadline_s, now_s + wait_s)
        if now_s >= self._nobody_since_s + wait_s:
            return GiveUp(self._error)
        return TryAgain(prepare=False, pause_s=self._next_pause_s())

    def _go_on(self, error: Error, now_s: float) -> Action:
        if now_s >= self.deadline_s and not isinstance(error, PartitionLostError):
            return GiveUp(error)
        return RefreshOwners(self._member)

    def _next_pause_s(self) -> float:
        pause_s = self._pause_s
        self._pause_s = min(pause_s * 2, _PAUSE_MAX_S)
        return pause_s


def is_final(error: Error) -> bool:
    """Whether an error means that the statement cannot go on: the controller is gone, and was waited for."""
    return isinstance(error, UnreachableError) and (not error.retry_safe or "is_controller" in error.details)


LOST_MEMBERS_MAX: Final = 2
"""Members that one statement or job may cost."""


def cost_too_many(what: str, members: list[str]) -> MemberLostError:
    """Return the error of work that has cost so many members that it is not retried."""
    named = " and ".join(members)
    return MemberLostError(
        f"members {named} ended while they ran this {what}, so no other member tries it: it may use too"
        f" much memory. Read the logs of {named} before you repeat it, ask for less at a time, or start the"
        " cluster with a smaller kernel_memory_bytes_max",
        members=list(members),
    )


_STATEMENTS_MAX: Final = 512
_LEFT_OUT_MAX: Final = 63


class PlanBackoff:
    """The back-off of each statement of a member, or of a connection whose threads may share it.

    A dynamic filter does not pay when it finds more keys than expected, or when the rows change so often that they have
    changed before the keys are used. Asking the owners of a few partitions without a job does not pay when these have
    many rows. Trying again costs a round trip or a query, so it is done half as often each time, and as before once it
    has paid. Each member learns for itself, and so does each client that asks the owners.

    Args:
        statements_max: How many statements are remembered.
    """

    def __init__(self, statements_max: int = _STATEMENTS_MAX) -> None:
        self._statements_max = statements_max
        # By id of the plan: how often it did not pay, and how many executions are still to be skipped.
        self._unlucky: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def is_due(self, plan_id: str) -> bool:
        """Whether this execution of a statement is to try it."""
        failures, left_out = self._unlucky.get(plan_id, (0, 0))
        if left_out:
            self._unlucky[plan_id] = failures, left_out - 1
        return not left_out

    def note(self, plan_id: str, *, used: bool) -> None:
        """It was tried for a statement: whether that paid."""
        failures, _ = self._unlucky.pop(plan_id, (0, 0))
        if not used:
            self._unlucky[plan_id] = failures + 1, min(2**failures, _LEFT_OUT_MAX)
            if len(self._unlucky) > self._statements_max:
                self._unlucky.popitem(last=False)
