from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from secateur.partitioning.pruning import IndexSlice, KeyBoundary, KeyPrefix, KeyRange, KeyRanges
from secateur.partitioning.tables import TableDef
from secateur.storage import ChangeOperation, MemberStore

ROWS = [(key, None if key % 5 == 0 else key % 13, "ab"[key % 2]) for key in range(400)]


@pytest.fixture
def table(make_table: Any) -> TableDef:
    described: TableDef = make_table({"k": "BIGINT", "v": "BIGINT", "s": "VARCHAR"}, ["k"])
    return described


@pytest.fixture
def store(table: TableDef) -> MemberStore:
    store = MemberStore()
    store.create_table(table, [0])
    store.apply(1, 0, ChangeOperation.OVERWRITE, rows(table, ROWS))
    return store


def rows(table: TableDef, tuples: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*tuples, strict=True))
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, table.arrow_schema, strict=True)],
        schema=table.arrow_schema,
    )


def keys(store: MemberStore, part: KeyPrefix | KeyRanges, *columns: str) -> list[int]:
    found: list[int] = store.relation(1, [0], ["k"], IndexSlice("i", columns or ("v",), part))["k"].to_pylist()
    return found


def between(low: int, high: int) -> KeyRanges:
    return KeyRanges((KeyRange(KeyBoundary((low,), after=False), KeyBoundary((high,), after=True)),))


def test_rows_are_found_by_value_and_come_in_key_order(store: MemberStore) -> None:
    assert keys(store, KeyPrefix((6,))) == [key for key, value, _ in ROWS if value == 6]
    assert keys(store, between(-3, -1)) == []
    assert keys(store, KeyPrefix((None,))) == []


def test_where_an_index_spares_nothing_all_rows_come(store: MemberStore) -> None:
    assert keys(store, between(1, 6)) == list(range(400))


def test_several_columns(store: MemberStore) -> None:
    assert keys(store, KeyPrefix((6, "a")), "v", "s") == [key for key, value, text in ROWS if (value, text) == (6, "a")]


def test_a_null_in_any_column_is_not_found(store: MemberStore) -> None:
    assert keys(store, KeyPrefix(("a", 6)), "s", "v") == [key for key, value, text in ROWS if (text, value) == ("a", 6)]
    found = keys(
        store, KeyRanges((KeyRange(KeyBoundary(("a", 11), after=False), KeyBoundary(("a", 12), after=True)),)), "s", "v"
    )
    assert found == [key for key, value, text in ROWS if text == "a" and value in (11, 12)]


def test_recent_changes_are_seen(store: MemberStore, table: TableDef) -> None:
    before = keys(store, KeyPrefix((6,)))
    store.apply(
        1, 0, ChangeOperation.UPSERT, rows(table, [(before[0], 1, "a"), (900, 6, "a"), (-1, 6, "a"), (7, 3, "b")])
    )
    store.apply(1, 0, ChangeOperation.DELETE, rows(table, [(before[1], 0, "a")]))
    # All that was written lately comes as well: WHERE is applied to what is found.
    assert keys(store, KeyPrefix((6,))) == [-1, *sorted([before[0], 7, *before[2:]]), 900]


def test_its_bytes_count(store: MemberStore) -> None:
    before = store.stats()[0].nbytes
    keys(store, KeyPrefix((6,)))
    after = store.stats()[0].nbytes
    assert after > before
    keys(store, KeyPrefix((5,)))
    assert store.stats()[0].nbytes == after
