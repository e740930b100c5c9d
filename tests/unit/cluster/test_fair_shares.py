"""Shares of tenants in the queue of a member, on virtual time."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable

import pytest

from secateur.cluster.member import StatementQueue, TenantShare

Costs = Callable[[random.Random], float]


class _Member:
    """A member whose statements take as long as they cost, on a clock of its own.

    Args:
        slots: Statements that run at once.
        shares: The shares of its tenants; the others have an equal one.
    """

    def __init__(self, slots: int, shares: dict[str, TenantShare] | None = None) -> None:
        self.now_s = 0.0
        shares = shares or {}
        self.queue: StatementQueue[tuple[str, int]] = StatementQueue(
            slots + 1, 1_000_000, slots=slots, share_of=lambda name: shares.get(name, TenantShare()), clock=self._clock
        )
        self.used_s: Counter[str] = Counter()
        self.begun: list[str] = []
        self.waited_s: dict[str, list[float]] = {}
        self._costs: dict[tuple[str, int], float] = {}
        self._came_s: dict[tuple[str, int], float] = {}
        self._ends: list[tuple[float, tuple[str, int]]] = []
        self._numbers = itertools.count()

    def _clock(self) -> float:
        return self.now_s

    def come(self, tenant: str, cost_s: float, session: str = "s") -> None:
        statement = tenant, next(self._numbers)
        self._costs[statement], self._came_s[statement] = cost_s, self.now_s
        running = self.queue.running
        assert self.queue.came(session, statement, tenant) is None
        if self.queue.running > running:
            self._begin(statement)

    def _begin(self, statement: tuple[str, int]) -> None:
        tenant = statement[0]
        self.begun.append(tenant)
        self.waited_s.setdefault(tenant, []).append(self.now_s - self._came_s[statement])
        heapq.heappush(self._ends, (self.now_s + self._costs[statement], statement))

    def end_one(self) -> str | None:
        """Let the next statement end; returns its tenant, or None if none runs."""
        if not self._ends:
            return None
        self.now_s, statement = heapq.heappop(self._ends)
        tenant, cost_s = statement[0], self._costs[statement]
        self.used_s[tenant] += cost_s
        following = self.queue.ended(tenant, cost_s)
        while following is not None:
            self._begin(following)
            following = self.queue.following()
        return tenant

    def run_backlogged(self, costs: dict[str, Costs], seconds: float, seed: int) -> None:
        """Let each tenant have 20 statements waiting all the time."""
        chance = random.Random(seed)
        for tenant, cost in costs.items():
            for _ in range(20):
                self.come(tenant, cost(chance))
        while self.now_s < seconds:
            ended = self.end_one()
            assert ended is not None
            self.come(ended, costs[ended](chance))


def shares(used_s: Counter[str]) -> dict[str, float]:
    return {tenant: used / used_s.total() for tenant, used in used_s.items()}


@pytest.mark.parametrize("seed", range(10))
def test_tenants_with_work_get_equal_processor_time_whatever_their_statements_cost(seed: int) -> None:
    chance = random.Random(seed)
    means = {f"t{number}": 10 ** chance.uniform(-2, -0.5) for number in range(chance.randint(4, 9))}
    costs: dict[str, Costs] = {
        name: (lambda chance, mean=mean: chance.expovariate(1 / mean)) for name, mean in means.items()
    }
    member = _Member(slots=chance.choice([1, 2]))
    member.run_backlogged(costs, 100.0 * len(means), seed)
    found = shares(member.used_s)
    assert found == {tenant: pytest.approx(1 / len(means), rel=0.05) for tenant in means}


@pytest.mark.parametrize("seed", range(5))
def test_processor_time_is_divided_by_weight(seed: int) -> None:
    weights = {"a": 1.0, "b": 2.0, "c": 0.5, "d": 1.5}
    member = _Member(1, {name: TenantShare(weight) for name, weight in weights.items()})
    costs: dict[str, Costs] = {
        "a": lambda chance: chance.uniform(0, 0.2),
        "b": lambda chance: chance.uniform(0, 0.02),
        "c": lambda _: 0.05,
        "d": lambda chance: chance.expovariate(50),
    }
    member.run_backlogged(costs, 300.0, seed)
    assert shares(member.used_s) == {name: pytest.approx(weight / 5, rel=0.05) for name, weight in weights.items()}


def test_a_tenant_at_twenty_times_its_share_delays_another_by_one_statement() -> None:
    member = _Member(2)
    for _ in range(200):
        member.come("mad", 0.1)
    for _ in range(50):
        member.come("calm", 0.01)
        while member.end_one() != "calm":
            pass
    waits = sorted(member.waited_s["calm"])
    assert waits[-1] <= 0.1
    assert waits[-2] == 0.0, "a place is kept for it from its first statement on"


def test_no_tenant_starves_beside_many_that_cost_little() -> None:
    member = _Member(2)
    costs: dict[str, Costs] = {f"small {number}": lambda chance: chance.expovariate(100) for number in range(20)}
    costs["large"] = lambda _: 0.5
    member.run_backlogged(costs, 200.0, 1)
    assert shares(member.used_s)["large"] == pytest.approx(1 / 21, rel=0.2)


def test_a_tenant_that_was_away_has_saved_nothing_up() -> None:
    member = _Member(1)
    for _ in range(1000):
        member.come("there", 0.01)
    for _ in range(500):
        member.end_one()
    for _ in range(500):
        member.come("late", 0.01)
    before = Counter(member.begun)
    for _ in range(200):
        member.end_one()
    after = Counter(member.begun)
    assert abs((after["late"] - before["late"]) - (after["there"] - before["there"])) <= 3


def test_what_nobody_else_wanted_is_not_held_against_a_tenant() -> None:
    member = _Member(1)
    member.come("calm", 0.01)
    for _ in range(100):
        member.come("eager", 1.0)
    while member.used_s["eager"] < 50:
        member.end_one()
    for _ in range(400):
        member.come("calm", 0.01)
    before_s = member.used_s["calm"]
    while member.used_s["eager"] < 51:
        member.end_one()
    assert member.used_s["calm"] - before_s <= 1.1, "not the fifty seconds that the other has had alone"


def test_a_debt_outlives_an_absence() -> None:
    member = _Member(1)
    for _ in range(3000):
        member.come("steady", 0.01)
    member.come("rare", 5.0)  # and none of it waits behind this one
    while member.end_one() != "rare":
        pass
    begun = member.now_s
    member.come("rare", 5.0)
    while member.end_one() != "rare":
        pass
    assert member.now_s - begun == pytest.approx(10.0, rel=0.1), "it has waited for as long as it had run"


def test_a_tenant_has_its_share_of_the_places_while_others_are_present() -> None:
    queue: StatementQueue[str] = StatementQueue(16, 100, slots=4)
    for number in range(10):
        queue.came("s", f"a{number}", "a")
    assert (queue.running, queue.waiting) == (4, 6), "it finds as many places as there are"
    queue.came("s", "b0", "b")
    assert queue.running == 5, "one more is for a tenant of which none runs"
    for _ in range(2):
        assert queue.ended("a") is None
    assert queue.ended("a") == "a4", "half of four places"
    assert queue.following() is None


def test_the_owner_alone_has_all_places_and_an_order_as_without_tenants() -> None:
    queue: StatementQueue[str] = StatementQueue(3, 100, slots=1)
    for name in ("x", "y", "z", "a1", "a2", "a3", "b1"):
        queue.came(name[0], name)
    assert queue.running == 3
    assert [queue.ended("", 1.0) for _ in range(4)] == ["a1", "b1", "a2", "a3"]


def test_no_more_of_a_tenant_run_than_its_group_says() -> None:
    capped = TenantShare(running_max=1)
    queue: StatementQueue[str] = StatementQueue(8, 100, slots=4, share_of=lambda _: capped)
    for name in ("a1", "a2", "a3"):
        queue.came("s", name, "a")
    assert (queue.running, queue.waiting) == (1, 2)
    assert queue.ended("a") == "a2"
    assert queue.following() is None


def test_who_fills_the_queue_is_refused_first_whatever_its_sessions() -> None:
    queue: StatementQueue[str] = StatementQueue(1, 4)
    queue.came("x", "running", "c")
    for number in range(4):
        assert queue.came(f"session {number}", f"a{number}", "a") is None
    assert queue.came("s", "b0", "b") == "a0", "of the tenant with most, though each of its sessions has one"
    assert queue.came("s", "b1", "b") in ("a1", "a2", "a3")
