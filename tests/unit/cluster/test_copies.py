"""A member that joins or comes back has tables as they are by now: their ranges, and the rows of replicated ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from secateur.cluster import ClusterSettings
from secateur.cluster.member import MemberCopies
from secateur.cluster.peers import Peers
from secateur.partitioning.schemes import (
    AddRange,
    DropRange,
    PartitionScheme,
    RangeChange,
    RangeSpec,
    alter_ranges,
    build_scheme,
)
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.protocol import CatchUp, CopyTable, Operation, Role
from secateur.storage import MemberStore
from secateur.wire import Answer, PeerInfo, Request

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
        await MemberCopies(store, peers).catch_up(after, CatchUp(b"", (), is_current=True), last_owned)
        return list(store.hosted(TABLE.table_id))

    assert asyncio.run(main()) == expected


EVERYWHERE = structs.replace(TABLE, name="r", table_id=2, scheme_or_reference=PartitionScheme(), replicated=True)


class OtherMembers(Peers):
    """Members that answer from their stores, without sockets."""

    def __init__(self, stores: dict[str, MemberStore]) -> None:
        super().__init__("m1", Role.MEMBER, ClusterSettings())
        self._copies = {name: MemberCopies(store, self) for name, store in stores.items()}
        self._asked = ""

    def peer(self, member_id: str) -> Any:
        self._asked = member_id
        return self

    async def request(self, message: CopyTable) -> Answer[Any]:
        asked = Request(
            Operation.COPY_TABLE, message, memoryview(b""), PeerInfo("m1", Role.MEMBER, "m1", authenticated=True)
        )
        reply = self._copies[self._asked].copy_table(asked)
        pieces = [reply.payload] if isinstance(reply.payload, (bytes, memoryview)) else reply.payload
        return Answer(reply.message, (memoryview(b"".join(pieces)),))


def store_with(rows: list[int] | None, published: int = 0) -> MemberStore:
    """A store that knows the replicated table; without rows, no member had them when this one joined."""
    store = MemberStore()
    if rows is None:
        store.create_table(EVERYWHERE, [])
    else:
        store.copy_table(EVERYWHERE, {0: pa.table({"n": pa.array(rows, pa.int64())})}, published)
    return store


@pytest.mark.parametrize(
    ("mine", "others", "is_current", "expected"),
    [
        pytest.param(None, [[1, 2]], False, [1, 2], id="one has them"),
        pytest.param(None, [None, [1, 2]], False, [1, 2], id="the second has them"),
        pytest.param(None, [None, None], False, None, id="nobody has them"),
        pytest.param(None, [], True, None, id="it has none that could be current"),
        pytest.param([1], [[1, 2]], False, [1, 2], id="outdated rows are replaced"),
        pytest.param([1], [None], False, None, id="outdated rows are worth nothing"),
        pytest.param([1], [None], True, [1], id="its own are those of now"),
    ],
)
def test_replicated_rows_come_from_one_that_has_them(
    mine: list[int] | None, others: list[list[int] | None], is_current: bool, expected: list[int] | None
) -> None:
    store, names = store_with(mine), [f"m{number}" for number in range(2, 2 + len(others))]
    stores = {name: store_with(rows, published=7) for name, rows in zip(names, others, strict=True)}
    catch_up = MemberCopies(store, OtherMembers(stores)).catch_up(EVERYWHERE, CatchUp(b"", tuple(names), is_current))
    assert asyncio.run(catch_up) is (expected is not None)
    found = store.relation(EVERYWHERE.table_id, [0])["n"].to_pylist() if store.hosted(EVERYWHERE.table_id) else None
    assert found == expected
    if expected == [1, 2]:
        assert store.data_version(EVERYWHERE.table_id).published == 7


@pytest.mark.parametrize("table", [TABLE, EVERYWHERE], ids=["partitioned", "replicated"])
@pytest.mark.parametrize(("mine", "newest", "expected"), [(None, 3, 3), (None, 0, 0), (2, 3, 3), (2, 0, 2)])
def test_versions_go_on_from_the_last_load_where_no_other_member_is_left(
    table: TableDef, mine: int | None, newest: int, expected: int
) -> None:
    store = MemberStore()
    if mine is not None:
        store.create_table(table, [])
        store.set_published(table.table_id, mine)
    copies = MemberCopies(store, OtherMembers({}))
    asyncio.run(copies.catch_up(table, CatchUp(b"", (), newest=newest)))
    assert store.data_version(table.table_id).published == expected
