"""Membership: what a join, a loss and a new table do to the topology."""

from __future__ import annotations

import pytest
from msgspec import structs

from secateur.cluster.controller import (
    MemberJoined,
    MemberLost,
    MemberReturned,
    OwnersForgotten,
    RangesChanged,
    TableCreated,
    absent_owners,
    advance,
    group_after,
    group_of_new,
)
from secateur.errors import PartitionLostError, ProgrammingError
from secateur.partitioning.schemes import (
    AddRange,
    DropNamed,
    HashComponent,
    PartitionScheme,
    RangeChange,
    RangeSpec,
    alter_ranges,
    build_scheme,
)
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.partitioning.types import SqlType, TypeKind, parse_type

BIGINT = SqlType(TypeKind.BIGINT)
SCHEME = PartitionScheme(hashes=(HashComponent(("id",), 12),), types=(("id", BIGINT),))


def table(*, backups: int = 1, replicated: bool = False) -> TableDef:
    scheme = PartitionScheme() if replicated else SCHEME
    return TableDef("t", 1, (Column("id", BIGINT, nullable=False),), ("id",), scheme, backups, replicated)


def cluster_of(count: int) -> Topology:
    topology = Topology(1, (), {})
    for index in range(count):
        topology = advance(topology, MemberJoined(MemberAddress(f"m{index + 1}", "127.0.0.1", 7000 + index)))
    return topology


def test_every_change_grows_the_version() -> None:
    topology = cluster_of(3)
    assert topology.version == 4
    assert topology.member_ids == ("m1", "m2", "m3")
    assert advance(topology, MemberLost("m2")).version == 5


def test_an_id_joins_once() -> None:
    with pytest.raises(ProgrammingError, match=r"m2 is in the cluster already, at 127\.0\.0\.1:7001"):
        advance(cluster_of(2), MemberJoined(MemberAddress("m2", "127.0.0.1", 9)))


def test_the_loss_of_an_unknown_member_changes_nothing() -> None:
    topology = cluster_of(2)
    assert advance(topology, MemberLost("m9")) is topology


def test_tables_of_one_scheme_share_owners() -> None:
    first = advance(cluster_of(3), TableCreated(table()))
    assert advance(first, TableCreated(table())) is first


def test_a_replicated_table_needs_no_owners() -> None:
    topology = cluster_of(3)
    assert advance(topology, TableCreated(table(replicated=True))) is topology


def test_a_table_with_more_backups_than_its_co_located_tables_has_their_owners_at_first() -> None:
    topology = advance(cluster_of(3), TableCreated(table(backups=1)))
    assert advance(topology, TableCreated(table(backups=2))) is topology


def test_forgotten_owners_bind_nobody() -> None:
    before = advance(advance(cluster_of(3), TableCreated(table(backups=0))), MemberLost("m2"))
    forgotten = advance(before, OwnersForgotten(SCHEME.affinity_group()))
    assert (forgotten.version, forgotten.owners) == (before.version + 1, {})
    assert advance(forgotten, OwnersForgotten(SCHEME.affinity_group())) is forgotten
    ownership = advance(forgotten, TableCreated(table(backups=1))).ownership(SCHEME.affinity_group())
    assert (ownership.replicas, ownership.members) == (2, ("m1", "m3"))


TYPES = {"day": parse_type("INTEGER"), "id": BIGINT}


def days(*ranges: RangeSpec) -> PartitionScheme:
    return build_scheme(
        hashes=[HashComponent(("id",), 4)],
        range_columns=["day"],
        ranges=ranges,
        types=TYPES,
        primary_key=("day", "id"),
        table="t",
    )


def changed(scheme: PartitionScheme, *changes: RangeChange) -> PartitionScheme:
    return alter_ranges(scheme, changes, types=TYPES, primary_key=("day", "id"), table="t")


def with_table(topology: Topology, scheme: PartitionScheme) -> Topology:
    return advance(topology, TableCreated(TableDef("t", 1, (), ("day", "id"), scheme, 1)))


DAYS = days(RangeSpec((1,), (2,)), RangeSpec((2,), (3,), "two"))


def test_new_ranges_get_owners_and_old_ones_keep_theirs() -> None:
    before = with_table(cluster_of(3), DAYS)
    scheme = changed(
        DAYS,
        DropNamed("two"),
        AddRange(RangeSpec((3,), (4,))),
        AddRange(RangeSpec((4,), (5,), hashes=(HashComponent(("id",), 8),))),
    )
    scheme = scheme.in_group(group_after(before, DAYS, scheme, (), "1.2"))
    after = advance(before, RangesChanged(DAYS, scheme))
    assert after.version == before.version + 1
    old, new = after.ownership(DAYS.affinity_group()), after.ownership(scheme.structure())
    assert [new.holders(p) for p in range(8)] == [old.holders(p) for p in range(8)]
    live = scheme.live_partitions().tolist()
    counts = [sum(new.primary(p) == member for p in live) for member in after.member_ids]
    assert max(counts) - min(counts) <= 1
    assert all(len(set(new.holders(p))) == 2 for p in live)
    forgotten = advance(after, OwnersForgotten(DAYS.affinity_group()))
    assert set(forgotten.owners) == {scheme.structure()}


def test_tables_that_change_alike_stay_together() -> None:
    before = with_table(cluster_of(3), DAYS)
    scheme = changed(DAYS, AddRange(RangeSpec((3,), (4,))))
    first = advance(before, RangesChanged(DAYS, scheme))
    assert group_after(first, DAYS, scheme, {scheme.structure()}, "2.2") == scheme.structure()
    assert advance(first, RangesChanged(DAYS, scheme)) is first


def test_a_table_that_comes_to_the_ranges_of_another_by_another_way_is_not_beside_it() -> None:
    """Its rows are elsewhere, because the members were others when it was created."""
    scheme = changed(DAYS, AddRange(RangeSpec((3,), (4,))))
    early = with_table(cluster_of(2), DAYS)
    late = with_table(advance(early, MemberJoined(MemberAddress("m3", "127.0.0.1", 7002))), scheme)
    group = group_after(late, DAYS, scheme, {scheme.structure()}, "2.2")
    assert group == f"{scheme.structure()} #2.2"
    after = advance(late, RangesChanged(DAYS, scheme.in_group(group)))
    assert [after.ownership(group).holders(p) for p in range(8)] == [
        early.ownership(DAYS.structure()).holders(p) for p in range(8)
    ]
    assert {member for p in range(8, 12) for member in after.ownership(group).holders(p)} >= {"m3"}


@pytest.mark.parametrize("replicated", [False, True])
def test_a_table_needs_a_member(replicated: bool) -> None:
    with pytest.raises(PartitionLostError, match="no member is left"):
        advance(cluster_of(0), TableCreated(table(replicated=replicated)))


def test_a_lone_member_has_no_backups() -> None:
    topology = advance(cluster_of(1), TableCreated(table(backups=1)))
    assert topology.ownership(SCHEME.affinity_group()).replicas == 1


@pytest.mark.parametrize("lost", ["m1", "m2", "m3"])
def test_a_lost_member_is_succeeded_by_its_backups_alone(lost: str) -> None:
    topology = advance(cluster_of(3), TableCreated(table(backups=1)))
    before = topology.ownership(SCHEME.affinity_group())
    after = advance(topology, MemberLost(lost)).ownership(SCHEME.affinity_group())
    for partition in range(12):
        primary, backup = before.holders(partition)
        assert after.primary(partition) == (backup if primary == lost else primary)
        assert set(after.holders(partition)) == {primary, backup}


def test_a_partition_without_copies_keeps_naming_the_lost_member() -> None:
    topology = advance(cluster_of(2), TableCreated(table(backups=0)))
    group = SCHEME.affinity_group()
    orphans = topology.ownership(group).partitions_of("m1")
    after = advance(topology, MemberLost("m1"))
    assert orphans
    assert after.ownership(group).partitions_of("m1") == orphans
    assert after.member_ids == ("m2",)


def test_successive_losses_never_choose_a_member_without_the_data() -> None:
    topology = advance(cluster_of(4), TableCreated(table(backups=2)))
    group = SCHEME.affinity_group()
    holders = [set(topology.ownership(group).holders(partition)) for partition in range(12)]
    for lost in ("m2", "m3"):
        topology = advance(topology, MemberLost(lost))
        for partition in range(12):
            assert topology.ownership(group).primary(partition) in holders[partition] - {"m2", "m3"} | (
                {"m3"} if lost == "m2" else set()
            )


def test_a_partition_without_copies_names_the_member_that_was_lost_last() -> None:
    """It is the one that had the rows that are gone."""
    topology = advance(cluster_of(3), TableCreated(table(backups=1)))
    group = SCHEME.affinity_group()
    before = topology.ownership(group)
    after = advance(advance(topology, MemberLost("m2")), MemberLost("m3")).ownership(group)
    orphans = [partition for partition in range(12) if set(before.holders(partition)) == {"m2", "m3"}]
    assert orphans
    assert {after.primary(partition) for partition in orphans} == {"m3"}


def test_a_table_that_is_created_again_owns_nothing_of_the_lost() -> None:
    """Its co-located tables have lost partitions; those that are created again after it are co-located with it."""
    topology = advance(cluster_of(3), TableCreated(table(backups=0)))
    assert group_of_new(topology, SCHEME, "2.1") == SCHEME.structure()
    lost = advance(topology, MemberLost("m2"))
    group = group_of_new(lost, SCHEME, "2.1")
    assert group == f"{SCHEME.structure()} #2.1"
    again = advance(lost, TableCreated(structs.replace(table(backups=0), scheme_or_reference=SCHEME.in_group(group))))
    assert set(again.ownership(group).members) == {"m1", "m3"}
    assert group_of_new(again, SCHEME, "3.1") == group
    assert group_of_new(cluster_of(2), SCHEME, "2.1") == SCHEME.structure()


def test_a_member_that_returns_owns_what_nobody_else_has() -> None:
    topology = advance(cluster_of(3), TableCreated(table(backups=1)))
    group = SCHEME.affinity_group()
    with_backups = advance(topology, MemberLost("m1"))
    assert not absent_owners(with_backups)
    lost = advance(with_backups, MemberLost("m2"))
    assert absent_owners(lost) == {"m2"}
    returned = advance(lost, MemberReturned(MemberAddress("m2", "127.0.0.1", 8000)))
    assert returned.version == lost.version + 1
    assert returned.member("m2").port == 8000
    before, after = topology.ownership(group), returned.ownership(group)
    for partition in range(12):
        shared_with_lost_before = set(before.holders(partition)) == {"m1", "m2"}
        assert (after.primary(partition) == "m2") == shared_with_lost_before
        assert ("m2" in after.holders(partition)) == shared_with_lost_before
        assert len(after.holders(partition)) == 2


def test_the_member_that_left_first_has_no_last_copy() -> None:
    topology = advance(cluster_of(2), TableCreated(table(backups=1)))
    lost = advance(advance(topology, MemberLost("m1")), MemberLost("m2"))
    assert absent_owners(lost) == {"m2"}
