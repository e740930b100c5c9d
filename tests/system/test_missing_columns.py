"""Columns that the rows of a load or a put do not name: an upsert keeps their values, everything else refuses them.

One rule for every way in. What is kept is what INSERT OR REPLACE with the same columns keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import secateur
from secateur import JobConfig, Pipeline
from secateur.connectors import table_sink
from secateur.errors import DataError, NullKeyError, ParameterError

COLUMNS = "(id INTEGER, name VARCHAR, price DOUBLE, tags VARCHAR[], PRIMARY KEY (id))"
KINDS = {
    "hash": "PARTITION BY HASH (id) PARTITIONS 5 BACKUPS 1",
    "range": "PARTITION BY RANGE (id) SPLIT AT (50) BACKUPS 1",
    "replicated": "REPLICATED",
    "feed": "PARTITION BY HASH (id) PARTITIONS 5 BACKUPS 1 WITH (change_feed = true)",
}
ROWS = {"id": list(range(100)), "name": [f"n{n}" for n in range(100)], "price": [1.0] * 100, "tags": [["t"]] * 100}
GIVEN = {"id": [99, 7, 500], "price": [9.0, None, 9.0]}
WAYS: dict[str, Callable[[secateur.Connection, str], object]] = {
    "dict": lambda conn, name: conn.table(name).load(GIVEN, "upsert"),
    "rows": lambda conn, name: conn.table(name).load(pa.table(GIVEN).to_pylist(), "upsert"),
    "arrow": lambda conn, name: conn.table(name).load(pa.table(GIVEN), "upsert"),
    "reader": lambda conn, name: conn.table(name).load(pa.table(GIVEN).to_reader(1), "upsert"),
    "pandas": lambda conn, name: conn.table(name).load(pd.DataFrame(GIVEN), "upsert"),
    "polars": lambda conn, name: conn.table(name).load(pl.DataFrame(GIVEN), "upsert"),
    "put": lambda conn, name: [conn.table(name).put(row) for row in pa.table(GIVEN).to_pylist()],
    "put_many": lambda conn, name: conn.table(name).put_many(pa.table(GIVEN).to_pylist()),
    "INSERT": lambda conn, name: conn.executemany(
        f"INSERT OR REPLACE INTO {name} (id, price) VALUES (?, ?)", list(zip(*GIVEN.values(), strict=True))
    ),
    "job": lambda conn, name: (
        Pipeline()
        .read_batches(pa.table(GIVEN))
        .write_to(table_sink(name))
        .submit(conn, JobConfig(on_member_lost="fail"))
        .result()
    ),
}


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_an_upsert_keeps_what_is_not_named(conn: secateur.Connection, table_name: str, way: str, kind: str) -> None:
    if way == "job" and kind == "replicated":
        pytest.skip("a job writes into no replicated table")
    conn.execute(f"CREATE TABLE {table_name} {COLUMNS} {KINDS[kind]}")
    conn.table(table_name).load(ROWS)
    WAYS[way](conn, table_name)
    assert conn.execute(f"SELECT * FROM {table_name} WHERE id IN (7, 8, 99, 500) ORDER BY id").fetchall() == [
        (7, "n7", None, ["t"]),
        (8, "n8", 1.0, ["t"]),
        (99, "n99", 9.0, ["t"]),
        (500, None, 9.0, None),
    ]
    assert conn.execute(f"SELECT count(*), count(name), sum(price) FROM {table_name}").fetchall() == [(101, 100, 116.0)]


def test_a_large_upsert_keeps_what_is_not_named(conn: secateur.Connection, table_name: str) -> None:
    """So large that partitions are merged as a whole, and twice: the second time over the changes of the first."""
    conn.execute(f"CREATE TABLE {table_name} {COLUMNS} {KINDS['hash']}")
    table, count = conn.table(table_name), 30_000
    table.load({"id": range(count), "name": ["old"] * count, "price": [1.0] * count, "tags": [["t"]] * count})
    table.load({"id": range(10, count + 10), "price": [2.0] * count}, "upsert")
    table.put({"id": 20, "name": "put"})
    table.load({"id": range(20, count + 20), "tags": [["u"]] * count}, "upsert")
    counted = conn.execute(
        f"SELECT name, price, tags[1], count(*) FROM {table_name} GROUP BY ALL ORDER BY min(id)"
    ).fetchall()
    assert counted == [
        ("old", 1.0, "t", 10),
        ("old", 2.0, "t", 10),
        ("put", 2.0, "u", 1),
        ("old", 2.0, "u", count - 21),
        (None, 2.0, "u", 10),
        (None, None, "u", 10),
    ]


def test_the_feed_has_whole_rows(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} {COLUMNS} {KINDS['feed']}")
    table = conn.table(table_name)
    table.put((1, "one", 1.0, ["t"]))
    changes = conn.changes(table_name)
    table.put({"id": 1, "price": 2.0})
    table.load({"id": [1, 2], "name": ["two", "two"]}, "upsert")
    seen = [
        (*(row[name] for name in ("id", "name", "price", "tags")), row["_change_type"])
        for batch in changes
        for row in batch.to_pylist()
    ]
    assert sorted(seen, key=repr) == sorted(
        [
            (1, "one", 1.0, ["t"], "update_preimage"),
            (1, "one", 2.0, ["t"], "update_postimage"),
            (1, "one", 2.0, ["t"], "update_preimage"),
            (1, "two", 2.0, ["t"], "update_postimage"),
            (2, "two", None, None, "insert"),
        ],
        key=repr,
    )


@pytest.mark.parametrize("mode", ["append", "overwrite", "overwrite_ranges", "ignore"])
@pytest.mark.parametrize("form", [dict, pa.table, pd.DataFrame, lambda rows: pa.table(rows).to_reader()])
@pytest.mark.smoke
def test_everything_else_refuses_them(conn: secateur.Connection, table_name: str, mode: Any, form: Any) -> None:
    conn.execute(f"CREATE TABLE {table_name} {COLUMNS} {KINDS['range']}")
    table = conn.table(table_name)
    table.load(ROWS)
    with pytest.raises(
        DataError, match=f"table {table_name}: the data lack name, tags: give the columns, or pass miss"
    ):
        table.load(form({"id": [500, 501], "price": [1.0, 1.0]}), mode)
    assert conn.execute(f"SELECT count(*) FROM {table_name}").fetchall() == [(100,)]
    assert table.load(form({"id": [500], "price": [1.0]}), mode, missing="null") == 1
    assert table.get(500) == (500, None, 1.0, None)


def test_null_may_be_asked_for(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} {COLUMNS} {KINDS['hash']}")
    table = conn.table(table_name)
    table.load(ROWS)
    table.load({"id": [1], "price": [2.0]}, "upsert", missing="null")
    table.put({"id": 2, "price": 2.0}, missing="null")
    table.put_many([{"id": 3, "price": 2.0}, {"id": 4, "name": "four"}], missing="null")
    table.load([{"id": 5, "price": 2.0}, {"id": 6, "name": "six"}], "upsert", missing="null")
    assert table.get_many(range(1, 7)) == [
        *((n, None, 2.0, None) for n in (1, 2, 3)),
        (4, "four", None, None),
        (5, None, 2.0, None),
        (6, "six", None, None),
    ]
    with pytest.raises(ParameterError, match="missing='zero': 'null' has the default or NULL"):
        table.put({"id": 1}, missing="zero")  # type: ignore[arg-type]


def test_rows_that_name_other_columns_are_refused(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} {COLUMNS} {KINDS['hash']}")
    table = conn.table(table_name)
    with pytest.raises(DataError, match="row 2 does not name 'name', which other rows name: load rows that name other"):
        table.load([{"id": 1, "name": "a"}, {"id": 2}], "upsert")
    with pytest.raises(ParameterError, match="of 2 rows, 1 do not name column name: put rows that name other"):
        table.put_many([{"id": 1, "name": "a"}, {"id": 2}])
    assert conn.execute(f"SELECT count(*) FROM {table_name}").fetchall() == [(0,)]


def test_what_must_not_be_null_has_to_be_there(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (id INTEGER, v VARCHAR NOT NULL, w INTEGER, PRIMARY KEY (id))")
    table = conn.table(table_name)
    table.put((1, "a", 1))
    for missing in (None, "null"):
        with pytest.raises(NullKeyError, match="v"):
            table.load({"id": [1], "w": [2]}, "upsert", missing=missing)
        with pytest.raises(NullKeyError, match="v"):
            table.put({"id": 1, "w": 2}, missing=missing)
    with pytest.raises(NullKeyError, match="column v is NOT NULL and the data lack it"):
        Pipeline().read_batches(pa.table({"id": [1], "w": [2]})).write_to(table_sink(table_name)).submit(conn).result()
    assert table.get(1) == (1, "a", 1)
