"""The queue of the statements that wait at a member: fair between tenants by processor time, and between sessions."""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

S = TypeVar("S")

_QUANTUM_S: Final = 0.01
"""Seconds of processor time that a tenant of weight 1 gets in each round: about one statement that has to wait."""
_PRESENT_S: Final = 10.0
"""A tenant counts as present for so long after its last statement: a place is kept for the next one."""
_DEBTS_MAX: Final = 10_000
"""Tenants that are away and whose debts are known; the oldest debts are forgiven."""
_ROUNDING: Final = 1e-9
"""The sum of weights that come and go is that much off at most, which must not be worth a place."""
_NEW_SHARE: Final = 0.25
"""How much the newest statement counts in what the next one of its tenant is expected to cost."""


class TenantShare(NamedTuple):
    """What a tenant gets of a member.

    Attributes:
        weight: Its processor time in relation to that of others, above 0.
        running_max: Statements of it that run at once; None for no bound of its own.
    """

    weight: float = 1.0
    running_max: int | None = None


_EQUAL: Final = TenantShare()


class _Tenant(Generic[S]):
    """A tenant that is present: with statements, or with some a moment ago."""

    __slots__ = ("credit_s", "mean_s", "name", "round", "running", "seen_s", "sessions", "share", "waiting")

    def __init__(self, name: str, share: TenantShare, credit_s: float, in_round: int) -> None:
        self.name = name
        self.share = share
        self.credit_s = credit_s  # as of the round below
        self.round = in_round
        self.mean_s = 0.0
        self.running = 0
        self.waiting = 0
        self.seen_s = -math.inf
        self.sessions: OrderedDict[str, deque[S]] = OrderedDict()
        """Its sessions with waiting statements, in the order of their turns."""


class StatementQueue(Generic[S]):
    """Statements by tenant and session. A statement is any object; none is in the queue twice.

    **Between tenants** it is a deficit round robin over processor time. In each round a tenant gets a quantum, and
    while it has some of it left its statements take turns with those of the others. What a statement has cost is known
    when it has ended, so a tenant may overdraw, and then waits for as many rounds as that takes. A tenant saves up no
    more than one quantum, and nothing while it has no statements; what it uses while nobody else wants it is not held
    against it.

    While several tenants are present, at most ``slots`` statements run, one more for a tenant of which none runs and
    that has credit, and of each tenant only its share of these: each statement that runs gets as much of the processors
    as any other, and one tenant would have them all by having many.

    **In one tenant**, sessions take turns, so a session with a hundred statements delays one with a single statement by
    one statement. When the queue is full, the newest statement of the tenant with most waiting ones is refused, and
    there of the session with most, which may be the one that has just come: whoever fills the queue is refused first.

    It decides only; :class:`StatementAdmission` waits.

    Source: M. Shreedhar, G. Varghese, "Efficient fair queuing using deficit round robin", 1995; that a flow may
    overdraw is the surplus round robin of H. Adiseshu, G. Parulkar, G. Varghese, "A reliable and scalable striping
    protocol", 1996. B. Suter, T. Lakshman, D. Stiliadis, A. Choudhury, "Design considerations for supporting TCP with
    per-flow queueing", 1998 (longest queue drop); J. Nagle, "On packet switches with infinite storage", 1985 (one queue
    per source).

    Args:
        running_max: Statements that run at once, at least 1.
        waiting_max: Statements that wait, at least 0.
        slots: Statements that run at once while tenants beside the owner are there; None for ``running_max``.
        share_of: The share of a tenant.
        clock: Seconds that only grow.
        running: Statements that run already.

    Attributes:
        running: Statements that run.
        waiting: Statements that wait.
    """

    def __init__(
        self,
        running_max: int,
        waiting_max: int,
        *,
        slots: int | None = None,
        share_of: Callable[[str], TenantShare] = lambda _: _EQUAL,
        clock: Callable[[], float] = time.monotonic,
        running: int = 0,
    ) -> None:
        self.running = running
        self.waiting = 0
        self._running_max = running_max
        self._waiting_max = waiting_max
        self._slots = slots
        self._share_of = share_of
        self._clock = clock
        self._round = 0
        self._weights = 0.0
        self._present: OrderedDict[str, _Tenant[S]] = OrderedDict()
        """Those that are present, whoever was seen longest ago first."""
        self._turns: OrderedDict[str, _Tenant[S]] = OrderedDict()
        """Those with waiting statements, in the order of their turns."""
        self._debts: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """The credit below 0 of tenants that are away, and the round in which it was so."""

    def came(self, session: str, statement: S, tenant: str = "") -> S | None:
        """A statement has come. It runs at once if it may, and waits otherwise.

        Returns:
            The statement that is refused because too many wait, this one or another; None if none is.
        """
        mine = self._present.get(tenant) or self._entered(tenant)
        if len(self._present) > 1:
            self._forget_absent(mine)
        if not mine.waiting and self._may_run(mine):
            self._begin(mine)
            return None
        mine.sessions.setdefault(session, deque()).append(statement)
        mine.waiting += 1
        self.waiting += 1
        self._turns[tenant] = mine
        if self.waiting <= self._waiting_max:
            return None
        fullest = max(self._turns.values(), key=lambda one: (one.waiting / one.share.weight, one is mine))
        most = max(map(len, fullest.sessions.values()))
        is_mine = fullest is mine and len(mine.sessions[session]) == most
        longest = session if is_mine else next(name for name, queue in fullest.sessions.items() if len(queue) == most)
        refused = fullest.sessions[longest][-1]
        self.left(longest, refused, fullest.name)
        return refused

    def ended(self, tenant: str = "", cost_s: float = 0.0) -> S | None:
        """A running statement has ended; :meth:`following` may have more than the one that it returns.

        Args:
            tenant: Its tenant.
            cost_s: Seconds of processor time that it took.

        Returns:
            The statement that runs now in its place; None if none waits that may run.
        """
        self.running -= 1
        mine = self._present.get(tenant)
        if mine is not None:
            mine.mean_s += _NEW_SHARE * (cost_s - mine.mean_s)
            if len(self._present) > 1:
                mine.seen_s = self._clock()
                self._present.move_to_end(tenant)
                self.charge(tenant, cost_s)
            mine.running = max(mine.running - 1, 0)  # one that ran before this queue was made is nobody's
        return self.following()

    def charge(self, tenant: str, cost_s: float) -> None:
        """A tenant has used processor time; nothing happens where it is alone, for nobody waits because of it."""
        mine = self._present.get(tenant)
        if mine is not None and cost_s and len(self._present) > 1:
            mine.credit_s = self._credit_s(mine) - cost_s

    def following(self) -> S | None:
        """One more waiting statement that runs from now on; None if none may."""
        chosen = self._chosen() if self._turns else None
        if chosen is None:
            return None
        session, queue = chosen.sessions.popitem(last=False)
        following = queue.popleft()
        if queue:
            chosen.sessions[session] = queue
        self._is_waiting_no_more(chosen)
        if chosen.waiting:
            self._turns.move_to_end(chosen.name)
        self._begin(chosen)
        return following

    def left(self, session: str, statement: S, tenant: str = "") -> None:
        """A statement is given up; nothing happens if it does not wait any more."""
        mine = self._turns.get(tenant)
        queue = None if mine is None else mine.sessions.get(session)
        if mine is None or queue is None or statement not in queue:
            return
        queue.remove(statement)
        if not queue:
            del mine.sessions[session]
        self._is_waiting_no_more(mine)

    def shares_changed(self) -> None:
        """Ask for the shares of all tenants again."""
        for mine in self._present.values():
            mine.share = self._share_of(mine.name)
        self._weights = sum(mine.share.weight for mine in self._present.values())

    def _entered(self, tenant: str) -> _Tenant[S]:
        share = self._share_of(tenant)
        credit_s, in_round = self._debts.pop(tenant, (_QUANTUM_S * share.weight, self._round))
        mine: _Tenant[S] = _Tenant(tenant, share, credit_s, in_round)
        self._present[tenant] = mine
        self._weights += share.weight
        return mine

    def _forget_absent(self, mine: _Tenant[S]) -> None:
        """Forget tenants that were not seen for a while, but for their debts; ``mine`` is seen now."""
        now_s = self._clock()
        mine.seen_s = now_s
        self._present.move_to_end(mine.name)
        while True:
            eldest = next(iter(self._present.values()))
            if eldest.running or eldest.waiting:
                eldest.seen_s = now_s
                self._present.move_to_end(eldest.name)
                if next(iter(self._present.values())).seen_s == now_s:
                    return
                continue
            if eldest.seen_s > now_s - _PRESENT_S:
                return
            del self._present[eldest.name]
            self._weights -= eldest.share.weight
            credit_s = self._credit_s(eldest)
            if credit_s < 0:
                self._debts[eldest.name] = credit_s, self._round
                if len(self._debts) > _DEBTS_MAX:
                    self._debts.popitem(last=False)

    def _credit_s(self, mine: _Tenant[S]) -> float:
        """What a tenant may still use in this round, that of statements that run included."""
        quantum_s = _QUANTUM_S * mine.share.weight
        mine.credit_s += (self._round - mine.round) * quantum_s
        mine.round = self._round
        if not mine.running:
            mine.credit_s = min(mine.credit_s, quantum_s)
        return mine.credit_s

    def _rounds_until(self, mine: _Tenant[S]) -> int:
        """The rounds after which a tenant has credit, if those of it that run cost what the ones before did."""
        left_s = self._credit_s(mine) - mine.running * mine.mean_s
        return 0 if left_s > 0 else math.floor(-left_s / (_QUANTUM_S * mine.share.weight)) + 1

    def _chosen(self) -> _Tenant[S] | None:
        """The tenant whose turn it is; None if none may run."""
        soonest: tuple[int, _Tenant[S]] | None = None
        for mine in self._turns.values():
            if not self._may_run(mine):
                continue
            if len(self._turns) == 1:
                return mine
            rounds = self._rounds_until(mine)
            if not rounds:
                return mine
            if soonest is None or rounds < soonest[0]:
                soonest = rounds, mine
        return None if soonest is None else soonest[1]

    def _may_run(self, mine: _Tenant[S]) -> bool:
        """Whether there is a place for one more statement of a tenant."""
        share, slots = mine.share, self._slots
        if share.running_max is not None and mine.running >= share.running_max:
            return False
        if slots is None or (not mine.name and len(self._present) == 1):
            return self.running < self._running_max
        if mine.running >= math.ceil(slots * share.weight / self._weights - _ROUNDING):
            return False
        # One more is for a tenant that has just come; one that has overdrawn waits.
        is_due = not mine.running and self.running == slots and self._credit_s(mine) > 0
        return self.running < min(self._running_max, slots + is_due)

    def _begin(self, mine: _Tenant[S]) -> None:
        self.running += 1
        if len(self._present) > 1:  # the rounds pass until it has credit
            self._round += self._rounds_until(mine)
        mine.running += 1

    def _is_waiting_no_more(self, mine: _Tenant[S]) -> None:
        mine.waiting -= 1
        self.waiting -= 1
        if not mine.waiting:
            del self._turns[mine.name]
