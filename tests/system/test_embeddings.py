"""Vectors as lists of a fixed length: searched by distance, bound as parameters, refused with another length."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import secateur
from secateur.errors import DataError, Error, NotSupportedError

WIDTH = 16
TENANTS = 8
VECTORS = np.random.default_rng(7).standard_normal((400, WIDTH)).astype("f4")
NEAREST = (
    f"SELECT id, array_cosine_distance(v, $q::FLOAT[{WIDTH}]) AS d FROM {{}} WHERE tenant = $t AND kind = 'a'"
    f" ORDER BY array_cosine_distance(v, $q::FLOAT[{WIDTH}]), id LIMIT 10"
)


@pytest.fixture
def rows() -> pa.Table:
    numbers = np.arange(len(VECTORS))
    return pa.table(
        {
            "tenant": pa.array(numbers % TENANTS, pa.int32()),
            "id": pa.array(numbers, pa.int32()),
            "kind": ["a" if number % 3 else "b" for number in numbers],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), WIDTH),
        }
    )


@pytest.fixture
def documents(conn: secateur.Connection, table_name: str, rows: pa.Table) -> str:
    conn.execute(
        f"CREATE TABLE {table_name} (tenant INTEGER, id INTEGER, kind VARCHAR, v FLOAT[{WIDTH}],"
        " PRIMARY KEY (tenant, id)) PARTITION BY HASH (tenant) PARTITIONS 16"
    )
    conn.table(table_name).load(rows, mode="append")
    return table_name


@pytest.mark.parametrize(
    "make", [np.asarray, list, tuple, lambda v: np.asarray(v, "f8"), lambda v: list(map(float, v))]
)
def test_the_nearest_of_one_tenant_are_found_on_one_member(
    conn: secateur.Connection, documents: str, rows: pa.Table, make: Any
) -> None:
    given = {"q": make(VECTORS[10]), "t": 2}
    cursor = conn.execute(NEAREST.format(documents), given)
    found = cursor.fetchall()
    with duckdb.connect() as oracle:
        oracle.register("rows", rows)
        assert found == oracle.execute(NEAREST.format("rows"), {"q": VECTORS[10].tolist(), "t": 2}).fetchall()
    assert cursor.stats.execution == "local"
    assert (cursor.stats.members_touched, cursor.stats.partitions_read) == (1, 1)


@pytest.mark.parametrize("pruning", ["on", "off", "verify"])
def test_the_nearest_of_all_tenants(conn: secateur.Connection, documents: str, rows: pa.Table, pruning: str) -> None:
    sql = f"SELECT tenant, id FROM {{}} ORDER BY array_distance(v, $q::FLOAT[{WIDTH}]), id LIMIT 25"
    conn.execute(f"SET pruning = {pruning}")
    with duckdb.connect() as oracle:
        oracle.register("rows", rows)
        expected = oracle.execute(sql.format("rows"), {"q": VECTORS[3].tolist()}).fetchall()
    assert conn.execute(sql.format(documents), {"q": VECTORS[3]}).fetchall() == expected


def test_every_write_takes_lists_tuples_and_arrays(conn: secateur.Connection, documents: str) -> None:
    insert, table = f"INSERT INTO {documents} VALUES (?, ?, ?, ?)", conn.table(documents)
    vectors = [VECTORS[0], VECTORS[0].tolist(), tuple(VECTORS[0].tolist()), VECTORS[0].astype("f8")]
    for number, vector in enumerate(vectors):
        conn.execute(insert, [100, number, "a", vector])
        table.put({"tenant": 101, "id": number, "kind": "a", "v": vector})
        conn.execute(f"UPDATE {documents} SET v = ? WHERE tenant = 2 AND id = {2 + 8 * number}", [vector])
        conn.execute(f"{insert} ON CONFLICT DO UPDATE SET v = excluded.v", [3, 3 + 8 * number, "a", vector])
    conn.executemany(insert, [[102, number, "a", vector] for number, vector in enumerate(vectors)])
    table.put_many([{"tenant": 103, "id": n, "kind": "a", "v": vector} for n, vector in enumerate(vectors)])
    table.load([{"tenant": 104, "id": n, "kind": "a", "v": vector} for n, vector in enumerate(vectors)], mode="append")
    frame = {"tenant": 105, "id": range(4), "kind": "a", "v": vectors}
    table.load(pd.DataFrame(frame), mode="append")
    listed = pl.DataFrame({**frame, "v": [VECTORS[0].tolist()] * 4}, strict=False)
    table.load(listed.with_columns(tenant=pl.lit(106)), mode="append")
    where = "tenant >= 100 OR tenant IN (2, 3) AND id IN (2, 10, 18, 26, 3, 11, 19, 27)"
    found = conn.execute(f"SELECT v FROM {documents} WHERE {where}").fetchall()
    assert found == [(VECTORS[0].tolist(),)] * (7 * 4 + 2 * 4)
    assert table.get({"tenant": 103, "id": 1})["v"] == VECTORS[0].tolist()


@pytest.mark.parametrize("length", [WIDTH - 1, WIDTH + 1, 0])
def test_another_length_is_refused_and_stores_nothing(conn: secateur.Connection, documents: str, length: int) -> None:
    vector, table = np.ones(length).tolist(), conn.table(documents)
    row = {"tenant": 100, "id": 1, "kind": "a", "v": vector}
    writes = [
        lambda: conn.execute(f"INSERT INTO {documents} VALUES (100, 1, 'a', ?)", [vector]),
        lambda: conn.execute(f"INSERT INTO {documents} VALUES (100, 1, 'a', {vector})"),
        lambda: conn.executemany(f"INSERT INTO {documents} VALUES (100, ?, 'a', ?)", [(1, VECTORS[0]), (2, vector)]),
        lambda: conn.execute(f"UPDATE {documents} SET v = ?", [vector]),
        lambda: conn.execute(f"UPDATE {documents} SET v = {vector} WHERE tenant = 2 AND id = 2"),
        lambda: table.put(row),
        lambda: table.put_many([{**row, "v": VECTORS[0]}, {**row, "id": 2}]),
        lambda: table.load([row], mode="append"),
        lambda: table.load(pa.Table.from_pylist([row]), mode="append"),
        lambda: table.load(pl.DataFrame([row], schema_overrides={"v": pl.List(pl.Float32)}), mode="append"),
    ]
    for write in writes:
        for _ in range(2):  # another way, where the statement is known
            with pytest.raises(DataError, match=rf"column v.*it has {length} elements?, and the type {WIDTH}"):
                write()
    with pytest.raises(DataError, match=f"length {length} to array with length {WIDTH}"):
        conn.execute(
            f"INSERT INTO {documents} VALUES (2, 2, 'a', ?) ON CONFLICT DO UPDATE SET v = excluded.v", [vector]
        )
    assert conn.execute(f"SELECT count(*), min(len(v)) FROM {documents}").fetchall() == [(len(VECTORS), WIDTH)]


def test_numbers_are_rounded_as_duckdb_rounds_them(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, v FLOAT[3])")
    insert = f"INSERT INTO {table_name} VALUES (?, ?)"
    given = [
        [0.1, 1e-46, -0.0],
        [16777217.0, 3.4028235677973362e38, float("inf")],
        [1.1754944e-38, 19.99, float("nan")],
    ]
    conn.executemany(insert, enumerate(given))
    with duckdb.connect() as oracle:
        expected = [oracle.execute("SELECT ?::FLOAT[3]", [one]).fetchone()[0] for one in given]
    found = [tuple(v) for (v,) in conn.execute(f"SELECT v FROM {table_name} ORDER BY k").fetchall()]
    assert repr(found) == repr(expected)
    with pytest.raises(Error, match="out of range"):
        conn.execute(insert, [9, [3.5e38, 0.0, 0.0]])


def test_a_table_like_another_keeps_the_length(conn: secateur.Connection, table_name: str, rows: pa.Table) -> None:
    conn.create_table(table_name, like=rows, primary_key=["tenant", "id"])
    types = dict(row[:2] for row in conn.execute(f"DESCRIBE {table_name}").fetchall())
    assert types["v"] == f"FLOAT[{WIDTH}]"


@pytest.mark.parametrize("text", ["FLOAT[3]", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])
def test_they_are_no_keys_indexes_or_partitions(conn: secateur.Connection, table_name: str, text: str) -> None:
    with pytest.raises(Error, match="cannot"):
        conn.execute(f"CREATE TABLE {table_name} (v {text} PRIMARY KEY)")
    with pytest.raises(Error, match="cannot"):
        conn.execute(
            f"CREATE TABLE {table_name} (k INTEGER, v {text}, PRIMARY KEY (k, v)) PARTITION BY HASH (k) PARTITIONS 2"
        )
    with pytest.raises(Error, match="cannot"):
        conn.execute(
            f"CREATE TABLE {table_name} (k INTEGER, v {text}, PRIMARY KEY (k, v)) PARTITION BY HASH (v) PARTITIONS 2"
        )
    conn.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, v {text})")
    with pytest.raises(NotSupportedError, match="cannot be part of a key or index"):
        conn.execute(f"CREATE INDEX i_{table_name} ON {table_name} (v)")
