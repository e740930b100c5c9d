"""Copies of a partition under every order of messages, losses and retries: what was acknowledged is there, and copies
are equal.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from secateur.cluster.member import CountOut, Effect, Replica, ReplicaPhase, ReplicatedChange, SendChange

MEMBERS = ("m1", "m2", "m3", "m4")


def change(sequence: int, name: str = "") -> ReplicatedChange:
    return ReplicatedChange(sequence, name or f"c{sequence}", "upsert", b"")


def primary_of(*others: str) -> Replica:
    return Replica.first_primary(others)


def test_a_change_is_settled_once_all_copies_have_it() -> None:
    replica = primary_of("m2", "m3")
    made = ReplicatedChange(1, "a", "upsert", b"rows", published=0)
    to_m2, to_m3 = replica.append("a", "upsert", b"rows")
    assert (to_m2, to_m3) == (SendChange("m2", made, 0), SendChange("m3", made, 0))
    assert replica.confirmed(to_m2, 1, 0) == []
    assert (replica.settled, replica.unsettled) == (0, 1)
    assert replica.missing("m3") == (made,)
    assert replica.confirmed(to_m3, 1, 0) == []
    assert (replica.settled, replica.missing("m3")) == (1, ())


def test_a_copy_that_leaves_is_not_waited_for() -> None:
    replica = primary_of("m2", "m3")
    to_m2, _ = replica.append("a", "upsert", b"")
    replica.confirmed(to_m2, 1, 0)
    assert not replica.has_confirmed("m3", 1)
    replica.left("m3")
    assert replica.has_confirmed("m3", 1)
    assert replica.settled == 1


def test_a_backup_makes_changes_in_order_and_once() -> None:
    replica = Replica()
    assert replica.take(0, 0, [change(2)]) == ()  # behind a gap
    assert replica.take(0, 0, [change(1)]) == (change(1),)
    assert replica.take(0, 0, [change(1), change(2), change(3)]) == (change(2), change(3))
    assert replica.last == 3


def test_a_backup_keeps_what_is_not_settled() -> None:
    replica = Replica()
    replica.take(0, 0, [change(1), change(2), change(3)])
    replica.is_settled(0, 2)
    assert replica.tail(5, 0) == (change(3),)


def test_a_primary_of_an_earlier_term_is_not_listened_to() -> None:
    replica = Replica()
    assert replica.tail(7, 0) == ()
    assert replica.take(6, 0, [change(1)]) == ()
    assert replica.tail(6, 0) is None
    assert (replica.last, replica.term) == (0, 7)
    old = primary_of("m2")
    (send,) = old.append("a", "upsert", b"")
    assert old.confirmed(send, replica.last, replica.term) == [], "who is superseded repairs nothing"
    assert old.is_superseded
    assert not old.has_confirmed("m2", 1)


def test_a_primary_that_is_asked_by_its_successor_steps_down() -> None:
    replica = primary_of("m2")
    replica.append("a", "upsert", b"")
    assert replica.tail(3, 0) == (ReplicatedChange(1, "a", "upsert", b"", published=0),)
    assert replica.phase is ReplicaPhase.BACKUP


def test_who_takes_over_alone_is_the_primary_at_once() -> None:
    replica = Replica()
    replica.take(0, 0, [change(1)])
    assert replica.take_over(2, ()) == ()
    assert replica.is_open
    assert replica.unsettled == 0


def test_a_copy_without_what_it_would_have_to_give_is_out_of_sync() -> None:
    successor, other = Replica(), Replica()
    other.take(0, 3, [change(1), change(2), change(3)])  # settled, so not kept, yet the successor has none of them
    successor.take_over(2, ["m3"])
    with pytest.raises(LookupError, match="a copy has 3 changes and gave those up to 0"):
        successor.told("m3", other.last, other.tail(2, 0) or ())
    ahead = primary_of("m2")
    for name in "abc":
        (send,) = ahead.append(name, "upsert", b"")
    ahead.confirmed(send, 3, 0)
    (send,) = ahead.append("d", "upsert", b"")
    ahead._have["m2"] = 1  # as if it had lost what it confirmed
    reason = "a copy has 1 changes, those up to 3 are not kept any more"
    with pytest.raises(LookupError, match=reason):
        ahead.missing("m2")
    assert ahead.unanswered(send) == [CountOut("m2", reason)]


def test_a_copy_that_does_not_answer_is_sent_what_it_lacks_after_growing_pauses() -> None:
    replica = primary_of("m2")
    (first,) = replica.append("a", "upsert", b"")
    (second,) = replica.append("b", "upsert", b"")
    (repair,) = replica.unanswered(second)
    assert repair == SendChange("m2", first.change, 0, is_repair=True)
    assert replica.unanswered(first) == [], "one repair sends everything"
    pauses = []
    for _ in range(7):
        (repair,) = replica.unanswered(repair)
        pauses.append(repair.pause_s)
    assert pauses == [0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5]
    (repair,) = replica.confirmed(repair, 1, 0)
    assert repair == SendChange("m2", second.change, 0, is_repair=True)
    assert replica.is_repairing
    assert replica.confirmed(repair, 2, 0) == []
    assert not replica.is_repairing
    assert replica.unsettled == 0


def test_a_copy_that_cannot_make_a_change_is_counted_out() -> None:
    replica = primary_of("m2")
    (send,) = replica.append("a", "upsert", b"")
    assert replica.refused(send, "no memory") == [CountOut("m2", "no memory")]
    assert replica.is_out_of_sync("m2")
    replica.left("m2")
    assert replica.unsettled == 0
    assert replica.refused(send, "no memory") == []


def test_a_copy_that_is_built_again_is_not_the_one_that_was_counted_out() -> None:
    replica = primary_of("m2")
    (send,) = replica.append("a", "upsert", b"")
    replica.refused(send, "no memory")
    replica.left("m2")  # the topology says it; the controller's answer is still on its way
    replica.learn("m2")
    replica.count("m2")
    assert not replica.is_out_of_sync("m2")


class TestLearner:
    """A member that builds a copy is sent every change, and no write waits for it until it is counted."""

    def test_writes_do_not_wait_for_it(self) -> None:
        replica = primary_of("m2")
        replica.learn("m3")
        to_m2, to_m3 = replica.append("a", "upsert", b"")
        assert (to_m2.member, to_m3.member) == ("m2", "m3")
        assert replica.confirmed(to_m2, 1, 0) == []
        assert replica.settled == 1
        assert replica.others == ("m2",)
        assert not replica.is_level("m3")
        assert replica.kept == (to_m3.change,), "what it lacks is kept"
        assert replica.confirmed(to_m3, 1, 0) == []
        assert replica.is_level("m3")
        assert replica.settled == 1

    def test_what_is_settled_is_dropped_once_it_has_it(self) -> None:
        replica = primary_of()
        replica.learn("m3")
        (send,) = replica.append("a", "upsert", b"")
        assert (replica.settled, len(replica.kept)) == (1, 1)
        replica.confirmed(send, 1, 0)
        assert replica.kept == ()

    def test_from_when_it_is_counted_writes_wait_for_it(self) -> None:
        replica = primary_of("m2")
        replica.learn("m3")
        replica.count("m3")
        to_m2, to_m3 = replica.append("a", "upsert", b"")
        replica.confirmed(to_m2, 1, 0)
        assert replica.settled == 0
        replica.confirmed(to_m3, 1, 0)
        assert replica.settled == 1
        replica.left("m3")
        assert replica.others == ("m2",)

    def test_it_is_sent_what_came_before_it_could_take_it(self) -> None:
        """The first change arrives before the rows that it belongs to."""
        replica, copy = primary_of(), Replica()
        replica.append("a", "upsert", b"")
        replica.learn("m3")
        (send,) = replica.append("b", "upsert", b"")
        assert copy.take(0, 1, [send.change]) == (), "it does not know yet from where it goes on"
        (repair,) = replica.confirmed(send, copy.last, 0)
        assert repair.change == send.change
        built = Replica.built(0, 1, 1, ())
        assert built.take(0, 1, [repair.change]) == (send.change,)
        assert replica.confirmed(repair, built.last, 0) == []
        assert replica.is_level("m3")

    def test_one_that_fails_is_forgotten_and_nobody_is_counted_out(self) -> None:
        replica = primary_of("m2")
        replica.learn("m3")
        _, to_m3 = replica.append("a", "upsert", b"")
        assert replica.refused(to_m3, "no memory") == []
        assert not replica.is_learner("m3")

    def test_one_that_falls_too_far_behind_is_forgotten(self) -> None:
        replica = primary_of()
        replica.learn("m3")
        for _ in range(50_000):
            replica.append("a", "upsert", b"")
        assert replica.is_learner("m3")
        replica.append("a", "upsert", b"")
        assert not replica.is_learner("m3")
        assert replica.kept == ()

    def test_a_copy_of_a_primary_keeps_what_that_keeps(self) -> None:
        """Its successor may have to give other copies what they lack."""
        primary = primary_of("m2")
        for name in "abc":
            primary.append(name, "upsert", b"")
        built = Replica.built(primary.term, primary.settled, primary.last, primary.kept)
        assert built.tail(5, 0) == primary.kept
        assert (built.last, built.settled) == (3, 0)

    def test_a_primary_that_steps_down_forgets_it(self) -> None:
        replica = primary_of("m2")
        replica.learn("m3")
        assert replica.tail(7, 0) == ()
        assert not replica.is_learner("m3")


def test_a_change_is_sent_in_the_term_in_which_it_was_made() -> None:
    """The successor may ask between the two: then the change must not look like one of its own."""
    old, other = primary_of("m2"), Replica()
    (send,) = old.append("a", "upsert", b"")
    assert old.tail(4, 0) == (send.change,)
    assert other.tail(4, 0) == ()
    assert send.term == 0
    assert other.take(send.term, 0, (send.change,)) == ()


# -- every interleaving


@dataclass(frozen=True)
class Message:
    """``copy``, ``copied``, ``ask`` or ``told``, from one member to another; the first two belong to a ``send``."""

    kind: str
    source: str
    target: str
    term: int
    changes: tuple[ReplicatedChange, ...] = ()
    last: int = 0
    settled: int = 0
    send: SendChange | None = None


@dataclass
class Node:
    """A member: the machine, and the rows, here the names of the changes in the order in which they were made."""

    replica: Replica
    rows: list[str] = field(default_factory=list)


@dataclass
class World:
    """The state of a simulated cluster with one partition.

    What the real members do about the machine's answers is done here on a network that can be stopped
    anywhere: messages between two members keep their order, as on a connection, and those to or from a lost member may
    arrive before it is lost, or never.
    """

    nodes: dict[str, Node]
    owners: tuple[str, ...]
    """Living copies, the primary first."""
    term: int = 0
    network: tuple[Message, ...] = ()
    asked: tuple[tuple[str, str], ...] = ()
    """Changes that were asked for and not acknowledged yet: name, and the member that was asked, or "" when the client
    has to ask again.
    """
    acknowledged: frozenset[str] = frozenset()
    to_write: tuple[str, ...] = ()
    losses: int = 0
    resets: int = 0
    told_of_loss: frozenset[str] = frozenset()
    """Members that have heard of the present owners."""

    def copy(self) -> World:
        nodes = {name: Node(clone(node.replica), list(node.rows)) for name, node in self.nodes.items()}
        return replace(self, nodes=nodes)

    def key(self) -> object:
        nodes = tuple((name, fingerprint(node.replica), tuple(node.rows)) for name, node in sorted(self.nodes.items()))
        return (
            nodes,
            self.owners,
            self.term,
            self.network,
            self.asked,
            self.acknowledged,
            self.to_write,
            self.losses,
            self.resets,
            self.told_of_loss,
        )

    # -- what may happen next

    def steps(self) -> Iterator[World]:
        if self.to_write:
            world = self.copy()
            world.asked = (*world.asked, (self.to_write[0], ""))
            world.to_write = self.to_write[1:]
            yield world
        for name, member in self.asked:
            if not member or member not in self.nodes:
                world = self.copy()
                world.asked = tuple((other, world.owners[0] if other == name else at) for other, at in self.asked)
                yield world  # the client asks, or asks again, under the same id
            elif self.nodes[member].replica.is_open:
                yield from self.written(name, member)
        firsts: dict[tuple[str, str], Message] = {}
        for message in self.network:
            firsts.setdefault((message.source, message.target), message)
        for message in firsts.values():
            world = self.copy()
            world.network = without(world.network, message)
            if message.target in world.nodes:
                world.arrive(message)
            yield world
        for message in firsts.values():
            if (
                self.resets
                and message.kind in ("copy", "copied")
                and {message.source, message.target} <= self.nodes.keys()
            ):
                # a connection breaks between living members: what was on its way is lost, and sent again by who misses
                # the answer
                world = self.copy()
                world.resets -= 1
                ends = {message.source, message.target}
                lost = [other for other in self.network if {other.source, other.target} == ends]
                world.network = tuple(other for other in self.network if other not in lost)
                for other in lost:
                    sender = other.source if other.kind == "copy" else other.target
                    if other.send is not None:
                        world.carry_out(sender, world.nodes[sender].replica.unanswered(other.send))
                yield world
        if self.losses and len(self.owners) > 1:
            for victim in {self.owners[0], self.owners[-1]}:
                world = self.copy()
                world.losses -= 1
                del world.nodes[victim]
                world.owners = tuple(name for name in self.owners if name != victim)
                world.term += 1
                world.told_of_loss = frozenset()
                # What the lost member has sent may still arrive, or be lost with it: cut the connection here, or later.
                yield world
                cut = world.copy()
                cut.network = tuple(message for message in cut.network if message.source != victim)
                yield cut
        for name in self.owners:
            if name not in self.told_of_loss and self.term:
                world = self.copy()
                world.told_of_loss = world.told_of_loss | {name}
                world.hear_of_owners(name)
                yield world

    def written(self, name: str, member: str) -> Iterator[World]:
        node = self.nodes[member]
        if name not in node.rows:
            world = self.copy()
            node = world.nodes[member]
            world.carry_out(member, node.replica.append(name, "upsert", b""))
            node.rows.append(name)
            yield world
            return
        sequence = node.rows.index(name) + 1
        if node.replica.is_open and all(node.replica.has_confirmed(other, sequence) for other in node.replica.others):
            world = self.copy()
            world.acknowledged = world.acknowledged | {name}
            world.asked = tuple(entry for entry in world.asked if entry[0] != name)
            yield world

    # -- what members do

    def send(self, message: Message) -> None:
        self.network = (*self.network, message)

    def hear_of_owners(self, name: str) -> None:
        node = self.nodes[name]
        others = [owner for owner in self.owners if owner != name]
        if self.owners[0] != name:
            return
        if node.replica.phase is ReplicaPhase.BACKUP:
            for other in node.replica.take_over(self.term, others):
                self.send(Message("ask", name, other, self.term, last=node.replica.last))
        else:
            was_open = node.replica.is_open
            for other in node.replica.others:
                if other not in self.owners:
                    node.replica.left(other)
            if not was_open and node.replica.is_open:
                self.carry_out(name, node.replica.repair())

    def arrive(self, message: Message) -> None:
        node, source = self.nodes[message.target], message.source
        replica = node.replica
        match message.kind:
            case "copy":
                node.rows += [made.change_id for made in replica.take(message.term, message.settled, message.changes)]
                copied = Message("copied", message.target, source, replica.term, last=replica.last, send=message.send)
                self.send(copied)
            case "ask":
                found = replica.tail(message.term, message.last)
                if found is not None:
                    self.send(Message("told", message.target, source, message.term, found, replica.last))
            case "told" if message.term == replica.term:
                was_open = replica.is_open
                node.rows += [made.change_id for made in replica.told(source, message.last, message.changes)]
                if replica.is_open and not was_open:
                    self.carry_out(message.target, replica.repair())
            case "copied":
                assert message.send is not None
                self.carry_out(message.target, replica.confirmed(message.send, message.last, message.term))
            case _:
                pass

    def carry_out(self, name: str, effects: Sequence[Effect]) -> None:
        """What the driver does, but for pauses."""
        for effect in effects:
            assert isinstance(effect, SendChange), effect
            settled = self.nodes[name].replica.settled
            self.send(Message("copy", name, effect.member, effect.term, (effect.change,), settled=settled, send=effect))

    # -- what has to hold

    def check(self) -> None:
        for name, node in self.nodes.items():
            assert len(node.rows) == len(set(node.rows)), f"{name} has made a change twice: {node.rows}"
            assert node.replica.last == len(node.rows)
        for name in self.acknowledged:
            for owner in self.owners:
                assert name in self.nodes[owner].rows, f"{name} was acknowledged, and the copy of {owner} is without it"

    def is_still(self, following: list[World]) -> bool:
        """Whether nothing goes on by itself any more."""
        key = self.key()
        return all(step.losses < self.losses or step.resets < self.resets or step.key() == key for step in following)

    def check_end(self) -> None:
        """Nothing is on its way any more."""
        assert len({tuple(self.nodes[owner].rows) for owner in self.owners}) == 1, "copies differ"
        assert self.nodes[self.owners[0]].replica.is_open, "the partition takes no writes"
        assert not self.asked, "a write is never acknowledged"


def beginning(copies: int, writes: int, losses: int, resets: int) -> World:
    names = MEMBERS[:copies]
    nodes = {name: Node(Replica.first_primary(names[1:]) if name == names[0] else Replica()) for name in names}
    return World(nodes, names, to_write=tuple("abcdef"[:writes]), losses=losses, resets=resets)


def clone(replica: Replica) -> Replica:
    other = Replica()
    for name in Replica.__slots__:
        value = getattr(replica, name)
        setattr(other, name, value.copy() if hasattr(value, "copy") else value)
    return other


def fingerprint(replica: Replica) -> object:
    return (
        replica.phase,
        replica.term,
        replica.last,
        replica.settled,
        replica.is_superseded,
        tuple(replica._kept),
        tuple(sorted(replica._have.items())),
        tuple(sorted(replica._asked)),
        tuple(sorted(replica._repairs.items())),
    )


def without(messages: tuple[Message, ...], message: Message) -> tuple[Message, ...]:
    position = messages.index(message)
    return messages[:position] + messages[position + 1 :]


@pytest.mark.parametrize(
    ("copies", "writes", "losses", "resets"),
    [
        pytest.param(2, 2, 1, 1, id="BACKUPS 1, two writes, one loss, one reset"),
        pytest.param(3, 1, 2, 0, id="BACKUPS 2, one write, two losses"),
        pytest.param(3, 1, 1, 1, id="BACKUPS 2, one write, one loss, one reset"),
        pytest.param(
            3, 2, 1, 0, id="BACKUPS 2, two writes, one loss", marks=[pytest.mark.slow, pytest.mark.timeout(1800)]
        ),
    ],
)
def test_law_in_every_interleaving_acknowledged_writes_are_on_all_copies_and_copies_become_equal(
    copies: int, writes: int, losses: int, resets: int
) -> None:
    seen: set[object] = set()
    waiting, ends = [beginning(copies, writes, losses, resets)], 0
    while waiting:
        world = waiting.pop()
        key = world.key()
        if key in seen:
            continue
        seen.add(key)
        world.check()
        following = list(world.steps())
        if world.is_still(following):
            world.check_end()
            ends += 1
        waiting += following
    assert ends
    assert len(seen) > 100


@pytest.mark.parametrize("seed", range(40))
def test_law_in_random_interleavings_of_many_writes_and_losses(seed: int) -> None:
    chance = random.Random(seed)
    world = beginning(copies=chance.choice([3, 4]), writes=4, losses=chance.choice([1, 2, 3]), resets=2)
    for _ in range(10_000):
        world.check()
        key = world.key()
        following = [step for step in world.steps() if step.key() != key]
        if not following:
            break
        world = chance.choice(following)
    world.check_end()
    assert world.acknowledged == frozenset("abcd")
