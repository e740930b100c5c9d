"""Leases under faults, on a virtual clock and network: never two members that answer for one partition, and somebody
who does whenever that can be.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from secateur.cluster.lease import (
    AskPeers,
    LeaseHolder,
    LeaseOutcome,
    LeaseTimes,
    MemberRemoved,
    MemberWatch,
    Promises,
)
from secateur.errors import ProgrammingError

TIMES = LeaseTimes(5.0)
BLOCKS = int(float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
"""Of 15 random worlds; the simulation looks for two owners of a partition as well."""
PARTITIONS = {0: ("m1", "m2"), 1: ("m2", "m3"), 2: ("m3", "m1"), 3: ("m1", "m3"), 4: ("m2", "m1"), 5: ("m3", "m2")}
IDS = ("m1", "m2", "m3")


class World:
    """A controller and three members; each is stopped, cut off or killed at will.

    Args:
        seed: Of delays and of the pace of clocks.
    """

    def __init__(self, seed: int = 0) -> None:
        self.now_s = 0.0
        self.random = random.Random(seed)
        self.cut: set[frozenset[str]] = set()
        self.acknowledged: dict[int, set[int]] = {partition: set() for partition in PARTITIONS}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self.controller = Controller(self, "c")
        self.members = {member: Member(self, member) for member in IDS}
        self.processes: dict[str, Process] = {"c": self.controller, **self.members}
        for process in self.processes.values():
            process.begin()
        self.run(1.0)

    def later(self, delay_s: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now_s + delay_s, next(self._numbers), event))

    def run(self, duration_s: float) -> None:
        """Let time pass, and look at everything after each event."""
        end_s = self.now_s + duration_s
        while self._events and self._events[0][0] <= end_s:
            self.now_s, _, event = heapq.heappop(self._events)
            event()
            self.check()
        self.now_s = end_s
        self.check()

    def send(
        self, source: str, target: str, deliver: Callable[[], None], gone: Callable[[], None] = lambda: None
    ) -> None:
        """A message; ``gone`` happens at the source when the target's address refuses it."""
        if frozenset({source, target}) in self.cut:
            return
        delay_s = self.random.choice((0.001, 0.01, self.random.uniform(0, 0.4)))

        def arrive() -> None:
            if self.processes[target].is_dead:
                self.later(0.001, lambda: self.processes[source].do(gone))
            else:
                self.processes[target].do(deliver)

        self.later(delay_s, arrive)

    def answering(self, partition: int) -> list[str]:
        return [name for name, member in self.members.items() if member.answers(partition)]

    def check(self) -> None:
        for partition in PARTITIONS:
            answering = self.answering(partition)
            assert len(answering) <= 1, f"{answering} answer for partition {partition} at {self.now_s}"
            for name in answering:
                missing = self.acknowledged[partition] - self.members[name].rows[partition]
                assert not missing, (
                    f"{name} answers for partition {partition} without the writes {missing} at {self.now_s}"
                )


class Process:
    """Does one thing after the other, unless it is stopped or dead."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.is_stopped = False
        self.is_dead = False
        self._backlog: list[Callable[[], None]] = []
        self._pace = 1 + world.random.uniform(-0.003, 0.003)
        self._offset_s = world.random.uniform(0, 1000)

    @property
    def now_s(self) -> float:
        """By its own clock."""
        return self._offset_s + self.world.now_s * self._pace

    def begin(self) -> None:
        raise NotImplementedError

    def do(self, work: Callable[[], None]) -> None:
        if self.is_dead:
            return
        if self.is_stopped:
            self._backlog.append(work)
        else:
            work()

    def every(self, interval_s: float, work: Callable[[], None]) -> None:
        def turn() -> None:
            self.do(work)
            self.every(interval_s, work)

        if not self.is_dead:
            self.world.later(interval_s / self._pace, turn)

    def stop(self) -> None:
        self.is_stopped = True

    def go_on(self) -> None:
        self.is_stopped = False
        backlog, self._backlog = self._backlog, []
        for work in backlog:
            self.do(work)

    def kill(self) -> None:
        self.is_dead = True


class Controller(Process):
    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.watch = MemberWatch(TIMES, 60.0)
        self.version, self.members = 1, IDS
        self.heard: dict[str, int] = dict.fromkeys(IDS, 0)

    def begin(self) -> None:
        for member in IDS:
            self.watch.joined(member, self.now_s)
        self.every(TIMES.interval_s, self.look)
        self.every(0.3, self.tell)
        self.tell()

    def look(self) -> None:
        for member in self.watch.look(self.now_s):
            self.lose(member)

    def lose(self, member: str) -> None:
        self.watch.left(member)
        self.version, self.members = self.version + 1, tuple(other for other in self.members if other != member)
        self.tell()

    def refused(self, member: str) -> None:
        if member in self.members:
            self.lose(member)

    def tell(self) -> None:
        version, members = self.version, self.members
        for member in members:
            if self.heard[member] < version:
                target = self.world.members[member]
                self.world.send(
                    self.name, member, partial(target.topology, version, members), partial(self.refused, member)
                )

    def acknowledged(self, member: str, version: int) -> None:
        self.heard[member] = max(self.heard[member], version)


class Member(Process):
    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.holder, self.promises = LeaseHolder(TIMES), Promises(TIMES)
        self.version, self.members = 0, ()
        self.is_out = False
        self.rows: dict[int, set[int]] = {partition: set() for partition in PARTITIONS}

    def begin(self) -> None:
        self.every(TIMES.interval_s, self.renew)
        self.renew()

    def answers(self, partition: int) -> bool:
        if self.is_dead or self.is_stopped or self.is_out or self.now_s >= self.holder.until_s:
            return False
        return self.primary(partition) == self.name

    def primary(self, partition: int) -> str | None:
        return next((holder for holder in PARTITIONS[partition] if holder in self.members), None)

    def topology(self, version: int, members: tuple[str, ...]) -> None:
        wait_s = self.promises.heard(version, members, self.now_s, gains_copies=False) - self.now_s
        self.world.later(wait_s / self._pace, lambda: self.do(lambda: self.act_on(version, members)))

    def act_on(self, version: int, members: tuple[str, ...]) -> None:
        if version > self.version:
            self.version, self.members = version, members
            self.holder.topology_changed({member: "" for member in members if member != self.name})
        controller = self.world.controller
        self.world.send(self.name, "c", lambda: controller.acknowledged(self.name, version))

    # -- leases

    def renew(self) -> None:
        if not self.is_out:
            asked_s = self.now_s
            self.ask("c", lambda answer: self.carry_out(self.holder.controller_answered(asked_s, answer, self.now_s)))

    def carry_out(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case AskPeers(_, peers):
                    for peer in peers:
                        self.ask(
                            peer,
                            lambda answer, effect=effect, peer=peer: self.carry_out(
                                self.holder.peer_answered(effect, peer, answer, self.now_s)
                            ),
                        )  # type: ignore[misc]
                case MemberRemoved():
                    self.is_out = True

    def ask(self, target: str, heard: Callable[[LeaseOutcome], None]) -> None:
        asked, version = self.world.processes[target], self.version
        is_answered = False

        def answer(verdict: LeaseOutcome) -> None:
            nonlocal is_answered
            if not is_answered or verdict is not LeaseOutcome.SILENT:
                is_answered = True
                heard(verdict)

        def asking() -> None:
            if isinstance(asked, Controller):
                verdict = asked.watch.heard(self.name, asked.now_s, stalled_s=0.0)
            else:
                assert isinstance(asked, Member)
                verdict = asked.promises.asked(self.name, version, asked.now_s)
            self.world.send(target, self.name, lambda: answer(verdict))

        self.world.send(self.name, target, asking, lambda: answer(LeaseOutcome.GONE))
        self.world.later(TIMES.patience_s, lambda: self.do(lambda: answer(LeaseOutcome.SILENT)))

    # -- writes

    def write(self, partition: int, number: int) -> None:
        if not self.answers(partition):
            return
        self.rows[partition].add(number)
        waits_for = {holder for holder in PARTITIONS[partition] if holder != self.name and holder in self.members}

        def confirmed(backup: str | None = None) -> None:
            waits_for.discard(backup or "")
            waits_for.intersection_update(self.members)
            if not waits_for:
                self.world.acknowledged[partition].add(number)

        def look_again() -> None:
            confirmed()
            if waits_for and not self.is_dead:
                self.world.later(0.2, lambda: self.do(look_again))

        for backup in waits_for:
            self.world.send(
                self.name,
                backup,
                lambda backup=backup: self.world.members[backup].copy(partition, number, self.name, confirmed),
            )  # type: ignore[misc]
        look_again()

    def copy(self, partition: int, number: int, source: str, confirmed: Callable[[str], None]) -> None:
        if self.is_out or self.primary(partition) == self.name:
            return
        self.rows[partition].add(number)
        self.world.send(self.name, source, lambda: confirmed(self.name))


def faults(world: World) -> None:
    """One fault after the other, at random: stops of any length, cuts, one member killed, the controller killed."""
    pick = world.random
    number = itertools.count()
    may_kill = {"c", pick.choice(IDS)}
    for _ in range(40):
        fault = pick.random()
        process = world.processes[pick.choice(("c", *IDS))]
        if fault < 0.35:
            if not process.is_stopped:
                process.stop()
                world.later(pick.choice((0.5, 3.0, 4.9, 5.5, 9.0, 20.0)), process.go_on)
        elif fault < 0.7:
            link = frozenset(pick.sample(("c", *IDS), 2))
            world.cut.add(link)
            world.later(pick.choice((0.5, 3.0, 6.0, 12.0)), lambda link=link: world.cut.discard(link))  # type: ignore[misc]
        elif fault < 0.75 and process.name in may_kill:
            process.kill()
        for _ in range(6):
            partition = pick.choice(list(PARTITIONS))
            for member in world.members.values():
                member.do(lambda member=member, partition=partition: member.write(partition, next(number)))  # type: ignore[misc]
            world.run(pick.uniform(0, 0.5))
        if pick.random() < 0.2:
            world.run(pick.uniform(0, 8))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_two_members_answer_for_one_partition(block: int) -> None:
    for seed in range(block * 15, block * 15 + 15):
        world = World(seed)
        try:
            faults(world)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        assert any(world.acknowledged.values()), f"seed {seed}: nothing was ever written"


def always_answered(world: World, partitions: set[int], duration_s: float) -> None:
    for _ in range(int(duration_s / 0.25)):
        world.run(0.25)
        for partition in partitions:
            assert world.answering(partition), f"nobody answers for partition {partition} at {world.now_s}"


EVERY = set(PARTITIONS)


def served_by(*members: str) -> set[int]:
    return {partition for partition, holders in PARTITIONS.items() if holders[0] in members}


def test_all_answer_when_nothing_happens() -> None:
    always_answered(World(), EVERY, 20)


@pytest.mark.parametrize("how", ["killed", "stopped", "cut off"])
def test_members_go_on_without_the_controller(how: str) -> None:
    world = World()
    match how:
        case "killed":
            world.controller.kill()
        case "stopped":
            world.controller.stop()
        case _:
            world.cut |= {frozenset({"c", member}) for member in IDS}
    always_answered(world, EVERY, 4 if how == "cut off" else 30)
    if how == "cut off":  # a controller that lives gives all of them up in the end, and nobody takes anything over
        always_answered(world, EVERY, 30)
        assert world.controller.members == ()


def test_a_stopped_member_is_succeeded_and_finds_out_when_it_goes_on() -> None:
    world = World()
    world.members["m1"].stop()
    world.run(TIMES.silence_s + 2)
    assert {world.answering(partition)[0] for partition in EVERY} == {"m2", "m3"}
    world.members["m1"].go_on()
    assert not world.members["m1"].is_out
    assert not any("m1" in world.answering(partition) for partition in EVERY), "it answers before it has heard anybody"
    world.run(2)
    assert world.members["m1"].is_out
    always_answered(world, EVERY, 10)


def test_a_short_stop_changes_nothing() -> None:
    world = World()
    world.members["m1"].stop()
    world.run(TIMES.silence_s - 0.7)
    world.members["m1"].go_on()
    world.run(1)
    assert world.controller.version == 1
    always_answered(world, EVERY, 10)


def test_a_controller_that_was_stopped_does_not_blame_the_members() -> None:
    world = World()
    world.controller.stop()
    always_answered(world, EVERY, 30)
    world.controller.go_on()
    always_answered(world, EVERY, 10)
    assert world.controller.version == 1


def test_a_dead_controller_and_a_stopped_member() -> None:
    world = World()
    world.controller.kill()
    world.run(1)
    world.members["m2"].stop()
    always_answered(world, served_by("m1", "m3"), 30)
    world.members["m2"].go_on()
    world.run(2)
    always_answered(world, EVERY, 10)


def test_a_stopped_controller_and_a_dead_member() -> None:
    world = World()
    world.controller.stop()
    world.members["m2"].kill()
    always_answered(world, served_by("m1", "m3"), 20)
    world.controller.go_on()
    world.run(TIMES.silence_s + 2)
    always_answered(world, EVERY, 10)


def test_a_stopped_controller_and_a_stopped_member_leave_nobody_who_may_answer() -> None:
    """The stopped member might have heard of other owners before it was stopped."""
    world = World()
    world.controller.stop()
    world.members["m2"].stop()
    world.run(2 * TIMES.lease_s)
    assert not any(world.answering(partition) for partition in EVERY)
    world.controller.go_on()
    world.run(1)
    always_answered(world, served_by("m1", "m3"), 4)


def test_what_was_gone_after_the_end_of_the_lease_counts_for_nothing() -> None:
    holder = LeaseHolder(TIMES)
    holder.topology_changed({"m2": "a:1"})
    assert holder.controller_answered(0.0, LeaseOutcome.GRANTED, 0.1) == []
    late_s = holder.until_s + 0.1
    (asked,) = holder.controller_answered(late_s, LeaseOutcome.GONE, late_s)
    assert isinstance(asked, AskPeers)
    assert holder.peer_answered(asked, "m2", LeaseOutcome.GONE, late_s) == []
    assert holder.until_s < late_s
    assert holder.peer_answered(asked, "m2", LeaseOutcome.GIVEN_UP, late_s) == [MemberRemoved()]


def test_what_was_gone_is_asked_again_when_it_has_come_back_at_another_address() -> None:
    holder = LeaseHolder(TIMES)
    holder.topology_changed({"m2": "a:1", "m3": "b:1"})
    assert holder.controller_answered(0.0, LeaseOutcome.GRANTED, 0.1) == []
    (asked,) = holder.controller_answered(0.2, LeaseOutcome.SILENT, 0.3)
    assert isinstance(asked, AskPeers)
    assert holder.peer_answered(asked, "m2", LeaseOutcome.GONE, 0.3) == []
    holder.topology_changed({"m2": "a:1", "m3": "b:2"})
    assert holder.controller_answered(0.4, LeaseOutcome.SILENT, 0.5) == [AskPeers(0.5, frozenset({"m3"}))]
    holder.topology_changed({"m2": "a:2", "m3": "b:2"})
    assert holder.controller_answered(0.6, LeaseOutcome.SILENT, 0.7) == [AskPeers(0.7, frozenset({"m2", "m3"}))]


def test_a_newcomer_that_gains_copies_promises_to_all_whose_leases_may_rest_on_others_alone() -> None:
    for versions in ([20, 21], [21]):  # it may hear of the copies and of the loss at once
        promises = Promises(TIMES)
        promises.heard(19, ["m1", "m3", "m4"], 0.0, gains_copies=False)
        for version in versions:
            members = ["m3", "m4"] if version == 21 else ["m1", "m3", "m4"]
            may_act_s = promises.heard(version, members, 1.0, gains_copies=version == versions[0])
        assert may_act_s == 1.0 + TIMES.promise_s
        assert promises.heard(22, ["m3", "m4"], 5.0, gains_copies=False) == 5.0


def test_promises_know_who_is_behind() -> None:
    promises = Promises(TIMES)
    assert promises.asked("m1", 1, 0.0) is LeaseOutcome.REFUSED
    assert promises.heard(3, ["m2", "m3"], 0.0, gains_copies=False) == 0.0
    assert promises.asked("m1", 3, 0.0) is LeaseOutcome.GIVEN_UP
    assert promises.asked("m4", 4, 0.0) is LeaseOutcome.REFUSED, "m4 may be newer than what was heard"
    assert promises.asked("m2", 1, 10.0) is LeaseOutcome.GRANTED
    assert promises.heard(4, ["m3"], 11.0, gains_copies=False) == 10.0 + TIMES.promise_s
    assert promises.asked("m2", 3, 11.0) is LeaseOutcome.GIVEN_UP
    assert promises.heard(4, ["m3"], 20.0, gains_copies=False) == 20.0


def test_a_condemned_member_is_given_up_when_its_lease_has_ended() -> None:
    watch = MemberWatch(TIMES, 60.0)
    watch.joined("m1", 0.0)
    assert watch.heard("m1", 1.0, stalled_s=0.0) is LeaseOutcome.GRANTED
    watch.condemn("m1")
    assert watch.heard("m1", 2.0, stalled_s=0.0) is LeaseOutcome.REFUSED
    assert watch.look(1.0 + TIMES.promise_s - 0.01) == []
    assert watch.look(1.0 + TIMES.promise_s) == ["m1"]
    watch.left("m1")
    assert watch.heard("m1", 9.0, stalled_s=0.0) is LeaseOutcome.GIVEN_UP
    assert watch.is_condemned("m1")


def test_an_event_loop_that_stands_still_condemns_its_member() -> None:
    watch = MemberWatch(TIMES, 60.0)
    watch.joined("m1", 0.0)
    assert watch.heard("m1", 1.0, stalled_s=30.0) is LeaseOutcome.GRANTED
    assert watch.suspects() == {"m1"}
    assert watch.heard("m1", 2.0, stalled_s=60.0) is LeaseOutcome.REFUSED
    assert watch.look(1.0 + TIMES.promise_s) == ["m1"]


@pytest.mark.parametrize("silence_s", [0, -1.0, math.inf, math.nan])
def test_times_that_cannot_be(silence_s: float) -> None:
    with pytest.raises(ProgrammingError, match="member_silence_s"):
        LeaseTimes(silence_s)
