"""The statements that a member runs at once and those that wait for their turn: fair between sessions, and bounded.

Sessions whose statements wait take turns, so a session with a hundred of them delays one with a single statement by one
statement. When the queue is full, the newest statement of the session with most waiting ones is refused, which may be
the one that has just come: whoever fills the queue is refused first.

It decides only; :mod:`secateur.cluster.member.admission.statement_admission` waits.

Source: B. Suter, T. Lakshman, D. Stiliadis, A. Choudhury, "Design considerations for supporting TCP with per-flow
queueing", 1998 (longest queue drop); J. Nagle, "On packet switches with infinite storage", 1985 (one queue per source).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

S = TypeVar("S")


class StatementQueue(Generic[S]):
    """Statements by their session. A statement is any object; none is in the queue twice.

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
