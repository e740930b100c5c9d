"""Loads whose controller is gone, on a virtual clock: every interleaving of small cases and random ones of larger, with
crashes, lost replies, and leases that end at any moment.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

import pytest

from secateur.cluster.controller import CommitPhase, Order, TwoPhaseCommit
from secateur.cluster.termination_protocol import (
    Ask,
    LoadProgress,
    Silence,
    TerminationProtocol,
    decision,
)
from secateur.errors import LoadFailedError, MemberLostError
from secateur.protocol import DecideLoad, LoadVerdict, SettleLoad, StandingAnswer, StandingOfLoad
from secateur.storage import LoadOutcome

REFUSED = LoadFailedError("load l was aborted")
LOST = MemberLostError("no answer")
NUMBER, ROWS = 41, 7
CONNECTION = 7


class Loads:
    """The loads of a member: one, of which nothing but its progress matters."""

    def __init__(self) -> None:
        self.ended: LoadOutcome | None = None
        self.prepared = False

    def outcome(self, load_id: str) -> LoadOutcome | None:
        return self.ended

    def is_prepared(self, load_id: str) -> bool:
        return self.prepared

    def publish(self, load_id: str, number: int, rows: int) -> None:
        assert self.prepared
        self.prepared, self.ended = False, LoadOutcome(published=True, rows=rows, number=number)

    def abort(self, load_id: str) -> None:
        if self.ended is None:
            self.prepared, self.ended = False, LoadOutcome(published=False, rows=0)


class Member:
    """A member."""

    def __init__(self, name: str, names: list[str]) -> None:
        self.loads = Loads()
        self.protocol = TerminationProtocol(name, self.loads, lambda: names, lease_s=10.0, reconnect_s=3.0, pause_s=0.2)
        self.lives = True

    def __deepcopy__(self, memo: dict[int, object]) -> Member:
        copied = object.__new__(Member)
        copied.__dict__.update({name: deepcopy(value, memo) for name, value in self.__dict__.items()})
        return copied


@dataclass
class World:
    """A controller that publishes a load, and the members; whatever may happen next is a step.

    Attributes:
        orders: What the controller has sent and has not arrived.
        replies: The replies to it that have not arrived.
        asks: What members have sent to each other and has not arrived.
        told: The answers to it that have not arrived, with the member that asked.
    """

    names: list[str]
    crashes_left: int
    losses_left: int
    refusing: str = ""
    now_s: float = 0.0
    controller_lives: bool = True
    orders: list[tuple[str, Order]] = field(default_factory=list)
    replies: list[tuple[str, str]] = field(default_factory=list)
    asks: list[tuple[str, Ask]] = field(default_factory=list)
    told: list[tuple[str, Ask, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.commit = TwoPhaseCommit(self.names)
        self.members = {name: Member(name, self.names) for name in self.names}
        self.orders += self.commit.begin()

    def steps(self) -> Iterator[tuple[str, ...]]:
        yield from (("order", str(index)) for index in range(len(self.orders)))
        yield from (("reply", str(index)) for index in range(len(self.replies)))
        yield from (("ask", str(index)) for index in range(len(self.asks)))
        yield from (("answer", str(index)) for index in range(len(self.told)))
        for name, member in self.members.items():
            if member.lives and member.protocol.due_s is not None and (self.crashes_left or not self.controller_lives):
                yield ("look", name)
        if self.losses_left:
            yield from (("lose reply", str(index)) for index in range(len(self.replies)))
            yield from (("lose answer", str(index)) for index in range(len(self.told)))
            yield from (("lose ask", str(index)) for index in range(len(self.asks)))
        if self.crashes_left:
            if self.controller_lives:
                yield ("crash controller",)
            living = [name for name, member in self.members.items() if member.lives]
            yield from (("crash", name) for name in living if len(living) > 1)

    def take(self, step: tuple[str, ...]) -> None:
        match step:
            case ("order", index):
                self._order(*self.orders.pop(int(index)))
            case ("reply", index):
                self._hear(*self.replies.pop(int(index)))
            case ("lose reply", index):
                self.losses_left -= 1
                name, _ = self.replies.pop(int(index))
                self._hear(name, "lost")
            case ("ask", index):
                self._asked(*self.asks.pop(int(index)))
            case ("lose ask", index):
                self.losses_left -= 1
                source, ask = self.asks.pop(int(index))
                self._answered(source, ask, Silence.OUT_OF_REACH)
            case ("answer", index):
                self._answered(*self.told.pop(int(index)))
            case ("lose answer", index):
                self.losses_left -= 1
                source, ask, _ = self.told.pop(int(index))
                self._answered(source, ask, Silence.OUT_OF_REACH)
            case ("look", name):
                member = self.members[name]
                self.now_s = max(self.now_s, member.protocol.due_s or 0.0)
                self.asks += [(name, ask) for ask in member.protocol.look(self.now_s)]
            case ("crash", name):
                self.crashes_left -= 1
                self.members[name].lives = False
            case ("crash controller",):
                self.crashes_left -= 1
                self.controller_lives = False
                self.replies.clear()
                for member in self.members.values():
                    member.protocol.connection_gone(CONNECTION, self.now_s)
        self.check()

    def _order(self, name: str, order: Order) -> None:
        """An order arrives, perhaps long after its controller has died."""
        member, answer = self.members[name], "done"
        if not member.lives:
            answer = "lost"
        elif order is Order.PREPARE:
            if member.loads.ended is not None or name == self.refusing:
                answer = "refused"
            else:
                member.protocol.closed("l", 1, CONNECTION, self.now_s)
                member.loads.prepared = True
                if not self.controller_lives:
                    member.protocol.connection_gone(CONNECTION, self.now_s)
        elif order is Order.ABORT:
            member.loads.abort("l")
            member.protocol.released("l")
        elif member.protocol.is_in_doubt("l"):
            self.orders.append((name, order))  # it waits for the decision
            return
        elif member.loads.prepared:
            member.loads.publish("l", NUMBER, ROWS)
            member.protocol.released("l")
        elif member.loads.ended is None or not member.loads.ended.published:
            answer = "refused"
        if self.controller_lives:
            self.replies.append((name, answer))

    def _hear(self, name: str, answer: str) -> None:
        if answer == "done":
            self.orders += self.commit.done(name)
        elif answer == "refused":
            self.orders += self.commit.refused(name, REFUSED)
        else:
            self.orders += self.commit.unanswered(name, LOST, is_member=self.members[name].lives)

    def _asked(self, source: str, ask: Ask) -> None:
        member = self.members[ask.member]
        answer: object = Silence.ENDED
        if member.lives:
            match ask.message:
                case StandingOfLoad(load_id):
                    answer = member.protocol.standing(load_id)
                case DecideLoad(load_id):
                    answer, asks = member.protocol.decide(load_id)
                    self.asks += [(ask.member, further) for further in asks]
                case SettleLoad(load_id, published, number, _, rows):
                    answer = None
                    member.protocol.settled(load_id, LoadVerdict(True, published, number, rows))
        self.told.append((source, ask, answer))

    def _answered(self, source: str, ask: Ask, answer: object) -> None:
        if self.members[source].lives:
            asks = self.members[source].protocol.answered(ask, answer, self.now_s)
            self.asks += [(source, further) for further in asks]

    def living(self) -> list[Member]:
        return [member for member in self.members.values() if member.lives]

    def check(self) -> None:
        """What is so at every moment: no two members, living or dead, have published and aborted a load."""
        known = {member.loads.ended.published for member in self.living() if member.loads.ended is not None}
        assert len(known) <= 1, "two members have different outcomes"
        for member in self.living():
            assert member.protocol.holds("l") or not member.loads.prepared, "no write comes before the outcome"

    def to_the_end(self) -> str:
        """Nothing is lost any more and everybody looks at the clock: every latch opens, with one outcome."""
        self.crashes_left = self.losses_left = 0
        for _ in range(1000):
            quiet = [step for step in self.steps() if step[0] != "look"]
            waits = [step for step in quiet if step[0] == "order" and self._waits(*self.orders[int(step[1])])]
            looks = [
                ("look", name)
                for name, member in self.members.items()
                if member.lives and member.protocol.due_s is not None
            ]
            steps = [step for step in quiet if step not in waits] or looks
            if not steps:
                break
            self.take(min(steps, key=lambda step: (self.members[step[1]].protocol.due_s if step in looks else 0) or 0))
        living = self.living()
        assert not any(member.protocol.holds("l") for member in living)
        assert not any(member.loads.prepared for member in living)
        if self.controller_lives:
            assert self.commit.phase is CommitPhase.ENDED
            acknowledged = self.commit.committed and not self.commit.failures
            assert not acknowledged or all(
                member.loads.ended is not None and member.loads.ended.published for member in living
            )
        outcomes = {member.loads.ended for member in living if member.loads.ended is not None}
        assert len({outcome.number for outcome in outcomes}) <= 1
        assert {outcome.rows for outcome in outcomes if outcome.published} <= {ROWS}
        return "published" if any(outcome.published for outcome in outcomes) else "aborted"

    def _waits(self, name: str, order: Order) -> bool:
        member = self.members[name]
        return order is Order.COMMIT and member.lives and member.protocol.is_in_doubt("l")

    def key(self) -> str:
        members = [
            (name, member.lives, member.loads.prepared, member.loads.ended,
             member.protocol._holds, member.protocol._deciding)
            for name, member in self.members.items()
        ]  # fmt: skip
        return repr((
            members, sorted(map(repr, self.orders)), sorted(self.replies), sorted(map(repr, self.asks)),
            sorted(map(repr, self.told)), self.controller_lives, self.crashes_left, self.losses_left, self.now_s,
            self.commit.phase, sorted(self.commit._waiting), sorted(self.commit.failures),
            sorted(self.commit.committed),
        ))  # fmt: skip


def every(world: World, steps_max: int) -> set[str]:
    """The outcomes of every order of steps, up to so many; worlds that are alike are looked at once."""
    found: set[str] = set()
    seen: set[str] = set()
    pending = [(world, 0)]
    while pending:
        here, depth = pending.pop()
        steps = list(here.steps()) if depth < steps_max else []
        if not steps:
            found.add(here.to_the_end())
        for step in steps:
            there = deepcopy(here)
            there.take(step)
            key = there.key()
            if key not in seen:
                seen.add(key)
                pending.append((there, depth + 1))
    return found


@pytest.mark.parametrize(
    ("crashes", "losses", "refusing", "outcomes"),
    [
        pytest.param(0, 1, "", {"published", "aborted"}, id="a reply is lost"),
        pytest.param(1, 0, "", {"published", "aborted"}, id="one dies"),
        pytest.param(1, 0, "m2", {"aborted"}, id="one dies and one refuses"),
    ],
)
def test_every_interleaving_leaves_one_outcome_and_open_latches(
    crashes: int, losses: int, refusing: str, outcomes: set[str]
) -> None:
    world = World(["m1", "m2"], crashes, losses, refusing)
    assert every(world, 9) == outcomes


@pytest.mark.parametrize("seed", range(400))
def test_random_interleavings_of_larger_cases(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"m{number + 1}" for number in range(chance.randrange(1, 6))]
    world = World(names, chance.randrange(4), chance.randrange(4), chance.choice(["", "", "", "", "m1"]))
    for _ in range(chance.randrange(5, 80)):
        steps = list(world.steps())
        if not steps:
            break
        calm = [step for step in steps if step[0] in ("order", "reply", "ask", "answer")]
        world.take(chance.choice(calm if calm and chance.random() < 0.85 else steps))
    world.to_the_end()


def test_the_random_cases_reach_both_outcomes_by_the_decision_of_members() -> None:
    """Members that always abort would pass the test above."""
    found = set()
    for dies_after in range(12):
        world = World(["m1", "m2", "m3"], 1, 0)
        for _ in range(dies_after):
            calm = [step for step in world.steps() if step[0] in ("order", "reply")]
            if calm:
                world.take(calm[0])
        world.take(("crash controller",))
        world.orders.clear()
        found.add((world.to_the_end(), world.commit.phase is CommitPhase.ENDED))
    assert {("aborted", False), ("published", False)} <= found


def test_who_has_published_is_followed() -> None:
    prepared, published = StandingAnswer(LoadProgress.PREPARED, 0), StandingAnswer(LoadProgress.PUBLISHED, 5, 7)
    assert decision([prepared, published, StandingAnswer(LoadProgress.UNKNOWN, 0)]) == LoadVerdict(True, True, 5, 7)
    assert decision([prepared, prepared]) == LoadVerdict(True, False, 0)
    assert decision([StandingAnswer(LoadProgress.ABORTED, 0), prepared]) == LoadVerdict(True, False, 0)
