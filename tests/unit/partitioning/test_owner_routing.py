from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from secateur.partitioning.schemes import (
    DropNamed,
    HashComponent,
    PartitionScheme,
    RangeSpec,
    alter_ranges,
    build_scheme,
)
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.topology import (
    MemberAddress,
    OwnerRouting,
    Topology,
    assign,
    by_primary,
    copies_of,
    primaries_of,
    served_by,
)
from secateur.partitioning.topology.owner_routing import split
from secateur.partitioning.types import parse_type


def orders(partitions: int = 8) -> TableDef:
    bigint = parse_type("BIGINT")
    columns = (Column("id", bigint, nullable=False), Column("note", parse_type("VARCHAR"), nullable=True))
    return TableDef(
        "orders", 1, columns, ("id",), PartitionScheme((HashComponent(("id",), partitions),), None, (("id", bigint),))
    )


def topology(table: TableDef, members: int) -> Topology:
    ids = [f"m{index + 1}" for index in range(members)]
    return Topology(
        1,
        tuple(MemberAddress(i, "127.0.0.1", 1) for i in ids),
        {table.scheme.affinity_group(): assign(table.partition_count, ids, 2)},
    )


def rows(table: TableDef, count: int) -> pa.Table:
    return conform(
        pa.table({"note": pa.array([f"note {i:04}" for i in range(count)], pa.string()), "id": np.arange(count)}), table
    )


@pytest.mark.parametrize("members", [1, 2, 3, 11], ids="{}-members".format)
@pytest.mark.parametrize("count", [0, 1, 5, 1000], ids="{}-rows".format)
def test_shares_are_the_partitions_of_their_member_and_nothing_is_lost(members: int, count: int) -> None:
    table = orders()
    where, chunk = topology(table, members), rows(table, count)
    ownership = where.ownership(table.scheme.affinity_group())
    found = {}
    for share in OwnerRouting.of(table, where).shares(chunk):
        assert {ownership.primary(partition) for partition, _ in share.parts} == {share.member}
        assert sum(rows for _, rows in share.parts) == share.rows.num_rows
        start = 0
        for partition, partition_rows in share.parts:
            found[partition] = share.rows.slice(start, partition_rows)
            start += partition_rows
    assert found == split(chunk, table)


def test_more_partitions_than_sixteen_bits_count() -> None:
    table = orders(partitions=70_000)
    chunk = rows(table, 1000)
    parts = [part for share in OwnerRouting.of(table, topology(table, 3)).shares(chunk) for part in share.parts]
    assert dict(parts) == {partition: piece.num_rows for partition, piece in split(chunk, table).items()}


def test_everybody_gets_all_rows_of_a_replicated_table() -> None:
    table = TableDef("codes", 2, orders().columns, ("id",), PartitionScheme(), replicated=True)
    chunk = rows(table, 3)
    shares = list(OwnerRouting.of(table, topology(table, 2)).shares(chunk))
    assert [(share.member, share.parts) for share in shares] == [("m1", [(0, 3)]), ("m2", [(0, 3)])]
    assert all(share.rows is chunk for share in shares)


def test_every_partition_has_one_primary_and_one_backup_elsewhere() -> None:
    table = orders(6)
    members = topology(table, 3)
    primaries = {member: primaries_of(members, table, member) for member in members.member_ids}
    copies = {member: copies_of(members, table, member) for member in members.member_ids}
    assert sorted(partition for partitions in primaries.values() for partition in partitions) == list(range(6))
    assert sorted(partition for partitions in copies.values() for partition in partitions) == sorted(
        [*range(6), *range(6)]
    )
    assert all(set(primaries[member]) < set(copies[member]) for member in members.member_ids)
    assert served_by(members, table) == primaries


def test_a_replicated_table_is_everywhere_and_counts_once() -> None:
    table = TableDef("r", 2, (), ("id",), PartitionScheme(), backups=0, replicated=True)
    members = topology(orders(), 3)
    assert [copies_of(members, table, member) for member in members.member_ids] == [[0], [0], [0]]
    assert [primaries_of(members, table, member) for member in members.member_ids] == [[0], [0], [0]]
    assert served_by(members, table) == {"m1": [0], "m2": [], "m3": []}


def test_by_primary_names_only_who_has_some() -> None:
    table = orders(6)
    members = topology(table, 3)
    first, second = primaries_of(members, table, "m2")[:2]
    assert by_primary(members, table, [first, second]) == {"m2": [first, second]}


def test_dropped_ranges_have_no_rows() -> None:
    types, ranges = (
        {"day": parse_type("BIGINT")},
        [RangeSpec((0,), (10,)), RangeSpec((10,), (20,), "b"), RangeSpec((20,), (30,))],
    )
    before = build_scheme(range_columns=["day"], ranges=ranges, types=types, primary_key=("day",), table="t")
    after = alter_ranges(before, [DropNamed("b")], types=types, primary_key=("day",), table="t")
    table = TableDef("t", 1, (), ("day",), after, backups=0)
    served = served_by(topology(table, 3), table)
    assert sorted(partition for partitions in served.values() for partition in partitions) == [0, 2]
