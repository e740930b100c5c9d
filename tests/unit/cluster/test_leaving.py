"""Members that are to leave get nothing, and those that are drained never do."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from secateur.cluster.controller import (
    CopiesOfGroup,
    Leaving,
    MemberLost,
    RangesChanged,
    TableCreated,
    advance,
    empty,
    moves_of,
)
from secateur.errors import PartitionLostError
from secateur.partitioning.schemes import (
    AddRange,
    HashComponent,
    PartitionScheme,
    RangeSpec,
    alter_ranges,
    build_scheme,
)
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.topology import MemberAddress, Topology, assign
from secateur.partitioning.types import SqlType, TypeKind

PARTITIONS = 24
BIGINT = SqlType(TypeKind.BIGINT)


def members(number: int) -> tuple[MemberAddress, ...]:
    return tuple(MemberAddress(f"m{index + 1}", "127.0.0.1", index + 1) for index in range(number))


def owned(topology: Topology, member_id: str) -> set[tuple[str, int]]:
    return {
        (group, partition)
        for group, ownership in topology.owners.items()
        for partition in range(ownership.partitions)
        if member_id in ownership.holders(partition)
    }


def test_a_wish_takes_the_place_of_the_one_before() -> None:
    leaving = Leaving().asked(["m2", "m3"]).asked(["m3", "m4"])
    assert leaving == Leaving(frozenset({"m3", "m4"}))


def test_what_is_drained_stays_so_whatever_is_wished() -> None:
    leaving = Leaving().asked(["m2", "m3"]).found_empty(["m3"], ["m1", "m2", "m3"])
    assert leaving == Leaving(frozenset({"m2"}), frozenset({"m3"}))
    assert leaving.asked([]) == Leaving(frozenset(), frozenset({"m3"}))
    assert leaving.asked(["m3", "m1"]) == Leaving(frozenset({"m1"}), frozenset({"m3"}))


def test_only_who_is_to_leave_is_drained() -> None:
    """Whoever owns nothing because it is new does not leave."""
    assert Leaving().asked(["m2"]).found_empty(["m2", "m4"], ["m1", "m2", "m4"]).drained == {"m2"}


def test_nobody_waits_for_a_member_that_has_ended_with_nothing() -> None:
    assert Leaving().asked(["m2", "m3"]).found_empty(["m3"], ["m1", "m2"]) == Leaving(frozenset({"m2"}))


def test_a_member_that_may_come_back_is_still_to_leave() -> None:
    leaving = Leaving(frozenset({"m2"}), frozenset({"m3"}))
    assert leaving.ended(["m2", "m3"]) == Leaving(frozenset({"m2"}))


@pytest.mark.parametrize("seed", range(40))
def test_law_a_drained_member_gets_nothing_until_it_has_ended(seed: int) -> None:
    """Members are asked to leave and to stay again, tables come, members are lost, copies move one batch at a time."""
    rng = random.Random(seed)
    there = members(rng.randint(2, 5))
    ids, group = [member.id for member in there], "hash 24"
    topology = Topology(1, there, {group: assign(PARTITIONS, ids, min(2, len(ids)))})
    wanted = {group: CopiesOfGroup(2, np.arange(PARTITIONS, dtype=np.int32))}
    leaving = Leaving()
    for _ in range(60):
        living = [member.id for member in topology.members]
        match rng.choice(["ask", "move", "move", "move", "look", "lose"]):
            case "ask":
                leaving = leaving.asked(rng.sample(living, rng.randint(0, len(living))))
            case "move":
                for move in moves_of(topology, wanted, leaving)[:1]:
                    topology = advance(topology, move, leaving)
            case "look":
                leaving = leaving.found_empty(empty(topology, wanted, leaving.draining), living)
            case "lose" if rng.random() < 0.2:
                lost = rng.choice(living)
                topology, leaving = advance(topology, MemberLost(lost), leaving), leaving.ended([lost])
        assert not any(owned(topology, member_id) for member_id in leaving.drained)
        if not topology.members:
            return


def table(scheme: PartitionScheme) -> TableDef:
    return TableDef("t", 1, (Column("id", BIGINT, nullable=False),), ("id",), scheme, backups=1)


def created(there: Topology, leaving: Leaving) -> Topology:
    scheme = PartitionScheme(hashes=(HashComponent(("id",), PARTITIONS),), types=(("id", BIGINT),))
    return advance(there, TableCreated(table(scheme)), leaving)


def test_a_new_table_is_given_to_members_that_are_to_leave_only_if_there_are_no_others() -> None:
    topology = Topology(1, members(2), {})
    assert not owned(created(topology, Leaving(frozenset({"m2"}))), "m2")
    assert owned(created(topology, Leaving(frozenset({"m1", "m2"}))), "m2")
    one_is_drained = created(topology, Leaving(frozenset({"m1"}), frozenset({"m2"})))
    assert owned(one_is_drained, "m1")
    assert not owned(one_is_drained, "m2")


def test_where_all_that_are_left_are_drained_nothing_can_be_created() -> None:
    topology, leaving = Topology(1, members(2), {}), Leaving(drained=frozenset({"m1", "m2"}))
    with pytest.raises(PartitionLostError, match="no member is left but m1, m2, which own nothing any more"):
        created(topology, leaving)
    assert moves_of(topology, {}, leaving) == []


def test_new_ranges_have_no_copy_on_a_drained_member() -> None:
    """Also where members are fewer than copies, so that those that do not stay fill up."""
    spec = RangeSpec((0,), (1,))
    known: Any = {"types": {"id": BIGINT}, "primary_key": ("id",), "table": "t"}
    before = build_scheme(hashes=(), range_columns=("id",), ranges=(spec,), **known)
    after = alter_ranges(before, (AddRange(RangeSpec((1,), (2,))),), **known)
    topology = advance(Topology(1, members(2), {}), TableCreated(table(before)))
    (backup,) = {"m1", "m2"} - {topology.ownership(before.affinity_group()).primary(0)}
    grown = advance(topology, RangesChanged(before, after), Leaving(drained=frozenset({backup})))
    assert after.affinity_group() not in {group for group, _ in owned(grown, backup)}
