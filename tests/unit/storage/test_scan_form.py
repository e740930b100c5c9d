from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from secateur.errors import TopologyChangedError, UnknownColumnError
from secateur.partitioning.table import TableDef
from secateur.storage import scan_form
from secateur.storage.member_store import MemberStore

COLUMNS = {"k": "BIGINT", "short": "DECIMAL(4,1)", "mid": "DECIMAL(9,2)", "long": "DECIMAL(18,4)", "huge": "DECIMAL(30,2)", "few": "VARCHAR", "many": "VARCHAR"}
NAMES = list(COLUMNS)
TYPES = [pa.int64(), pa.decimal32(4, 1), pa.decimal32(9, 2), pa.decimal64(18, 4), pa.decimal128(30, 2), pa.dictionary(pa.int16(), pa.string()), pa.string()]


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_form, "_ROWS_MIN", 1)


@pytest.fixture
def table(make_table: Any) -> TableDef:
    described: TableDef = make_table(COLUMNS, ["k"])
    return described


@pytest.fixture
def store(table: TableDef) -> MemberStore:
    store = MemberStore()
    store.create_table(table, [0, 1, 2])
    for partition, start in ((0, 0), (2, 10_000)):
        store.write(1, partition, rows(table, range(start, start + 3000)), "overwrite")
    return store


def rows(table: TableDef, keys: Sequence[int]) -> pa.Table:
    def decimal(key: int, digits: int, scale: int) -> Decimal | None:
        return None if key % 7 == 3 else Decimal((-1) ** key * (10 ** (digits - 1) - 1 - key % 900)).scaleb(-scale)

    values = [
        (
            key,
            decimal(key, 4, 1),
            decimal(key, 9, 2),
            decimal(key, 18, 4),
            decimal(key, 30, 2),
            [None, "", "a", "zu"][key % 4] if key < 10_000 else "b",
            f"t{key}",
        )
        for key in keys
        if key % 10_000 < 9000
    ]
    columns = zip(*values, strict=True)
    return pa.Table.from_arrays([pa.array(column, field.type) for column, field in zip(columns, table.arrow_schema, strict=True)], schema=table.arrow_schema)


def as_duckdb_reads(rows: pa.Table) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        return connection.execute("FROM rows ORDER BY k").fetchall()


def test_the_second_scan_reads_the_same_in_other_types(store: MemberStore) -> None:
    first, second, third = (store.scan(1, [0, 1, 2], NAMES)() for _ in range(3))
    assert first.schema.types == [pa.field("", field.type).type for field in store.relation(1, [0], NAMES).schema]
    assert second.schema.types == third.schema.types == TYPES
    assert as_duckdb_reads(second) == as_duckdb_reads(first) == as_duckdb_reads(third)
    assert [chunk.dictionary.to_pylist() for chunk in second["few"].chunks] == [["", "a", "zu"], ["b"]]


def test_columns_are_taken_in_any_case_and_order(store: MemberStore) -> None:
    assert store.scan(1, [2], ["MANY", "k"])().column_names == ["many", "k"]
    with pytest.raises(UnknownColumnError):
        store.scan(1, [2], ["other"])
    with pytest.raises(TopologyChangedError):
        store.scan(1, [3], ["k"])


def test_a_scan_sees_the_rows_of_the_moment_when_it_was_opened(store: MemberStore, table: TableDef) -> None:
    opened = store.scan(1, [0], ["k", "few"])
    store.write(1, 0, rows(table, range(5000, 5003)), "upsert")
    assert opened().num_rows == 3000
    assert store.scan(1, [0], ["k", "few"])().num_rows == 3003


def test_changed_rows_are_converted_anew(store: MemberStore, table: TableDef) -> None:
    for _ in range(2):
        store.scan(1, [0], ["few"])()
    store.write(1, 0, rows(table, [5001]), "upsert")
    assert store.scan(1, [0], ["few"])()["few"].type == pa.string()
    converted = store.scan(1, [0], ["few"])()["few"]
    assert converted.type == TYPES[5]
    assert len(converted) == 3001


def test_columns_that_one_partition_does_not_convert_are_read_as_they_are(store: MemberStore, table: TableDef) -> None:
    store.write(1, 1, rows(table, range(20_000, 20_600)).set_column(5, "few", pa.array([f"other {index}" for index in range(600)])), "overwrite")
    for _ in range(2):
        store.scan(1, [0], ["few"])()
    assert store.scan(1, [0, 1], ["few"])()["few"].type == pa.string()


def test_few_rows_are_read_as_they_are(store: MemberStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_form, "_ROWS_MIN", 6001)
    assert [store.scan(1, [0, 1, 2], NAMES)().schema.types == TYPES for _ in range(3)] == [False] * 3


def test_no_rows_have_the_stored_types(store: MemberStore) -> None:
    assert [store.scan(1, [1], NAMES)() for _ in range(2)][1].schema.types == store.relation(1, [1], NAMES).schema.types


def test_converted_columns_count_as_bytes_of_the_partition(store: MemberStore) -> None:
    before = store.stats()[0].nbytes
    for _ in range(2):
        store.scan(1, [0], ["long", "many"])()
    assert store.stats()[0].nbytes - before == pytest.approx(3000 * 8, rel=0.1)
