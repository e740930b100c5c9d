"""Which member has which partitions."""

from __future__ import annotations

from secateur.cluster.controller import (
    MemberJoined,
    TableCreated,
    advance,
    by_primary,
    copies_of,
    primaries_of,
    served_by,
)
from secateur.partitioning.schemes import (
    DropNamed,
    HashComponent,
    PartitionScheme,
    RangeSpec,
    alter_ranges,
    build_scheme,
)
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.partitioning.types import SqlType, parse_type

BIGINT = parse_type("BIGINT")
HASHED = TableDef(
    "t", 1, (), ("id",), PartitionScheme(hashes=(HashComponent(("id",), 6),), types=(("id", BIGINT),)), backups=1
)
REPLICATED = TableDef("r", 2, (), ("id",), PartitionScheme(), backups=0, replicated=True)
TYPES: dict[str, SqlType] = {"day": BIGINT}


def cluster_with(table: TableDef) -> Topology:
    topology = Topology(1, (), {})
    for member in ("m1", "m2", "m3"):
        topology = advance(topology, MemberJoined(MemberAddress(member, "127.0.0.1", 7000)))
    return advance(topology, TableCreated(table))


def test_every_partition_has_one_primary_and_one_backup_elsewhere() -> None:
    topology = cluster_with(HASHED)
    primaries = {member: primaries_of(topology, HASHED, member) for member in topology.member_ids}
    copies = {member: copies_of(topology, HASHED, member) for member in topology.member_ids}
    assert sorted(partition for partitions in primaries.values() for partition in partitions) == list(range(6))
    assert sorted(partition for partitions in copies.values() for partition in partitions) == sorted(
        [*range(6), *range(6)]
    )
    assert all(set(primaries[member]) < set(copies[member]) for member in topology.member_ids)
    assert served_by(topology, HASHED) == primaries


def test_a_replicated_table_is_everywhere_and_counts_once() -> None:
    topology = cluster_with(REPLICATED)
    assert [copies_of(topology, REPLICATED, member) for member in topology.member_ids] == [[0], [0], [0]]
    assert [primaries_of(topology, REPLICATED, member) for member in topology.member_ids] == [[0], [0], [0]]
    assert served_by(topology, REPLICATED) == {"m1": [0], "m2": [], "m3": []}


def test_by_primary_names_only_who_has_some() -> None:
    topology = cluster_with(HASHED)
    first, second = primaries_of(topology, HASHED, "m2")[:2]
    assert by_primary(topology, HASHED, [first, second]) == {"m2": [first, second]}


def test_dropped_ranges_have_no_rows() -> None:
    ranges = [RangeSpec((0,), (10,)), RangeSpec((10,), (20,), "b"), RangeSpec((20,), (30,))]
    before = build_scheme(range_columns=["day"], ranges=ranges, types=TYPES, primary_key=("day",), table="t")
    after = alter_ranges(before, [DropNamed("b")], types=TYPES, primary_key=("day",), table="t")
    table = TableDef("t", 1, (), ("day",), after, backups=0)
    topology = cluster_with(table)
    assert sorted(partition for partitions in served_by(topology, table).values() for partition in partitions) == [0, 2]
