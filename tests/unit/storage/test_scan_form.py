from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from secateur.engine_limits import EngineLimits
from secateur.errors import TopologyChangedError, UnknownColumnError
from secateur.partitioning.tables import TableDef
from secateur.partitioning.types import from_unscaled
from secateur.storage import ChangeOperation, MemberStore

COLUMNS = {
    "k": "BIGINT",
    "short": "DECIMAL(4,1)",
    "mid": "DECIMAL(9,2)",
    "long": "DECIMAL(18,4)",
    "huge": "DECIMAL(30,2)",
    "few": "VARCHAR",
    "many": "VARCHAR",
}
NAMES = list(COLUMNS)
TYPES = [
    pa.int64(),
    pa.decimal32(4, 1),
    pa.decimal32(9, 2),
    pa.decimal64(18, 4),
    pa.decimal128(30, 2),
    pa.dictionary(pa.int16(), pa.string()),
    pa.string(),
]


@pytest.fixture
def table(make_table: Any) -> TableDef:
    described: TableDef = make_table(COLUMNS, ["k"])
    return described


@pytest.fixture
def store(table: TableDef) -> MemberStore:
    return filled(table, EngineLimits(scan_form_rows_min=1))


def filled(table: TableDef, limits: EngineLimits) -> MemberStore:
    store = MemberStore(limits=limits)
    store.create_table(table, [0, 1, 2])
    for partition, start in ((0, 0), (2, 10_000)):
        store.apply(1, partition, ChangeOperation.OVERWRITE, rows(table, range(start, start + 3000)))
    return store


def rows(table: TableDef, keys: Sequence[int]) -> pa.Table:
    def decimal(key: int, digits: int, scale: int) -> Decimal | None:
        return None if key % 7 == 3 else from_unscaled((-1) ** key * (10 ** (digits - 1) - 1 - key % 900), scale)

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
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, table.arrow_schema, strict=True)],
        schema=table.arrow_schema,
    )


def as_duckdb_reads(rows: pa.Table) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        return connection.execute("FROM rows ORDER BY k").fetchall()


def test_the_second_scan_reads_the_same_in_other_types(store: MemberStore) -> None:
    first, second, third = (store.scan(1, [0, 1, 2], NAMES)() for _ in range(3))
    assert first.schema.types == [pa.field("", field.type).type for field in store.relation(1, [0], NAMES).schema]
    assert second.schema.types == third.schema.types == TYPES
    assert as_duckdb_reads(second) == as_duckdb_reads(first) == as_duckdb_reads(third)
    assert [chunk.dictionary.to_pylist() for chunk in second["few"].chunks] == [["", "a", "zu", "b"]]


def test_columns_are_taken_in_any_case_and_order(store: MemberStore) -> None:
    assert store.scan(1, [2], ["MANY", "k"])().column_names == ["many", "k"]
    with pytest.raises(UnknownColumnError):
        store.scan(1, [2], ["other"])
    with pytest.raises(TopologyChangedError):
        store.scan(1, [3], ["k"])


def test_a_scan_sees_the_rows_of_the_moment_when_it_was_opened(store: MemberStore, table: TableDef) -> None:
    opened = store.scan(1, [0], ["k", "few"])
    store.apply(1, 0, ChangeOperation.UPSERT, rows(table, range(5000, 5003)))
    assert opened().num_rows == 3000
    assert store.scan(1, [0], ["k", "few"])().num_rows == 3003


def test_changed_rows_are_converted_anew(store: MemberStore, table: TableDef) -> None:
    for _ in range(2):
        store.scan(1, [0], ["few"])()
    store.apply(1, 0, ChangeOperation.UPSERT, rows(table, [5001]))
    assert store.scan(1, [0], ["few"])()["few"].type == pa.string()
    converted = store.scan(1, [0], ["few"])()["few"]
    assert converted.type == TYPES[5]
    assert len(converted) == 3001


def test_columns_that_one_run_does_not_convert_are_read_as_they_are(
    table: TableDef,
) -> None:
    store = filled(table, EngineLimits(scan_form_rows_min=1, scan_run_rows_min=1))
    store.apply(
        1,
        1,
        ChangeOperation.OVERWRITE,
        rows(table, range(20_000, 21_100)).set_column(5, "few", pa.array([f"other {index}" for index in range(1100)])),
    )
    for _ in range(2):
        store.scan(1, [0], ["few"])()
    scans = [store.scan(1, [0, 1], ["few"])()["few"] for _ in range(3)]
    assert [scan.type for scan in scans] == [pa.string()] * 3
    assert all(scan.equals(store.relation(1, [0, 1], ["few"])["few"]) for scan in scans)


def test_few_rows_are_read_as_they_are(table: TableDef) -> None:
    store = filled(table, EngineLimits(scan_form_rows_min=6001))
    assert [store.scan(1, [0, 1, 2], NAMES)().schema.types == TYPES for _ in range(3)] == [False] * 3


def test_no_rows_have_the_stored_types(store: MemberStore) -> None:
    assert [store.scan(1, [1], NAMES)() for _ in range(2)][1].schema.types == store.relation(1, [1], NAMES).schema.types


def test_converted_columns_count_as_bytes_of_the_partition(store: MemberStore) -> None:
    before = store.stats()[0].nbytes
    for _ in range(2):
        store.scan(1, [0], ["long", "many"])()
    assert store.stats()[0].nbytes - before == pytest.approx(3000 * 8, rel=0.1)


def chunk_rows(table: pa.Table) -> set[tuple[int, ...]]:
    return {tuple(map(len, column.chunks)) for column in table.columns}


def test_small_partitions_are_scanned_as_one_array_a_column(store: MemberStore) -> None:
    first, second, third = (store.scan(1, [0, 1, 2], NAMES)() for _ in range(3))
    assert [chunk_rows(scan) for scan in (first, second, third)] == [{(3000, 3000)}, {(6000,)}, {(6000,)}]
    assert second["k"].combine_chunks().equals(first["k"].combine_chunks())
    assert second["many"].chunk(0).buffers()[2].address == third["many"].chunk(0).buffers()[2].address


def test_large_partitions_are_scanned_without_a_copy(table: TableDef) -> None:
    store = filled(table, EngineLimits(scan_form_rows_min=1, scan_run_rows_min=3000))
    scans = [store.scan(1, [0, 1, 2], ["k", "many"])() for _ in range(3)]
    assert [chunk_rows(scan) for scan in scans] == [{(3000, 3000)}] * 3
    assert (
        scans[2]["k"].chunk(0).buffers()[1].address == store.relation(1, [0], ["k"])["k"].chunk(0).buffers()[1].address
    )


def test_a_write_makes_only_its_own_run_anew(table: TableDef) -> None:
    store = MemberStore(limits=EngineLimits(scan_form_rows_min=1, scan_run_rows_min=200))
    store.create_table(table, range(4))
    for partition in range(4):
        store.apply(1, partition, ChangeOperation.OVERWRITE, rows(table, range(100 * partition, 100 * partition + 100)))
    before = [store.scan(1, range(4), ["k"])()["k"] for _ in range(2)][1]
    store.apply(1, 1, ChangeOperation.UPSERT, rows(table, [100]))
    scans = [store.scan(1, range(4), ["k"])()["k"] for _ in range(2)]
    assert [list(map(len, scan.chunks)) for scan in (before, *scans)] == [[200, 200], [100, 100, 200], [200, 200]]
    assert scans[1].chunk(1).buffers()[1].address == before.chunk(1).buffers()[1].address
    assert scans[1].to_pylist() == list(range(400))


def test_other_partitions_are_another_run(store: MemberStore) -> None:
    assert [store.scan(1, [0, 2], ["k"])().num_rows for _ in range(2)] == [6000, 6000]
    assert [store.scan(1, [0], ["k"])()["k"].to_pylist() == list(range(3000)) for _ in range(2)] == [True, True]
    assert [len(store.scan(1, [0, 2], ["k"])()["k"]) for _ in range(2)] == [6000, 6000]


def test_joined_columns_count_as_bytes_until_a_write_replaces_them(store: MemberStore, table: TableDef) -> None:
    before = store.stats()[0].nbytes
    for _ in range(2):
        store.scan(1, [0, 2], ["k", "short"])()
    assert store.stats()[0].nbytes - before == pytest.approx(6000 * (8 + 4), rel=0.1)
    store.apply(1, 0, ChangeOperation.UPSERT, rows(table, [0]))
    store.scan(1, [0, 2], ["k"])()
    assert store.stats()[0].nbytes - before == pytest.approx(0, abs=30_000)
