"""Admission of the statements of clients: at the member that runs or coordinates them, or to change a table.

A statement waits before anything is done for it, and holds its place until its answer, or the first part of its rows,
is made. What an admitted statement asks of this member or of others is never admitted anew, so no two statements can
wait for each other. A result that is read in parts holds no place between them: its reader may be slow.

Statements that the event loop answers at once are not admitted: they cost less than waiting would.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from secateur.cluster.member.statements.local_execution import LocalExecution
from secateur.engine.threads import is_long_over
from secateur.errors import LimitExceededError
from secateur.wire import PeerInfo

S = TypeVar("S")


class StatementQueue(Generic[S]):
    """Statements by their session. A statement is any object; none is in the queue twice.

    Sessions whose statements wait take turns, so a session with a hundred of them delays one with a single statement by
    one statement. When the queue is full, the newest statement of the session with most waiting ones is refused, which
    may be the one that has just come: whoever fills the queue is refused first.

    It decides only; :class:`StatementAdmission` waits.

    Source: B. Suter, T. Lakshman, D. Stiliadis, A. Choudhury, "Design considerations for supporting TCP with per-flow
    queueing", 1998 (longest queue drop); J. Nagle, "On packet switches with infinite storage", 1985 (one queue per
    source).

    Args:
        running_max: Statements that run at once, at least 1.
        waiting_max: Statements that wait, at least 0.

    Attributes:
        running: Statements that run.
        waiting: Statements that wait.
    """

    def __init__(self, running_max: int, waiting_max: int) -> None:
        self.running = 0
        self.waiting = 0
        self._running_max = running_max
        self._waiting_max = waiting_max
        self._turns: OrderedDict[str, deque[S]] = OrderedDict()
        """Sessions with waiting statements, in the order of their turns."""

    def came(self, session: str, statement: S) -> S | None:
        """A statement has come. It runs at once if fewer than ``running_max`` run, and waits otherwise.

        Returns:
            The statement that is refused because too many wait, this one or another; None if none is.
        """
        if self.running < self._running_max:
            self.running += 1
            return None
        self._turns.setdefault(session, deque()).append(statement)
        self.waiting += 1
        if self.waiting <= self._waiting_max:
            return None
        most = max(map(len, self._turns.values()))
        longest = session if len(self._turns[session]) == most else self._longest(most)
        refused = self._turns[longest][-1]
        self.left(longest, refused)
        return refused

    def ended(self) -> S | None:
        """A running statement has ended.

        Returns:
            The statement that runs now in its place; None if none waits.
        """
        if not self._turns:
            self.running -= 1
            return None
        session, queue = self._turns.popitem(last=False)
        self.waiting -= 1
        following = queue.popleft()
        if queue:
            self._turns[session] = queue
        return following

    def left(self, session: str, statement: S) -> None:
        """A statement is given up; nothing happens if it does not wait any more."""
        queue = self._turns.get(session)
        if queue is None or statement not in queue:
            return
        queue.remove(statement)
        self.waiting -= 1
        if not queue:
            del self._turns[session]

    def _longest(self, most: int) -> str:
        return next(session for session, queue in self._turns.items() if len(queue) == most)


_Turn: TypeAlias = "asyncio.Future[None]"

Refusal: TypeAlias = Callable[[int, int], LimitExceededError]
"""Makes the error of a refused statement, from the numbers of running and of waiting statements."""


class StatementAdmission:
    """Lets a bounded number of statements run, and queues the others. Lives on one event loop.

    Args:
        running_max: Statements that run at once.
        waiting_max: Statements that wait for one of those to end; one more is refused.
        refusal: Makes the error for it.
        running: Statements that run already, and for which :meth:`end` will be called.

    Attributes:
        refused: How many statements were refused until now.
    """

    def __init__(self, running_max: int, waiting_max: int, refusal: Refusal, *, running: int = 0) -> None:
        self.refused = 0
        self._refusal = refusal
        self._queue: StatementQueue[_Turn] = StatementQueue(running_max, waiting_max)
        self._queue.running = running
        self._waiting: set[asyncio.Task[Any]] = set()
        self._waited_s: WeakKeyDictionary[asyncio.Task[Any], float] = WeakKeyDictionary()

    @property
    def running(self) -> int:
        """The number of running statements."""
        return self._queue.running

    @property
    def waiting(self) -> int:
        """The number of waiting statements."""
        return self._queue.waiting

    def is_waiting(self, task: asyncio.Future[Any]) -> bool:
        """Whether the statement on which a task works waits."""
        return task in self._waiting

    def waited_s(self, task: asyncio.Task[Any]) -> float:
        """Seconds for which the statement on which a task works has waited; 0 while it does."""
        return self._waited_s.get(task, 0.0)

    @asynccontextmanager
    async def admitted(self, peer: PeerInfo) -> AsyncIterator[bool]:
        """Enclose the work for a statement, which begins when it is its turn.

        Args:
            peer: The client, whose session takes turns with others.

        Yields:
            Whether it has waited, so that rows and owners may be others than when it came.

        Raises:
            LimitExceededError: Too many statements wait, and the session of this one has most of them; nothing was
                done for it.
        """
        waits = await self.begin(peer)
        try:
            yield waits
        finally:
            self.end()

    async def begin(self, peer: PeerInfo) -> bool:
        """Wait for the turn of a statement, as :meth:`admitted` does; :meth:`end` is to follow.

        Raises:
            LimitExceededError: As there.
        """
        session, turn = peer.session, asyncio.get_running_loop().create_future()
        running = self._queue.running
        refused = self._queue.came(session, turn)
        if refused is not None:
            self.refused += 1
            refused.set_exception(self._refusal(self.running, self.waiting))
        waits = self._queue.running == running
        if waits:
            await self._its_turn(session, turn)
        return waits

    def end(self) -> None:
        """A statement has ended: it is the turn of the next one."""
        following = self._queue.ended()
        while following is not None and following.done():  # its statement was cancelled, and has not left yet
            following = self._queue.ended()
        if following is not None:
            following.set_result(None)

    async def _its_turn(self, session: str, turn: _Turn) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        begun = time.perf_counter()
        try:
            await turn
        except asyncio.CancelledError:
            self._queue.left(session, turn)
            if not turn.cancelled() and turn.exception() is None:
                self.end()  # its turn came at the same moment
            raise
        finally:
            self._waiting.discard(task)
            self._waited_s[task] = time.perf_counter() - begun


def full_member(member_id: str, running_max: int) -> Refusal:
    """The refusal of a member at which too many statements wait.

    Args:
        member_id: The member.
        running_max: Statements that it runs at once.
    """

    def refusal(running: int, waiting: int) -> LimitExceededError:
        return LimitExceededError(
            f"{waiting} statements wait at member {member_id}, which is the most (max_waiting_statements), while"
            f" {running} run (at most {running_max}), and this connection has most of those that wait: nothing was"
            " done for this one. Try again later, run fewer statements at once, or start the cluster with a larger"
            " max_running_statements",
            limit="max_waiting_statements",
            running=running,
            waiting=waiting,
            member=member_id,
            retry_safe=True,
        )

    return refusal


@dataclass(frozen=True, slots=True)
class Admissions:
    """The admission of the statements of clients; each kind waits for its own.

    Attributes:
        long: Statements that read many rows, or rows of several members, or run in steps.
        quick: Statements over few rows of this member, or of a few partitions of several.
    """

    long: StatementAdmission
    quick: StatementAdmission

    def of(self, call: LocalExecution) -> StatementAdmission:
        """The admission for a statement that is one call on this member."""
        return self.long if is_long_over(call.rows) else self.quick

    def is_waiting(self, task: asyncio.Future[Any]) -> bool:
        """Whether the statement on which a task works waits for its turn."""
        return self.long.is_waiting(task) or self.quick.is_waiting(task)

    def waited_s(self, task: asyncio.Task[Any]) -> float:
        """Seconds for which the statement on which a task works has waited for its turn."""
        return self.long.waited_s(task) + self.quick.waited_s(task)
