"""Moves of copies lead from any owners to balanced ones, with no copy fewer on the way."""

from __future__ import annotations

import random

import numpy as np
import pytest

from secateur.cluster.controller import (
    CopiesMoved,
    CopiesOfGroup,
    CopyLost,
    Leaving,
    MemberJoined,
    MemberLost,
    Move,
    PrimariesMoved,
    advance,
    empty,
    moves_of,
)
from secateur.errors import InternalError
from secateur.partitioning.topology import MemberAddress, Ownership, Topology, assign

GROUPS = {"hash 7": (7, 2), "hash 40": (40, 3), "hash 1": (1, 1)}
WANTED = {
    group: CopiesOfGroup(copies, np.arange(partitions, dtype=np.int32))
    for group, (partitions, copies) in GROUPS.items()
}


def address(number: int, nodes: int) -> MemberAddress:
    return MemberAddress(f"m{number}", "127.0.0.1", number, f"node {number % nodes}")


def cluster(members: int, nodes: int) -> Topology:
    addresses = tuple(address(number, nodes) for number in range(1, members + 1))
    ids = [member.id for member in addresses]
    owners = {
        group: assign(partitions, ids, min(copies, members), nodes=[member.node for member in addresses])
        for group, (partitions, copies) in GROUPS.items()
    }
    return Topology(1, addresses, owners)


def living(topology: Topology, group: str) -> list[list[str]]:
    ownership = topology.owners[group]
    return [
        [holder for holder in ownership.holders(partition) if topology.has_member(holder)]
        for partition in range(ownership.partitions)
    ]


def check_copies_have_come_first(topology: Topology, move: Move) -> None:
    """Whoever builds a copy copies from the primary, and does not have one yet."""
    if isinstance(move, CopiesMoved):
        for partition in move.partitions:
            holders = living(topology, move.group)[partition]
            assert holders[0] == move.source
            assert move.target not in holders


def rebalanced(topology: Topology, draining: frozenset[str] = frozenset()) -> Topology:
    """Carry out all moves, one after the other, deciding again after each."""
    for _ in range(400):
        moves = moves_of(topology, WANTED, Leaving(draining))
        if not moves:
            return topology
        check_copies_have_come_first(topology, moves[0])
        following = advance(topology, moves[0])
        for group in GROUPS:
            for partition, (before, after) in enumerate(
                zip(living(topology, group), living(following, group), strict=True)
            ):
                enough = min(WANTED[group].copies, len(topology.members) - len(draining))
                assert len(after) >= min(len(before), enough), f"partition {partition} of {group} has lost a copy"
                assert len(set(following.owners[group].holders(partition))) == following.owners[group].replicas
        topology = following
    raise AssertionError(f"moves without end: {moves_of(topology, WANTED, Leaving(draining))[:3]}")


def check_balance(topology: Topology, draining: frozenset[str] = frozenset()) -> None:
    members = [member.id for member in topology.members if member.id not in draining]
    for group, (partitions, copies) in GROUPS.items():
        there = living(topology, group)
        kept = [holders for holders in there if holders]
        assert all(len(holders) == min(copies, len(members)) for holders in kept)
        assert not draining.intersection(*[set().union(*kept)] if kept else [set[str]()])
        if len(kept) == partitions:
            primaries = [sum(holders[0] == member for holders in kept) for member in members]
            assert max(primaries) - min(primaries) <= max(2, 0.2 * partitions / len(members))


@pytest.mark.parametrize("seed", range(60))
def test_losses_and_newcomers_end_in_balance(seed: int) -> None:
    rng = random.Random(seed)
    nodes = rng.choice([1, 2, 20])
    number = rng.randint(1, 5)
    topology = cluster(number, nodes)
    for _ in range(6):
        match rng.choice(["lose", "join", "join", "drain", "out of sync", "some moves"]):
            case "lose" if len(topology.members) > 1:
                topology = advance(topology, MemberLost(rng.choice(topology.member_ids)))
            case "join":
                number += 1
                topology = advance(topology, MemberJoined(address(number, nodes)))
            case "drain" if len(topology.members) > 1:
                draining = frozenset({rng.choice(topology.member_ids)})
                topology = rebalanced(topology, draining)
                check_balance(topology, draining)
                topology = advance(topology, MemberLost(*draining))
            case "out of sync":
                group = rng.choice(list(GROUPS))
                partition = rng.randrange(GROUPS[group][0])
                holder = rng.choice(topology.owners[group].holders(partition))
                topology = advance(topology, CopyLost(group, partition, holder))
            case _:
                for move in moves_of(topology, WANTED)[: rng.randint(0, 4)]:
                    try:
                        topology = advance(topology, move)
                    except InternalError:
                        break  # it was decided for other owners: an earlier move of the same partition
    topology = rebalanced(topology)
    check_balance(topology)
    assert moves_of(topology, WANTED) == []


def test_a_member_can_leave_when_it_owns_nothing() -> None:
    topology = cluster(4, 4)
    assert empty(topology, WANTED, {"m1", "m3"}) == ()
    assert empty(rebalanced(topology, frozenset({"m1", "m3"})), WANTED, {"m1", "m3"}) == ("m1", "m3")
    assert empty(topology, {}, {"m1", "m3"}) == ("m1", "m3"), "there are no tables"


def test_members_that_all_are_to_leave_keep_what_they_own() -> None:
    topology = cluster(2, 2)
    assert moves_of(topology, WANTED, Leaving(frozenset({"m1", "m2"}))) == []
    assert empty(topology, WANTED, {"m1", "m2"}) == ()


def test_a_member_that_may_come_back_with_the_last_copy_is_not_let_go() -> None:
    topology = advance(cluster(3, 3), MemberLost("m3"))
    assert empty(topology, {"hash 40": WANTED["hash 40"]}, {"m3"}) == ("m3",)
    alone = advance(cluster(1, 1), MemberJoined(address(2, 1)))
    assert empty(advance(alone, MemberLost("m1")), WANTED, {"m1"}) == ()


def test_nothing_moves_in_balance() -> None:
    assert moves_of(cluster(3, 3), WANTED) == []


def test_partitions_of_dropped_ranges_do_not_count() -> None:
    topology = cluster(2, 2)
    (primaries, *_) = topology.owners["hash 40"].owners
    live = np.flatnonzero(primaries == primaries[0]).astype(np.int32)  # all that is left is of one member
    wanted = {"hash 40": CopiesOfGroup(2, live)}
    (move,) = moves_of(topology, wanted)
    assert isinstance(move, PrimariesMoved)
    assert len(move.moves) == len(live) // 2
    assert {partition for partition, _ in move.moves} <= set(live.tolist())
    assert moves_of(advance(topology, move), wanted) == []


def test_a_small_difference_moves_nothing() -> None:
    topology = cluster(3, 3)
    live = np.arange(1, 40, dtype=np.int32)
    assert moves_of(topology, {"hash 40": CopiesOfGroup(3, live)}) == []


def test_copies_move_to_other_nodes() -> None:
    """A node comes to a cluster whose copies are all on one."""
    topology = cluster(4, 1)
    topology = rebalanced(advance(advance(topology, MemberLost("m4")), MemberJoined(address(5, 20))))
    node_of = {member.id: member.node for member in topology.members}
    assert all(len({node_of[holder] for holder in holders}) == 2 for holders in living(topology, "hash 7"))


def test_partitions_with_fewer_copies_come_first() -> None:
    topology = advance(cluster(4, 4), MemberLost("m1"))
    topology = advance(topology, MemberLost("m2"))
    topology = advance(topology, MemberJoined(address(9, 4)))
    moves = [move for move in moves_of(topology, WANTED) if isinstance(move, CopiesMoved)]
    copies = [min(len(living(topology, move.group)[partition]) for partition in move.partitions) for move in moves]
    assert copies == sorted(copies)
    assert copies[0] == 1


def test_a_newcomer_gets_its_share_and_no_more_moves() -> None:
    before = cluster(3, 3)
    after = rebalanced(advance(before, MemberJoined(address(4, 4))))
    moved = np.sum(before.owners["hash 40"].owners[0] != renumbered(after.owners["hash 40"], before)[0])
    assert moved == 10


def renumbered(ownership: Ownership, like: Topology) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The owners by the numbers that members have in another topology; one for all that it does not have."""
    members = like.owners["hash 40"].members
    numbers = [members.index(member) if member in members else 99 for member in ownership.members]
    return np.array(numbers, dtype=np.int64)[ownership.owners.astype(np.int64)]


def test_a_copy_takes_the_place_of_the_one_that_it_replaces() -> None:
    topology = advance(cluster(3, 3), MemberJoined(address(4, 4)))
    primary, backup, last = topology.owners["hash 40"].holders(0)
    topology = advance(topology, CopiesMoved("hash 40", primary, "m4", ((0, primary),)))
    assert topology.owners["hash 40"].holders(0) == ("m4", backup, last)


def test_a_member_owns_a_partition_once() -> None:
    topology = cluster(3, 3)
    primary = topology.owners["hash 7"].primary(0)
    with pytest.raises(InternalError, match="is an owner already"):
        advance(topology, CopiesMoved("hash 7", primary, primary, ((0, None),)))
