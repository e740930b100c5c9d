"""After a loss of power, a copy that a disk has lost does not count, and one that others have goes on."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from secateur.cluster.controller import CopyLost, DiskLosses, lost_by
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, Succession, TableDef
from secateur.partitioning.topology import MemberAddress, Ownership, Topology
from secateur.partitioning.types import SqlType, TypeKind
from secateur.protocol import ClusterRecord, HeldTable, LastLoad, MemberReport

BIGINT = SqlType(TypeKind.BIGINT)
ADDRESSES = tuple(MemberAddress(f"m{number}", "127.0.0.1", number) for number in (1, 2, 3))
TABLE = TableDef(
    name="t",
    table_id=1,
    columns=(Column("k", BIGINT, nullable=False),),
    primary_key=("k",),
    scheme_or_reference=PartitionScheme(hashes=(HashComponent(("k",), 3),), types=(("k", BIGINT),)),
    backups=1,
)
GROUP = TABLE.scheme.affinity_group()
REPLICATED = replace(TABLE, name="r", table_id=2, scheme_or_reference=PartitionScheme(), replicated=True)
TOPOLOGY = Topology(
    5, ADDRESSES, {GROUP: Ownership.of(("m1", "m2", "m3"), np.array([[0, 1, 2], [1, 2, 0]], dtype=np.uint16))}
)
WHOLE = {"m1": (0, 2), "m2": (0, 1), "m3": (1, 2)}


def losses(
    on_disk: dict[str, tuple[int, ...] | None], *, versions: dict[str, int] | None = None, damaged: str = ""
) -> DiskLosses:
    reports = {}
    for address in ADDRESSES:
        if address.id in on_disk:
            version = (versions or {}).get(address.id, TABLE.version)
            held = HeldTable(TABLE.table_id, version, partitions=on_disk[address.id])
            reports[address.id] = _report(address, held, damage="a file is gone" if damaged == address.id else "")
    return DiskLosses.of([TABLE], TOPOLOGY, reports, ())


def _report(address: MemberAddress, *held: HeldTable, damage: str = "") -> MemberReport:
    record = ClusterRecord(0 if damage else 1, 0 if damage else 5, TOPOLOGY, b"")
    tables = () if damage else held
    return MemberReport(
        address=address, record=record, holds_lease=False, tables=tables, damage=damage, is_restored=True
    )


def test_disks_that_have_what_their_members_own_have_lost_nothing() -> None:
    assert losses(dict(WHOLE)) == DiskLosses({}, (), "")
    assert losses(dict.fromkeys(WHOLE)) == DiskLosses({}, (), ""), "they live, and have it in memory"


@pytest.mark.parametrize("member", ["m1", "m2"])
def test_a_copy_that_another_member_has_does_not_count(member: str) -> None:
    on_disk = WHOLE | {member: tuple(number for number in WHOLE[member] if number)}
    assert losses(dict(on_disk)) == DiskLosses({}, (CopyLost(GROUP, 0, member),), "")


def test_a_partition_that_no_disk_has_any_more_is_lost() -> None:
    found = losses(WHOLE | {"m1": (2,), "m2": (1,)})
    assert found.lost == "partition 0 of t is on m1, m2 only"


def test_a_copy_that_only_a_damaged_directory_has_is_lost() -> None:
    found = losses(WHOLE | {"m1": (2,)}, damaged="m2")
    assert found.members == {"m2": "a file is gone"}
    assert found.lost == "partition 0 of t is on m1, m2 only"
    assert losses(dict(WHOLE), damaged="m2").lost == ""


def test_a_partition_of_a_range_that_is_just_being_dropped_is_not_lost() -> None:
    """Its members have been told, and the catalog has not: it is of a range that is being dropped."""
    versions = dict.fromkeys(("m1", "m2"), TABLE.version + 1)
    assert losses(WHOLE | {"m1": (2,), "m2": (1,)}, versions=versions) == DiskLosses({}, (), "")


def test_a_partition_of_a_range_that_no_disk_has_is_made_by_one_member() -> None:
    """A backup without it would be counted on, and its member might become the primary of what it does not have."""
    versions = dict.fromkeys(("m1", "m2"), TABLE.version - 1)
    found = losses(WHOLE | {"m1": (2,), "m2": (1,)}, versions=versions)
    assert found == DiskLosses({}, (CopyLost(GROUP, 0, "m2"),), "")


ALTERED = replace(TABLE, table_id=7, version=4, created_as=1, succession=Succession(5, ("k",), b""))
"""Altered for the third time: the ids before were 1, 4 and 5."""


def altered(**held: tuple[int, int]) -> DiskLosses:
    """What is lost where members have the table under such an id, in such a version."""
    reports = {
        address.id: _report(address, HeldTable(*held[address.id], partitions=WHOLE[address.id], created_as=1))
        for address in ADDRESSES
    }
    return DiskLosses.of([ALTERED], TOPOLOGY, reports, ())


def test_a_disk_that_has_lost_the_last_change_of_columns_follows() -> None:
    assert altered(m1=(7, 4), m2=(5, 3), m3=(7, 4)) == DiskLosses({}, (), "")
    assert altered(m1=(9, 5), m2=(5, 3), m3=(7, 4)) == DiskLosses({}, (), ""), "another change is under way"


def test_a_member_that_has_lost_several_changes_of_columns_is_of_no_use() -> None:
    """It was taken for an owner, and had no rows that it could have made those of now from."""
    found = altered(m1=(7, 4), m2=(4, 2), m3=(5, 3))
    assert list(found.members) == ["m2"]
    assert (found.copies, found.lost) == ((), "")


def test_a_table_that_all_disks_have_as_it_was_long_ago_is_lost() -> None:
    assert altered(m1=(4, 2), m2=(4, 2), m3=(1, 1)).lost == "partition 0 of t is on m1, m2 only"


def test_a_member_without_a_table_that_others_have_is_of_no_use() -> None:
    reports = {
        address.id: _report(address, HeldTable(TABLE.table_id, TABLE.version, partitions=WHOLE[address.id]))
        for address in ADDRESSES[:2]
    } | {"m3": _report(ADDRESSES[2])}
    found = DiskLosses.of([TABLE], TOPOLOGY, reports, ())
    assert list(found.members) == ["m3"]
    assert (found.copies, found.lost) == ((), "")
    fresh = reports | {
        "m3": MemberReport(address=ADDRESSES[2], record=ClusterRecord(0, 0, TOPOLOGY, b""), holds_lease=False)
    }
    assert DiskLosses.of([TABLE], TOPOLOGY, fresh, ["m3"]) == DiskLosses({}, (), ""), "its directory is new"


def test_a_member_that_lacks_replicated_rows_is_of_no_use() -> None:
    reports = {
        address.id: _report(address, HeldTable(2, REPLICATED.version, partitions=() if address.id == "m2" else (0,)))
        for address in ADDRESSES
    }
    assert list(DiskLosses.of([REPLICATED], TOPOLOGY, reports, ()).members) == ["m2"]
    nobody = {address.id: _report(address, HeldTable(2, REPLICATED.version, partitions=())) for address in ADDRESSES}
    assert DiskLosses.of([REPLICATED], TOPOLOGY, nobody, ()) == DiskLosses({}, (), ""), "nobody has them: as before"


def test_a_member_that_was_removed_may_lack_a_load_that_came_later() -> None:
    """What it is the last one to have is as lost as before, and all else is served: it was a reason to stop."""
    gone = Topology(
        6, ADDRESSES[:1], {GROUP: Ownership.of(("m2", "m3", "m1"), np.array([[0, 0, 1], [2, 2, 2]], np.uint16))}
    )
    reports = {
        address.id: _report(address, HeldTable(TABLE.table_id, TABLE.version, 8 if address.id == "m1" else 7))
        for address in ADDRESSES
    }
    assert DiskLosses.of([TABLE], gone, reports, ()) == DiskLosses({}, (), "")
    assert list(DiskLosses.of([TABLE], TOPOLOGY, reports, ()).members) == ["m2", "m3"], "as members, they are of no use"


@pytest.mark.parametrize(
    ("held", "lost"),
    [
        (HeldTable(1, 1, 7, partitions=(0, 2)), ""),
        (HeldTable(1, 1, 8, partitions=(0, 2)), ""),
        (HeldTable(1, 1, 7), ""),
        (HeldTable(1, 1, 6, partitions=(0, 2)), "its disk has lost a load of t"),
        (HeldTable(1, 1, 7, partitions=(2,)), "its disk has lost partition 0 of t"),
        (HeldTable(1, 1, 7, partitions=(0,)), ""),
        (HeldTable(1, 0, 7, partitions=(2,)), ""),
        (HeldTable(2, 1, 7, partitions=()), "its disk has lost table t"),
    ],
    ids=[
        "everything",
        "more",
        "in memory",
        "a load less",
        "a partition less",
        "not what others have",
        "not a range that was made meanwhile",
        "no table",
    ],
)
def test_a_member_comes_back_with_all_that_it_was_the_last_to_have_or_not_at_all(held: HeldTable, lost: str) -> None:
    """It has left as the owner of partition 0, and as a backup of partition 2."""
    topology = Topology(6, ADDRESSES[1:], TOPOLOGY.owners)
    told = {TABLE.table_id: LastLoad(7, "seventh"), 9: LastLoad(8, "of a table that was dropped")}
    found = lost_by(_report(ADDRESSES[0], held), [TABLE, REPLICATED], topology, told)
    assert found.partition(":")[0] == lost


@pytest.mark.parametrize(
    ("held", "lost"),
    [
        (HeldTable(7, 4, created_as=1), ""),
        (HeldTable(5, 3, created_as=1), ""),
        (HeldTable(4, 2, created_as=1), "its disk has lost what ALTER TABLE t has changed"),
        (HeldTable(6, 4, created_as=1), "its disk has lost what ALTER TABLE t has changed"),
    ],
    ids=["everything", "a change less", "two changes less", "a change that was given up without it"],
)
def test_a_member_comes_back_if_it_can_follow_the_changes_of_columns(held: HeldTable, lost: str) -> None:
    topology = Topology(6, ADDRESSES[1:], TOPOLOGY.owners)
    assert lost_by(_report(ADDRESSES[0], held), [ALTERED], topology, {}).partition(":")[0] == lost
