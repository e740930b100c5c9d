"""Keys with floats: every NaN is one key, and so are -0.0 and 0.0, in whatever way rows are changed or read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import secateur
from secateur import Connection
from secateur.connectors import collect

TABLE = "CREATE TABLE t (k {type}, s BIGINT, v BIGINT, PRIMARY KEY ({key}))"
KEYS = (0.0, -0.0, math.nan, -math.nan, math.inf, 1.5)
CHANGES = (
    "INSERT OR REPLACE INTO t VALUES (?, ?, ?)",
    "INSERT INTO t VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (k, s) DO UPDATE SET v = t.v + excluded.v",
    "INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (k, s) DO UPDATE SET v = excluded.v WHERE t.v < 20",
    "UPDATE t SET v = v + 1 WHERE k = ? AND s = ? AND v <> ?",
    "DELETE FROM t WHERE k = ? AND s = ? AND v > ?",
)


@pytest.fixture(scope="module", params=[("DOUBLE", "k, s"), ("FLOAT", "s, k")], ids=["DOUBLE first", "FLOAT last"])
def table(request: pytest.FixtureRequest) -> str:
    type_name, key = request.param
    return TABLE.format(type=type_name, key=key)


@pytest.fixture(scope="module")
def conn(table: str) -> Iterator[Connection]:
    with secateur.start(members=2, runtime="embedded") as cluster, cluster.connect() as connected:
        connected.execute(table + " PARTITION BY HASH (s) PARTITIONS 3 BACKUPS 1")
        yield connected


@pytest.fixture
def oracle(conn: Connection, table: str) -> Iterator[duckdb.DuckDBPyConnection]:
    conn.execute("DELETE FROM t")
    with duckdb.connect() as other:
        other.execute(table)
        yield other


def rows(database: Any) -> list[str]:
    """All rows as text, without the sign of zero: which of two equal keys stays is nobody's promise."""
    found = database.execute("SELECT k + 0, s, v FROM t ORDER BY ALL").fetchall()
    return [repr(row).replace("-0.0", "0.0") for row in found]


@pytest.mark.parametrize("sql", CHANGES)
def test_a_change_by_key(conn: Connection, oracle: duckdb.DuckDBPyConnection, sql: str) -> None:
    """ON CONFLICT DO UPDATE of a row whose key is there with NaN was refused."""
    for turn in range(2):
        for number, key in enumerate(KEYS, turn * len(KEYS)):
            for database in (conn, oracle):
                database.execute("INSERT INTO t VALUES (?, 1, 5) ON CONFLICT DO NOTHING", [math.nan])
                database.execute(sql, [key, number % 2, number])
        assert rows(conn) == rows(oracle)


@pytest.mark.parametrize("sql", CHANGES[:4])
def test_many_changes(conn: Connection, oracle: duckdb.DuckDBPyConnection, sql: str) -> None:
    given = [(key, number % 2, number) for number, key in enumerate(KEYS * 3)]
    conn.cursor().executemany(sql, given)
    for params in given:
        oracle.execute(sql, params)
    assert rows(conn) == rows(oracle)


def test_of_several_rows_with_one_key_the_first_is_inserted(
    conn: Connection, oracle: duckdb.DuckDBPyConnection
) -> None:
    sql = f"INSERT INTO t VALUES {', '.join(['(?, 0, ?)'] * len(KEYS))} ON CONFLICT DO NOTHING"
    given = [value for number, key in enumerate(KEYS) for value in (key, number)]
    for database in (conn, oracle):
        database.execute(sql, given)
    assert rows(conn) == rows(oracle)


@pytest.mark.parametrize("key", KEYS)
def test_a_job_reads_the_rows_of_a_key(conn: Connection, oracle: duckdb.DuckDBPyConnection, key: float) -> None:
    """It compared bits: the rows of 0.0 were not there for -0.0."""
    for database in (conn, oracle):
        for number, stored in enumerate(KEYS):
            database.execute("INSERT INTO t VALUES (?, ?, 0)", [stored, number])
    reading = secateur.Pipeline().read_table("t", where={"k": key}).write_to(collect())
    found = {row["s"] for row in reading.submit(conn).result().to_pylist()}
    assert found == {s for (s,) in oracle.execute("SELECT s FROM t WHERE k = ?", [key]).fetchall()}
