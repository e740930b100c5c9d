"""ORDER BY of many rows: members sort what they have, and the coordinator merges.

The order is DuckDB's, whatever the type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import secateur
from secateur.client import Connection
from secateur.engine.kernels.duckdb import default_kernel
from secateur.planner import CostModel

SPECIAL = "WHEN 0 THEN NULL WHEN 1 THEN 'nan' WHEN 2 THEN '-inf' WHEN 3 THEN 'inf' WHEN 4 THEN '-0.0' WHEN 5 THEN '0.0'"
COLUMNS = {
    "b": ("BOOLEAN", "CASE i % 3 WHEN 0 THEN NULL ELSE i % 2 = 0 END"),
    "i": ("TINYINT", "CASE WHEN i % 7 = 0 THEN NULL ELSE (i * 37) % 256 - 128 END"),
    "u": ("UBIGINT", "CASE WHEN i % 7 = 0 THEN NULL ELSE 18446744073709551615 - (i * 37) % 50 END"),
    "h": ("HUGEINT", "CASE WHEN i % 7 = 0 THEN NULL ELSE (i::HUGEINT - 100) * 1000000000000000000000000000000 END"),
    "f": (
        "FLOAT",
        f"CASE i % 9 {SPECIAL} ELSE (i - 100)::VARCHAR END",
    ),
    "d": ("DOUBLE", f"CASE i % 9 {SPECIAL} ELSE ((i - 100) / 7)::VARCHAR END"),
    "m": ("DECIMAL(10, 3)", "CASE WHEN i % 7 = 0 THEN NULL ELSE ((i * 37) % 100 - 50) / 8 END"),
    "w": (
        "DECIMAL(38, 5)",
        "CASE WHEN i % 7 = 0 THEN NULL ELSE ((i * 37) % 100 - 50)::DECIMAL(38, 5) * 100000000000000000000 END",
    ),
    "s": (
        "VARCHAR",
        (
            "CASE i % 9 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'ä' WHEN 3 THEN 'z' WHEN 4 THEN 'Z' WHEN 5 THEN"
            " chr(0) || i ELSE repeat('x', i) END"
        ),
    ),
    "x": ("BLOB", "CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE ('\\xFF\\x00' || i)::BLOB END"),
    "g": ("UUID", "CASE WHEN i % 7 = 0 THEN NULL ELSE md5(i::VARCHAR)::UUID END"),
    "da": ("DATE", "CASE WHEN i % 7 = 0 THEN NULL ELSE DATE '1970-01-01' + ((i * 37) % 100 - 50)::INTEGER END"),
    "ts": (
        "TIMESTAMP",
        "CASE WHEN i % 7 = 0 THEN NULL ELSE TIMESTAMP '1970-01-01' + to_microseconds(((i * 37) % 100 - 50) * 1000) END",
    ),
    "tz": (
        "TIMESTAMP WITH TIME ZONE",
        "CASE WHEN i % 7 = 0 THEN NULL ELSE make_timestamptz(((i * 37) % 100 - 50) * 1000) END",
    ),
    "l": ("INTEGER[]", "CASE WHEN i % 7 = 0 THEN NULL ELSE [i % 5, NULL, i] END"),
}
ROWS = 400
TABLES = {
    "t": (
        f"SELECT i::BIGINT AS id, {', '.join(f'({text})::{kind} AS {name}' for name, (kind, text) in COLUMNS.items())}"
        f" FROM range({ROWS}) AS r(i)"
    ),
    "few": "SELECT i::BIGINT AS id, i % 3 AS n FROM range(40) AS r(i)",
}


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    for name, query in TABLES.items():
        con.execute(f"CREATE TABLE {name} AS {query}")
    con.execute("CREATE TABLE nothing (id BIGINT, n BIGINT)")
    return con


@pytest.fixture(scope="module")
def conn() -> Iterator[Connection]:
    with (
        secateur.start(members=3, runtime="embedded", cost_model=CostModel(merged_bytes_min=0)) as cluster,
        cluster.connect() as conn,
    ):
        kinds = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
        conn.execute(f"CREATE TABLE t (id BIGINT PRIMARY KEY, {kinds}) PARTITION BY HASH (id) PARTITIONS 7")
        conn.execute("CREATE TABLE few (id BIGINT PRIMARY KEY, n BIGINT) PARTITION BY RANGE (id) SPLIT AT (10, 20)")
        conn.execute("CREATE TABLE nothing (id BIGINT PRIMARY KEY, n BIGINT) PARTITION BY HASH (id) PARTITIONS 7")
        for name, query in TABLES.items():
            conn.table(name).load(default_kernel().run(query, {}))
        yield conn


def is_merged(conn: Connection, sql: str) -> bool:
    return "merge " in str(conn.explain(sql))


def texts(rows: list[Any]) -> list[str]:
    return list(map(str, rows))  # NaN is not equal to itself, and 0.0 is to -0.0


@pytest.mark.parametrize("column", COLUMNS)
def test_every_type(conn: Connection, oracle: duckdb.DuckDBPyConnection, column: str) -> None:
    for direction in ("ASC NULLS LAST", "DESC NULLS LAST", "ASC NULLS FIRST", "DESC NULLS FIRST"):
        sql = f"SELECT id FROM t ORDER BY {column} {direction}, id DESC"
        assert is_merged(conn, sql) is (column != "l")
        assert conn.execute(sql).fetchall() == oracle.execute(sql).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT d, id FROM t ORDER BY ALL", id="all"),
        pytest.param("SELECT s, id FROM t ORDER BY 1 DESC, 2", id="by position"),
        pytest.param("SELECT id AS m, m AS id FROM t ORDER BY t.id DESC", id="names that are exchanged"),
        pytest.param("SELECT id + 1 AS c0, -id AS c1 FROM t ORDER BY c1, c0", id="names of the stages"),
        pytest.param("SELECT id FROM t ORDER BY s || 'x', d IS NULL, -id", id="expressions"),
        pytest.param("SELECT id, id FROM t ORDER BY id % 5, id, id % 5 DESC", id="one twice"),
        pytest.param("SELECT id, d FROM t WHERE d > 3 ORDER BY d, id", id="some rows"),
        pytest.param("SELECT id FROM t WHERE id > 4000 ORDER BY id", id="no rows"),
        pytest.param("SELECT * FROM nothing ORDER BY n, id", id="an empty table"),
        pytest.param("SELECT id FROM few ORDER BY id DESC", id="a range at each member"),
        pytest.param(
            "SELECT id, count(*) AS n FROM t GROUP BY id ORDER BY id % 3, id",
            id="groups, which the members do not share",
        ),
        pytest.param("SELECT t.id, n FROM t JOIN few ON t.id % 40 = few.id ORDER BY n DESC, t.id", id="a join"),
        pytest.param(
            "SELECT t.id, n FROM t LEFT JOIN few USING (id) ORDER BY n DESC NULLS FIRST, s, t.id",
            id="a join by what is not selected",
        ),
        pytest.param("SELECT t.id FROM t JOIN nothing USING (id) ORDER BY 1", id="a join of nothing"),
        pytest.param(
            "SELECT id, (SELECT max(n) FROM few f WHERE f.id = t.id % 40) AS n FROM t ORDER BY n, id", id="a subquery"
        ),
        pytest.param("SELECT id FROM (SELECT id, s FROM t ORDER BY s) ORDER BY id DESC", id="an order inside"),
        pytest.param(
            "SELECT id, sum(n) OVER (ORDER BY id) AS r FROM (SELECT id, n FROM few ORDER BY n) ORDER BY r DESC, id",
            id="a window over an order",
        ),
        pytest.param("SELECT id FROM t ORDER BY id OFFSET 7", id="OFFSET"),
        pytest.param("SELECT id FROM t ORDER BY id LIMIT 50 OFFSET 7", id="LIMIT"),
        pytest.param("SELECT DISTINCT n FROM few ORDER BY n DESC", id="DISTINCT"),
        pytest.param(
            "(SELECT id FROM t ORDER BY id DESC LIMIT 3) UNION ALL (SELECT n FROM few) ORDER BY 1", id="UNION"
        ),
    ],
)
def test_statements(conn: Connection, oracle: duckdb.DuckDBPyConnection, sql: str) -> None:
    assert texts(conn.execute(sql).fetchall()) == texts(oracle.execute(sql).fetchall())


@pytest.mark.parametrize(
    ("sql", "merged"),
    [
        ("SELECT id FROM t ORDER BY id", True),
        ("SELECT t.id FROM t JOIN few ON t.id = few.n ORDER BY t.s", True),
        ("SELECT id FROM t ORDER BY id LIMIT 5", False),
        ("SELECT id FROM t ORDER BY id OFFSET 5", False),
        ("SELECT s, count(*) FROM t GROUP BY s ORDER BY s", False),
        ("SELECT DISTINCT s FROM t ORDER BY s", False),
    ],
)
def test_what_is_merged(conn: Connection, sql: str, merged: bool) -> None:
    assert is_merged(conn, sql) is merged


def test_what_a_merge_costs_is_told(conn: Connection) -> None:
    told = "\n".join(line for (line,) in conn.execute("EXPLAIN ANALYZE SELECT id, s FROM t ORDER BY s"))
    assert f"stage merge scan t: {ROWS} rows" in told


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        ("LIMIT 0", 0),
        ("LIMIT 5", 5),
        ("LIMIT 390 OFFSET 7", 390),
        ("LIMIT 50 OFFSET 380", 20),
        ("OFFSET 395", 5),
        ("LIMIT 500", ROWS),
        ("LIMIT ?", 9),
    ],
)
@pytest.mark.parametrize(
    "of",
    ["SELECT id, d, s FROM t", "SELECT t.id, f.n, t.d FROM t JOIN few f ON t.id % 40 = f.id"],
    ids=["one table", "a join"],
)
def test_some_rows_of_no_order(
    conn: Connection, oracle: duckdb.DuckDBPyConnection, of: str, limit: str, count: int
) -> None:
    rows = texts(conn.execute(f"{of} {limit}", [9] * limit.count("?")).fetchall())
    assert len(set(rows)) == len(rows) == count
    assert set(rows) <= set(texts(oracle.execute(of).fetchall()))
