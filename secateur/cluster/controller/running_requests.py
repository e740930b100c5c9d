"""The requests on which the controller works for clients: ``secateur.statements`` lists them, and KILL ends them.

These are statements that are being planned, and loads and changes of several partitions from the moment in which they
ask for their table. A load whose publication has begun cannot be ended: members may show its rows already.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from secateur.errors import JobCancelledError, ProgrammingError

T = TypeVar("T")

CONTROLLER: Final = "controller"
"""The start of the ids of these requests, where the ids of statements name a member."""


class RequestState(StrEnum):
    """The work of the controller for a request; the value is the state in ``secateur.statements``."""

    PLANNING = "planning"
    PUBLISHING = "publishing"


@dataclass(slots=True, eq=False)
class RunningRequest:
    """A request.

    Attributes:
        number: Counts the requests.
        state: The work that is done for it.
        statement: The text of its statement, or what it loads.
        started_s: Seconds since the epoch.
    """

    number: int
    state: RequestState
    statement: str
    started_s: float
    task: asyncio.Task[Any]
    may_end: Callable[[], bool]
    killed: JobCancelledError | None = None


class RunningRequests:
    """Registers these requests. Lives on the controller's event loop."""

    def __init__(self) -> None:
        self._count = 0
        self._running: dict[int, RunningRequest] = {}

    def rows(self) -> list[RunningRequest]:
        """All that run, oldest first."""
        return list(self._running.values())

    async def run(
        self, state: RequestState, statement: str, work: Awaitable[T], may_end: Callable[[], bool] = lambda: True
    ) -> T:
        """Do what was asked for, in a task of its own.

        Args:
            state: The work that is done for it.
            statement: The text of the statement, or what is loaded.
            work: Does it. Cancelling it undoes it.
            may_end: Whether it may be cancelled now.

        Raises:
            JobCancelledError: It was killed.
            Error: As ``work``.
        """
        task = asyncio.current_task()
        assert task is not None
        self._count += 1
        request = RunningRequest(self._count, state, statement, time.time(), task, may_end)
        self._running[request.number] = request
        try:
            return await work
        except asyncio.CancelledError:
            if request.killed is None or task.uncancel():  # its client has gone as well
                raise
            raise request.killed from None
        finally:
            del self._running[request.number]

    def kill(self, number: int) -> None:
        """End a request.

        Raises:
            ProgrammingError: No such request runs, or it cannot be ended any more.
        """
        request = self._running.get(number)
        if request is None:
            known = "it has ended" if number <= self._count else "there was none of this number"
            raise ProgrammingError(f"the controller works on no '{CONTROLLER}:{number}': {known}")
        if not request.may_end():
            raise ProgrammingError(
                f"'{CONTROLLER}:{number}' cannot be ended any more: its rows are being published on all members"
            )
        if request.killed is None:
            request.killed = JobCancelledError(
                f"the statement was cancelled: KILL '{CONTROLLER}:{number}' was executed; nothing was changed"
            )
            request.task.cancel()
