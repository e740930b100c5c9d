"""The coordinator of a two-phase commit: a state machine without I/O, and the loop that carries out what it orders.

Loads, changes of several partitions and changes of ranges are all published in this way. Every participant first
*prepares*: all that can fail fails there. If all have prepared, every one *commits*, which cannot fail; else every one
*aborts*. Only a participant that has left the cluster is not waited for: what it had is gone with it. What participants
do when the coordinator is gone is in :mod:`secateur.cluster.termination_protocol`.

**Invariant**: no participant receives a commit before all have prepared, and none receives an abort once any has
received a commit.

Source: Gray, "Notes on Data Base Operating Systems" (1978).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from enum import Enum, auto
from typing import Any, Final

from secateur.errors import LoadFailedError, OperationalError

_PAUSE_S: Final = 0.1
"""Seconds before an order is given again."""


class CommitPhase(Enum):
    """The phase of a commit."""

    PREPARING = auto()
    """Participants are asked to prepare. Nothing is decided."""
    COMMITTING = auto()
    """All have prepared, so commit is decided: each participant is sent the commit until it has committed or is
    gone."""
    ABORTING = auto()
    """A participant could not prepare: the others are sent an abort."""
    ENDED = auto()
    """No participant is waited for any more."""


class Order(Enum):
    """The order sent to a participant."""

    PREPARE = auto()
    COMMIT = auto()
    ABORT = auto()


Orders = tuple[tuple[str, Order], ...]


class TwoPhaseCommit:
    """One commit. Every method is an event, and returns the orders that follow from it.

    Args:
        participants: Ids of the members.

    Attributes:
        phase: How far it has come.
        is_committed: Whether it was decided to commit.
        committed: The participants that have committed.
        failures: The errors with which participants refused an order, in the phase that decides the outcome: why they
            could not prepare, or, once commit was decided, why they did not commit.
    """

    def __init__(self, participants: Iterable[str]) -> None:
        self._participants = tuple(participants)
        self._waiting: set[str] = set(self._participants)
        self.phase = CommitPhase.PREPARING
        self.is_committed = False
        self.committed: set[str] = set()
        self.failures: dict[str, BaseException] = {}

    def begin(self) -> Orders:
        """The commit begins."""
        return self._all(Order.PREPARE) if self._participants else self._proceed()

    def done(self, participant: str) -> Orders:
        """A participant has carried out its order."""
        if self.phase is CommitPhase.COMMITTING:
            self.committed.add(participant)
        return self._heard(participant)

    def refused(self, participant: str, error: BaseException) -> Orders:
        """A participant has answered that it does not carry out its order."""
        if self.phase is not CommitPhase.ABORTING:
            self.failures[participant] = error
        return self._heard(participant)

    def unanswered(self, participant: str, error: BaseException, *, is_member: bool) -> Orders:
        """A participant gave no answer.

        A participant that may have prepared is sent the commit again, for as long as it is a member.
        """
        if self.phase is CommitPhase.COMMITTING:
            return ((participant, Order.COMMIT),) if is_member else self._heard(participant)
        return self.refused(participant, error)

    def _heard(self, participant: str) -> Orders:
        self._waiting.discard(participant)
        return () if self._waiting else self._proceed()

    def _proceed(self) -> Orders:
        match self.phase:
            case CommitPhase.PREPARING if self.failures:
                self.phase = CommitPhase.ABORTING
            case CommitPhase.PREPARING:
                self.phase = CommitPhase.COMMITTING
                self.is_committed = True
            case _:
                self.phase = CommitPhase.ENDED
                return ()
        if not self._participants:
            return self._proceed()
        self._waiting = set(self._participants)
        return self._all(Order.COMMIT if self.is_committed else Order.ABORT)

    def _all(self, order: Order) -> Orders:
        return tuple((participant, order) for participant in self._participants)


async def carry_out(
    commit: TwoPhaseCommit,
    give: Callable[[str, Order], Coroutine[Any, Any, None]],
    is_member: Callable[[str], bool],
) -> None:
    """Give the orders of a commit to its participants, and report their outcomes to it, until it has ended.

    Args:
        commit: The commit, which has not begun.
        give: Gives a participant an order; returns once it is carried out.
        is_member: Whether a participant is in the cluster.

    Raises:
        CancelledError: The waiting task was cancelled. The orders that are under way are cancelled as well.
        Error: As ``give`` for an order to abort, if that is no :class:`~secateur.errors.OperationalError`.
    """
    loop = asyncio.get_running_loop()
    running: dict[asyncio.Task[None], tuple[str, Order]] = {}
    unexpected: BaseException | None = None
    given: set[tuple[str, Order]] = set()

    async def given_again(participant: str, order: Order) -> None:
        await asyncio.sleep(_PAUSE_S)
        await give(participant, order)

    def start(orders: Orders) -> None:
        for item in orders:
            task = loop.create_task((given_again if item in given else give)(*item))
            given.add(item)
            running[task] = item

    try:
        start(commit.begin())
        while running:
            ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in [task for task in running if task in ended]:
                participant, order = running.pop(task)
                error = asyncio.CancelledError() if task.cancelled() else task.exception()
                if error is None:
                    start(commit.done(participant))
                elif isinstance(error, OperationalError) and not isinstance(error, LoadFailedError):
                    start(commit.unanswered(participant, error, is_member=is_member(participant)))
                else:
                    if order is Order.ABORT and not isinstance(error, OperationalError):
                        unexpected = error
                    start(commit.refused(participant, error))
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    if unexpected is not None:
        raise unexpected
