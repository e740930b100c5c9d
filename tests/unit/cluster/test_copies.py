"""A member that comes back takes over the ranges that a table has by now."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from secateur.cluster import ClusterSettings
from secateur.cluster.member import MemberCopies
from secateur.cluster.peers import Peers
from secateur.partitioning.schemes import AddRange, DropRange, RangeChange, RangeSpec, alter_ranges, build_scheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.protocol import Role
from secateur.storage import MemberStore

TYPES = {"n": parse_type("BIGINT")}
SCHEME = build_scheme(
    range_columns=["n"],
    ranges=[RangeSpec((0,), (10,)), RangeSpec((10,), (20,))],
    types=TYPES,
    primary_key=["n"],
    table="t",
)
TABLE = TableDef("t", 1, (Column("n", TYPES["n"], nullable=False),), ("n",), SCHEME)


def changed(*changes: RangeChange) -> TableDef:
    scheme = alter_ranges(SCHEME, changes, types=TYPES, primary_key=["n"], table="t")
    return structs.replace(TABLE, scheme_or_reference=scheme, version=2)


@pytest.mark.parametrize(
    ("hosted", "last_owned", "expected"),
    [
        pytest.param([0], [0], [0], id="a range that others own"),
        pytest.param([0], [0, 2], [0, 2], id="a range that was added as it left"),
        pytest.param([], [0, 2], [2], id="rows that it has lost are not taken for none"),
        pytest.param([0, 1], [0, 1], [0], id="a range that was dropped"),
    ],
)
def test_it_has_the_ranges_of_now(hosted: list[int], last_owned: list[int], expected: list[int]) -> None:
    async def main() -> list[int]:
        store, peers = MemberStore(), Peers("m1", Role.MEMBER, ClusterSettings())
        store.create_table(TABLE, hosted)
        after = changed(AddRange(RangeSpec((20,), (30,))), DropRange(RangeSpec((10,), (20,))))
        await MemberCopies(store, peers).catch_up(after, None, last_owned=last_owned, is_current=True)
        return list(store.hosted(TABLE.table_id))

    assert asyncio.run(main()) == expected
