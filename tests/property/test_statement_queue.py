"""The queue of statements is bounded, fair, loses nothing, and never idles, whatever comes, ends and leaves."""

from __future__ import annotations

import os

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from secateur.cluster.member import StatementQueue

FACTOR = float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1"))
SESSIONS = st.sampled_from("abcd")


class Queue(RuleBasedStateMachine):
    @initialize(running_max=st.integers(1, 3), waiting_max=st.integers(0, 6))
    def begin(self, running_max: int, waiting_max: int) -> None:
        self.queue = StatementQueue[tuple[str, int]](running_max, waiting_max)
        self.running_max, self.waiting_max = running_max, waiting_max
        self.running: set[tuple[str, int]] = set()
        self.waiting: list[tuple[str, int]] = []  # in the order in which they came
        self.passed: dict[tuple[str, int], list[str]] = {}  # whose turn has come while a statement waited
        self.count = 0

    @rule(session=SESSIONS)
    def come(self, session: str) -> None:
        self.count += 1
        statement = session, self.count
        refused = self.queue.came(session, statement)
        if len(self.running) < self.running_max:
            assert refused is None
            self.running.add(statement)
            return
        self.waiting.append(statement)
        self.passed[statement] = []
        assert (refused is not None) == (len(self.waiting) > self.waiting_max)
        if refused is not None:
            of_session = [one for one in self.waiting if one[0] == refused[0]]
            assert refused == of_session[-1], "the newest of its session"
            assert len(of_session) == max(self._waiting_of(one) for one in "abcd"), "of the session with most"
            assert refused == statement or self._waiting_of(session) < len(of_session)
            self.waiting.remove(refused)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.running.remove(data.draw(st.sampled_from(sorted(self.running))))
        following = self.queue.ended()
        assert (following is None) == (not self.waiting), "no place is free while a statement waits"
        if following is not None:
            assert following == next(one for one in self.waiting if one[0] == following[0]), "in order in its session"
            self.waiting.remove(following)
            self.running.add(following)
            for one in self.waiting:
                self.passed[one].append(following[0])

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        statement = data.draw(st.sampled_from(self.waiting))
        self.queue.left(statement[0], statement)
        self.waiting.remove(statement)

    @invariant()
    def counts(self) -> None:
        assert (self.queue.running, self.queue.waiting) == (len(self.running), len(self.waiting))
        assert self.queue.running <= self.running_max
        assert self.queue.waiting <= self.waiting_max

    @invariant()
    def is_fair(self) -> None:
        """The first waiting statement of a session is passed over by no other session twice."""
        for session in {one[0] for one in self.waiting}:
            first = next(one for one in self.waiting if one[0] == session)
            passed = self.passed[first]
            since_own = passed[len(passed) - passed[::-1].index(session) :] if session in passed else passed
            assert len(since_own) == len(set(since_own))

    def _waiting_of(self, session: str) -> int:
        return sum(one[0] == session for one in self.waiting)


TestQueue = Queue.TestCase
TestQueue.settings = settings(max_examples=int(100 * FACTOR), stateful_step_count=60, deadline=None)
