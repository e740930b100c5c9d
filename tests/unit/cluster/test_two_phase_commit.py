"""Two-phase commits on a virtual clock: every interleaving of small cases and random ones of larger, with crashes of
participants and of the coordinator between any two steps.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

import pytest

from secateur.cluster.controller import CommitPhase, Order, TwoPhaseCommit
from secateur.cluster.termination_protocol import LoadProgress, decision
from secateur.errors import DuplicateKeyError, MemberLostError
from secateur.protocol import StandingAnswer

DUPLICATE = DuplicateKeyError("t: key (id=1) is already there", table="t")
LOST = MemberLostError("no answer")


@dataclass
class Participant:
    """A member: what it has, whether its latch is closed, and whether it lives."""

    progress: LoadProgress = LoadProgress.UNKNOWN
    lives: bool = True
    can_prepare: bool = True
    latch_closed: bool = False


@dataclass
class World:
    """A coordinator and its participants; whatever may happen next is a step."""

    commit: TwoPhaseCommit
    members: dict[str, Participant]
    crashes_left: int
    under_way: list[tuple[str, Order]] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)
    coordinator_lives: bool = True
    answers_lost_left: int = 0

    @classmethod
    def of(cls, participants: int, *, crashes: int, refusing: str = "", answers_lost: int = 0) -> World:
        names = [f"m{number + 1}" for number in range(participants)]
        members = {name: Participant(can_prepare=name != refusing) for name in names}
        world = cls(TwoPhaseCommit(names), members, crashes, answers_lost_left=answers_lost)
        world.under_way += world.commit.begin()
        return world

    def steps(self) -> Iterator[tuple[str, ...]]:
        yield from (("carry out", str(index)) for index in range(len(self.under_way)))
        if self.coordinator_lives:
            yield from (("answer", str(index)) for index in range(len(self.answers)))
            if self.answers_lost_left:
                yield from (("lose answer", str(index)) for index in range(len(self.answers)))
            if self.crashes_left and (self.under_way or self.answers):
                yield ("crash coordinator",)
        if self.crashes_left and (self.under_way or self.answers):
            yield from (("crash", name) for name, member in self.members.items() if member.lives)

    def take(self, step: tuple[str, ...]) -> None:
        match step:
            case ("carry out", index):
                self._carry_out(*self.under_way.pop(int(index)))
            case ("answer", index):
                name, answer = self.answers.pop(int(index))
                self._hear(name, answer)
            case ("lose answer", index):
                self.answers_lost_left -= 1
                name, _ = self.answers.pop(int(index))
                self._hear(name, "lost")
            case ("crash", name):
                self.crashes_left -= 1
                self.members[name].lives = False
            case ("crash coordinator",):
                self.crashes_left -= 1
                self.coordinator_lives = False
                self.answers.clear()
        if step[0] in ("answer", "lose answer") or step[0] == "crash coordinator":
            self.check()

    def _carry_out(self, name: str, order: Order) -> None:
        member = self.members[name]
        if not member.lives:
            self.answers.append((name, "lost"))
            return
        answer = "done"
        match order:
            case Order.PREPARE if member.can_prepare:
                member.progress, member.latch_closed = LoadProgress.PREPARED, True
            case Order.PREPARE:
                answer = "refused"
            case Order.COMMIT:
                assert member.progress in (LoadProgress.PREPARED, LoadProgress.PUBLISHED)
                member.progress, member.latch_closed = LoadProgress.PUBLISHED, False
            case Order.ABORT:
                assert member.progress is not LoadProgress.PUBLISHED
                member.progress, member.latch_closed = LoadProgress.ABORTED, False
        if self.coordinator_lives:
            self.answers.append((name, answer))

    def _hear(self, name: str, answer: str) -> None:
        match answer:
            case "done":
                self.under_way += self.commit.done(name)
            case "refused":
                self.under_way += self.commit.refused(name, DUPLICATE)
            case _:
                self.under_way += self.commit.unanswered(name, LOST, is_member=self.members[name].lives)

    def check(self) -> None:
        """What is so at every moment: commit and abort are never both under way or done."""
        orders = {order for _, order in self.under_way}
        known = {member.progress for member in self.members.values()}
        assert not ({Order.COMMIT, Order.ABORT} <= orders)
        assert not ({LoadProgress.PUBLISHED, LoadProgress.ABORTED} <= known)

    def end(self) -> str:
        """Nothing is under way: let members decide what no coordinator decides, and say what became of it."""
        living = [member for member in self.members.values() if member.lives]
        if not self.coordinator_lives:
            decided = decision([StandingAnswer(member.progress, 0) for member in living])
            for member in living:
                member.progress = LoadProgress.PUBLISHED if decided.published else LoadProgress.ABORTED
                member.latch_closed = False
        else:
            assert self.commit.phase is CommitPhase.ENDED
            assert all(
                member.progress is (LoadProgress.PUBLISHED if self.commit.is_committed else LoadProgress.ABORTED)
                for member in living
            )
        assert not any(member.latch_closed for member in living)
        outcomes = {member.progress for member in living}
        assert len(outcomes) <= 1
        if any(not member.can_prepare for member in self.members.values()):
            assert LoadProgress.PUBLISHED not in {member.progress for member in self.members.values()}
        return "nobody lives" if not outcomes else outcomes.pop().value


def every(world: World, found: set[str], seen: set[str]) -> None:
    """Every order in which the steps of a world can happen; worlds that are alike are looked at once."""
    pending = [world]
    while pending:
        here = pending.pop()
        steps = list(here.steps())
        if not steps:
            found.add(here.end())
        for step in steps:
            there = deepcopy(here)
            there.take(step)
            key = repr((
                sorted((n, o.name) for n, o in there.under_way), sorted(there.answers), there.members,
                there.crashes_left, there.answers_lost_left, there.coordinator_lives, there.commit.phase,
                sorted(there.commit._waiting), sorted(there.commit.failures), sorted(there.commit.committed),
            ))  # fmt: skip
            if key not in seen:
                seen.add(key)
                pending.append(there)


@pytest.mark.parametrize(
    ("participants", "crashes", "refusing", "answers_lost", "outcomes"),
    [
        (0, 0, "", 0, {"nobody lives"}),
        (2, 0, "", 0, {"published"}),
        (2, 0, "m2", 0, {"aborted"}),
        (2, 0, "", 1, {"published", "aborted"}),
        (2, 2, "", 1, {"published", "aborted", "nobody lives"}),
        (2, 2, "m1", 1, {"aborted", "nobody lives"}),
        (3, 1, "", 0, {"published", "aborted"}),
    ],
)
def test_every_interleaving_is_visible_whole_or_not_at_all(
    participants: int, crashes: int, refusing: str, answers_lost: int, outcomes: set[str]
) -> None:
    found: set[str] = set()
    every(World.of(participants, crashes=crashes, refusing=refusing, answers_lost=answers_lost), found, set())
    assert found == outcomes


@pytest.mark.parametrize("seed", range(300))
def test_random_interleavings_of_larger_cases(seed: int) -> None:
    chance = random.Random(seed)
    participants = chance.randrange(1, 8)
    world = World.of(
        participants,
        crashes=chance.randrange(3),
        refusing=chance.choice(["", "", "", "m1"]),
        answers_lost=chance.randrange(3),
    )
    while steps := list(world.steps()):
        calm = [step for step in steps if step[0] in ("carry out", "answer")]
        world.take(chance.choice(calm if calm and chance.random() < 0.9 else steps))
    world.end()


def test_nobody_is_told_to_commit_before_all_have_prepared() -> None:
    commit = TwoPhaseCommit(["m1", "m2"])
    assert commit.begin() == (("m1", Order.PREPARE), ("m2", Order.PREPARE))
    assert commit.done("m2") == ()
    assert commit.done("m1") == (("m1", Order.COMMIT), ("m2", Order.COMMIT))
    assert commit.unanswered("m1", LOST, is_member=True) == (("m1", Order.COMMIT),)
    assert commit.unanswered("m1", LOST, is_member=False) == ()
    assert commit.done("m2") == ()
    assert (commit.phase, commit.committed) == (CommitPhase.ENDED, {"m2"})


def test_one_that_cannot_prepare_is_waited_for_with_all_others_before_anybody_aborts() -> None:
    commit = TwoPhaseCommit(["m1", "m2"])
    commit.begin()
    assert commit.refused("m1", DUPLICATE) == ()
    assert commit.done("m2") == (("m1", Order.ABORT), ("m2", Order.ABORT))
    assert commit.unanswered("m1", LOST, is_member=True) == ()
    assert commit.done("m2") == ()
    assert (commit.phase, commit.is_committed, commit.failures) == (CommitPhase.ENDED, False, {"m1": DUPLICATE})
