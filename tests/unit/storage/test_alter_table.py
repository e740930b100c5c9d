"""A table whose ranges change, on one member."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from msgspec import structs

from secateur.errors import TopologyChangedError, UnknownTableError
from secateur.partitioning.schemes import (
    AddRange,
    DropNamed,
    RangeChange,
    RangeSpec,
    alter_ranges,
    build_scheme,
    catch_all,
)
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.storage import MemberStore

BIGINT = parse_type("BIGINT")
TYPES = {"n": BIGINT}
SCHEME = build_scheme(
    range_columns=["n"], ranges=[RangeSpec((0,), (10,), "low"), catch_all()], types=TYPES, primary_key=["n"], table="t"
)
TABLE = TableDef("t", 1, (Column("n", BIGINT, nullable=False), Column("v", BIGINT)), ("n",), SCHEME)


def changed(table: TableDef, *changes: RangeChange) -> TableDef:
    scheme = alter_ranges(table.scheme, changes, types=TYPES, primary_key=["n"], table="t")
    return structs.replace(table, scheme_or_reference=scheme, version=table.version + 1)


def rows(*keys: int) -> pa.Table:
    return pa.table({"n": keys, "v": keys}, schema=TABLE.arrow_schema)


def keys(store: MemberStore, partitions: Sequence[int]) -> list[int]:
    found: list[int] = store.relation(1, partitions).column("n").to_pylist()
    return found


@pytest.fixture
def store() -> MemberStore:
    store = MemberStore()
    store.create_table(TABLE, [0, 1])
    store.write(1, 0, rows(1, 2), "append")
    store.write(1, 1, rows(50, 60), "append")
    return store


def test_partitions_that_stay_keep_their_rows_and_new_ones_are_empty(store: MemberStore) -> None:
    before, changes = store.relation(1, [0]), store.data_version(1).changes
    store.alter_table(changed(TABLE, AddRange(RangeSpec((20,), (30,)))), [0, 1, 2])
    assert (keys(store, [0]), keys(store, [1]), keys(store, [2])) == ([1, 2], [50, 60], [])
    assert store.relation(1, [0]).equals(before)
    assert store.table(1).version == 2
    assert store.data_version(1).changes > changes
    assert store.write(1, 2, rows(25), "append") == 1


def test_partitions_of_dropped_ranges_go_with_their_rows(store: MemberStore) -> None:
    snapshot = store.relation(1, [0])
    store.alter_table(changed(TABLE, DropNamed("low")), [1])
    assert store.hosted(1) == [1]
    with pytest.raises(TopologyChangedError, match="partition 0 of t is not on this member"):
        store.relation(1, [0])
    assert snapshot.num_rows == 2  # who reads already goes on
    assert store.write(1, 1, rows(5), "append") == 1  # the catch-all takes what the range held


def test_an_unknown_table() -> None:
    with pytest.raises(UnknownTableError):
        MemberStore().alter_table(TABLE, [0])


@pytest.mark.parametrize("wrong", [0, 5, 37, 99])
def test_a_catch_all_is_checked_row_by_row(store: MemberStore, wrong: int) -> None:
    """A writer that has not heard of a new range goes wrong for its rows alone: the first, middle and last row need not
    tell.
    """
    store.alter_table(changed(TABLE, AddRange(RangeSpec((20,), (30,)))), [0, 1, 2])
    numbers = list(range(100, 200))
    numbers[wrong] = 25
    with pytest.raises(TopologyChangedError, match=r"the row with key \(n=25\) belongs to partition 2, not 1"):
        store.write(1, 1, rows(*numbers), "append")
    with pytest.raises(TopologyChangedError, match="belongs to partition 2, not 1"):
        store.loads.stage("load", 1, 1, 0, rows(*numbers))
    assert keys(store, [1]) == [50, 60]


def test_rows_staged_for_the_catch_all_before_a_range_was_added_are_not_published(store: MemberStore) -> None:
    store.loads.stage("load", 1, 1, 0, rows(19, 25, 31))
    store.loads.stage("other", 1, 1, 0, rows(19, 31))
    store.alter_table(changed(TABLE, AddRange(RangeSpec((20,), (30,)))), [0, 1, 2])
    with pytest.raises(TopologyChangedError, match="belongs to partition 2, not 1"):
        store.loads.prepare("load", 1, "append", {1: [0]})
    assert store.loads.prepare("other", 1, "append", {1: [0]}) == 2


def test_a_load_for_a_dropped_range_ends_quietly(store: MemberStore) -> None:
    store.loads.stage("load", 1, 0, 0, rows(7))
    store.loads.stage("prepared", 1, 0, 0, rows(8))
    store.loads.prepare("prepared", 1, "append", {0: [0]})
    store.alter_table(changed(TABLE, DropNamed("low")), [1])
    with pytest.raises(TopologyChangedError, match="partition 0 of t is not on this member"):
        store.loads.prepare("load", 1, "append", {0: [0]})
    assert store.loads.abort("load")
    assert store.loads.abort("prepared")
