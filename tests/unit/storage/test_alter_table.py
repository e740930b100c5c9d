"""A table whose ranges or columns change, on one member."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from msgspec import structs

from secateur.errors import LimitExceededError, NullKeyError, TopologyChangedError, UnknownTableError
from secateur.partitioning.schemes import (
    AddRange,
    DropNamed,
    RangeChange,
    RangeSpec,
    alter_ranges,
    build_scheme,
    catch_all,
)
from secateur.partitioning.tables import Column, Succession, TableDef
from secateur.partitioning.types import parse_type
from secateur.storage import ChangeOperation, MemberStore
from secateur.wire import encode_rows

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
    store.apply(1, 0, ChangeOperation.APPEND, rows(1, 2))
    store.apply(1, 1, ChangeOperation.APPEND, rows(50, 60))
    return store


def test_partitions_that_stay_keep_their_rows_and_new_ones_are_empty(store: MemberStore) -> None:
    before, changes = store.relation(1, [0]), store.data_version(1).changes
    store.alter_table(changed(TABLE, AddRange(RangeSpec((20,), (30,)))), [0, 1, 2])
    assert (keys(store, [0]), keys(store, [1]), keys(store, [2])) == ([1, 2], [50, 60], [])
    assert store.relation(1, [0]).equals(before)
    assert store.table(1).version == 2
    assert store.data_version(1).changes > changes
    assert store.apply(1, 2, ChangeOperation.APPEND, rows(25)) == 1


def test_partitions_of_dropped_ranges_go_with_their_rows(store: MemberStore) -> None:
    snapshot = store.relation(1, [0])
    store.alter_table(changed(TABLE, DropNamed("low")), [1])
    assert store.hosted(1) == [1]
    with pytest.raises(TopologyChangedError, match="partition 0 of t is not on this member"):
        store.relation(1, [0])
    assert snapshot.num_rows == 2  # who reads already goes on
    assert store.apply(1, 1, ChangeOperation.APPEND, rows(5)) == 1  # the catch-all takes what the range held


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
        store.apply(1, 1, ChangeOperation.APPEND, rows(*numbers))
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


def succeeding(sources: Sequence[str | None], columns: Sequence[Column], fill: pa.Table) -> TableDef:
    """The table with other columns, under another id."""
    succession = Succession(1, tuple(sources), bytes(encode_rows(fill)) if fill.num_columns else b"")
    return structs.replace(TABLE, table_id=2, columns=tuple(columns), version=2, created_as=1, succession=succession)


W = Column("w", parse_type("VARCHAR"))


def with_w(value: str | None = "so") -> TableDef:
    return succeeding(("n", "v", None), (*TABLE.columns, W), pa.table({"w": pa.array([value], pa.string())}))


def test_rows_get_a_new_column_under_another_id(store: MemberStore) -> None:
    store.apply(1, 0, ChangeOperation.DELETE, pa.table({"n": [1]}))
    store.apply(1, 0, ChangeOperation.UPSERT, rows(3))
    published, changes = store.data_version(1).published, store.data_version(1).changes
    after = with_w()
    store.alter_table(after, [0, 1])
    assert store.relation(2, [0, 1]).to_pylist() == [{"n": n, "v": n, "w": "so"} for n in (2, 3, 50, 60)]
    assert store.table(2) == after
    assert (store.data_version(2).published, store.data_version(2).changes > changes) == (published, True)
    with pytest.raises(UnknownTableError):
        store.relation(1, [0])
    store.apply(2, 0, ChangeOperation.APPEND, pa.table({"n": [4], "v": [5], "w": [None]}, schema=after.arrow_schema))
    assert store.relation(2, [0]).to_pylist()[-1] == {"n": 4, "v": 5, "w": None}


def test_partitions_share_the_values_of_a_new_column(store: MemberStore) -> None:
    store.alter_table(with_w(), [0, 1])
    first, other = (store.relation(2, [number]).column("w").chunk(0) for number in (0, 1))
    assert first.buffers()[2].address == other.buffers()[2].address
    assert store.stats()[0].nbytes < 1000


def test_columns_go_get_wider_and_change_their_names(store: MemberStore) -> None:
    wide = parse_type("HUGEINT")
    columns = (Column("x", wide), TABLE.columns[0])
    store.alter_table(succeeding(("v", "n"), columns, pa.table({})), [0, 1])
    assert store.relation(2, [0]).to_pylist() == [{"x": 1, "n": 1}, {"x": 2, "n": 2}]
    assert store.partition(2, 0).find((2,)) is not None


def test_what_was_made_before_is_taken_over_and_what_has_changed_since_made_anew(store: MemberStore) -> None:
    after = with_w()
    make = store.altering(after, [0, 1])
    store.apply(1, 0, ChangeOperation.APPEND, rows(3))
    prepared = make()
    store.alter_table(after, [0, 1], prepared)
    assert store.relation(2, [0]).to_pylist()[-1] == {"n": 3, "v": 3, "w": "so"}
    assert store.partition(2, 1).base is prepared[1].rows


def test_no_row_may_have_null_in_a_column_that_is_not_null_from_now_on(store: MemberStore) -> None:
    after = succeeding(("n", "v"), (TABLE.columns[0], Column("v", BIGINT, nullable=False)), pa.table({}))
    store.altering(after, [0, 1])()
    store.apply(1, 0, ChangeOperation.APPEND, pa.table({"n": [3], "v": [None]}, schema=TABLE.arrow_schema))
    with pytest.raises(NullKeyError, match=r"t\.v is NOT NULL, but 1 of 3 rows"):
        store.altering(after, [0, 1])()
    assert keys(store, [0]) == [1, 2, 3]


def test_a_default_that_is_too_long_for_the_rows(store: MemberStore) -> None:
    store.apply(1, 1, ChangeOperation.APPEND, rows(*range(100, 200)))
    with pytest.raises(LimitExceededError, match="column w would have"):
        store.altering(with_w("x" * (1 << 25)), [0, 1])()


def test_loads_of_the_table_as_it_was_end(store: MemberStore) -> None:
    store.loads.stage("a", 1, 0, 1, rows(7))
    store.alter_table(with_w(), [0, 1])
    outcome = store.loads.outcome("a")
    assert outcome is not None
    assert not outcome.published


def test_a_feed_goes_on_with_the_columns_of_now() -> None:
    store = MemberStore()
    table = structs.replace(TABLE, change_feed=True)
    store.create_table(table, [0])
    for number in (1, 2):
        store.apply(1, 0, ChangeOperation.APPEND, rows(number))
        feed = store.feed(1, 0)
        assert feed is not None
        feed.changed(0, number)
    store.alter_table(structs.replace(with_w(), change_feed=True), [0])
    feed = store.feed(2, 0)
    assert feed is not None
    found, _ = feed.since(0, 1 << 20)
    assert [(entry.version, entry.rows.to_pylist()) for entry in found] == [
        (number, [{"n": number, "v": number, "w": "so", "_change_type": "insert"}]) for number in (1, 2)
    ]
