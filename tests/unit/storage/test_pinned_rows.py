"""What pinned rows cost in memory: nothing while they are those of the table, and once what only they keep."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from secateur.partitioning.pruning import KeyPrefix, KeySlice
from secateur.partitioning.tables import TableDef
from secateur.storage import ChangeOperation, MemberStore, bytes_kept

TABLE = 1
ROWS = 20_000


@pytest.fixture
def orders(make_table: Any) -> TableDef:
    defined: TableDef = make_table({"k": "BIGINT", "v": "BIGINT", "note": "VARCHAR"}, ["k"], table_id=TABLE)
    return defined


def rows(orders: TableDef, value: int, count: int = ROWS) -> pa.Table:
    return pa.table({"k": range(count), "v": [value] * count, "note": ["x" * 20] * count}).cast(orders.arrow_schema)


@pytest.fixture
def store(orders: TableDef) -> MemberStore:
    store = MemberStore()
    store.create_table(orders, [0])
    store.apply(TABLE, 0, ChangeOperation.OVERWRITE, rows(orders, 0))
    return store


def pins(store: MemberStore, keys: KeySlice | None = None) -> Any:
    return store.pin(TABLE, [0], ["v", "k"], keys)


def test_rows_that_the_table_has_as_well_cost_nothing(store: MemberStore, orders: TableDef) -> None:
    pinned = pins(store)
    assert bytes_kept(pinned) == 0
    store.apply(TABLE, 0, ChangeOperation.UPSERT, rows(orders, 1, 3))
    assert bytes_kept(pinned) == 0, "three changes lie beside the sorted rows, which are still those of the table"


def test_rows_that_were_replaced_count_once_with_all_their_columns(store: MemberStore, orders: TableDef) -> None:
    before = store.table_bytes
    first, second = pins(store), pins(store)
    store.apply(TABLE, 0, ChangeOperation.OVERWRITE, rows(orders, 1))
    third = pins(store)
    assert bytes_kept([*first, *second, *third]) == pytest.approx(before, rel=0.01)
    store.apply(TABLE, 0, ChangeOperation.OVERWRITE, rows(orders, 2))
    assert bytes_kept([*first, *second, *third]) == pytest.approx(2 * before, rel=0.01)
    assert bytes_kept(third) == pytest.approx(before, rel=0.01)
    assert bytes_kept([]) == 0
    assert first[0].read().column("v").to_pylist() == [0] * ROWS


def test_a_merge_that_only_a_reader_needed_counts(store: MemberStore, orders: TableDef) -> None:
    before = store.table_bytes
    store.apply(TABLE, 0, ChangeOperation.UPSERT, rows(orders, 1, 3))
    pinned = pins(store)
    store.apply(TABLE, 0, ChangeOperation.UPSERT, rows(orders, 2, 3))
    assert bytes_kept(pinned) == 0
    pinned[0].read()
    assert bytes_kept(pinned) == pytest.approx(before, rel=0.01)


def test_rows_of_a_dropped_table_count(store: MemberStore) -> None:
    before, pinned = store.table_bytes, pins(store)
    store.drop_table(TABLE)
    assert store.table_bytes == 0
    assert bytes_kept(pinned) == pytest.approx(before, rel=0.01)


def test_a_slice_keeps_all_rows_and_a_copy_its_own(store: MemberStore, orders: TableDef) -> None:
    before, of_key = store.table_bytes, pins(store, KeyPrefix((5,)))
    assert bytes_kept(of_key) == 0
    store.apply(TABLE, 0, ChangeOperation.UPSERT, rows(orders, 1, 3))
    of_changed_key = pins(store, KeyPrefix((2,)))
    assert 0 < bytes_kept(of_changed_key) < 1000
    store.apply(TABLE, 0, ChangeOperation.OVERWRITE, rows(orders, 1))
    assert bytes_kept(of_key) == pytest.approx(before, rel=0.01)
    assert [pin[0].read().column("v").to_pylist() for pin in (of_key, of_changed_key)] == [[0], [1]]
