"""Statements that run in stages on three members, with nothing gathered for being small: their rows are DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import secateur
from secateur.planner import CostModel

TABLES = {
    "CREATE TABLE a (k INTEGER PRIMARY KEY, i INTEGER)": "HASH (k) PARTITIONS 5",
    "CREATE TABLE b (k INTEGER PRIMARY KEY, d DOUBLE)": "HASH (k) PARTITIONS 7",
    "CREATE TABLE s (k INTEGER PRIMARY KEY, v VARCHAR)": "HASH (k) PARTITIONS 3",
}
ROWS = (
    "INSERT INTO a SELECT n, n % 4 FROM range(12) r(n)",
    "INSERT INTO b SELECT n, n % 3 + 0.5 FROM range(4, 20) r(n)",
    "INSERT INTO s SELECT n, 'v' || n % 5 FROM range(8, 16) r(n)",
)
BOTH = "SELECT i AS x FROM a UNION ALL SELECT d FROM b"
UNIONS = (
    f"{BOTH} UNION ALL SELECT max(v) FROM s",
    f"({BOTH}) UNION ALL SELECT max(v) FROM s",
    f"(({BOTH})) UNION ALL (SELECT max(v) FROM s)",
    f"({BOTH} ORDER BY ALL LIMIT 30) UNION ALL SELECT max(v) FROM s",
    f"SELECT max(v) AS x FROM s UNION ALL ({BOTH})",
    f"SELECT * FROM ({BOTH}) q UNION ALL SELECT max(v) FROM s",
    "(WITH w AS (SELECT max(v) AS x FROM s) SELECT i AS x FROM a UNION ALL SELECT d FROM b) UNION ALL SELECT 'y'",
    "(WITH w AS (SELECT i AS x FROM a) SELECT x FROM w UNION ALL SELECT d FROM b) UNION ALL SELECT max(v) FROM s",
    "SELECT i AS x FROM a UNION SELECT d FROM b UNION SELECT max(v) FROM s",
    "SELECT i AS x FROM a UNION ALL BY NAME SELECT d AS x FROM b UNION ALL BY NAME SELECT max(v) AS x FROM s",
    "SELECT i AS x FROM a UNION BY NAME SELECT d AS x FROM b UNION BY NAME SELECT max(v) AS x FROM s",
    f"SELECT x, count(*) FROM ({BOTH} UNION ALL (SELECT max(v) FROM s)) q GROUP BY x",
)
FROM_FIRST = (
    "FROM a LEFT JOIN b ON a.k = b.k SELECT a.k, b.d WHERE a.i > 1",
    "FROM a RIGHT JOIN s ON a.k = s.k SELECT a.i, s.v",
    "FROM a x FULL JOIN b y ON x.i = y.k LEFT JOIN s ON y.k = s.k SELECT x.k, y.d, s.v",
    "FROM a SEMI JOIN b ON a.k = b.k SELECT i, k",
    "FROM a JOIN b USING (k)",
    "FROM a LEFT JOIN s USING (k) SELECT v, count(*) GROUP BY v",
    "SELECT (FROM a LEFT JOIN b USING (k) SELECT max(k)), count(*) FROM s",
    "FROM (FROM a LEFT JOIN b ON a.k = b.k SELECT a.k, d) q ANTI JOIN s ON q.k = s.k SELECT q.k, d",
    "FROM a LEFT JOIN LATERAL (SELECT max(v) AS m FROM s WHERE s.k = a.k) l ON true SELECT a.k, l.m",
    "WITH w AS (FROM b LEFT JOIN s USING (k) SELECT k, v) FROM a LEFT JOIN w ON a.k = w.k SELECT a.i, w.v",
)


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[secateur.Connection, duckdb.DuckDBPyConnection]]:
    with (
        secateur.start(members=3, runtime="embedded", cost_model=CostModel(gather_statement_bytes_max=0)) as cluster,
        cluster.connect() as connection,
        duckdb.connect() as duck,
    ):
        for table, scheme in TABLES.items():
            connection.execute(f"{table} PARTITION BY {scheme}")
            duck.execute(table)
        for rows in ROWS:
            connection.execute(rows)
            duck.execute(rows)
        yield connection, duck


@pytest.mark.parametrize("sql", [*UNIONS, *FROM_FIRST])
def test_rows_are_those_of_duckdb(both: tuple[secateur.Connection, duckdb.DuckDBPyConnection], sql: str) -> None:
    connection, duck = both
    assert sorted(map(repr, connection.execute(sql).fetchall())) == sorted(map(repr, duck.execute(sql).fetchall()))
    (stages,) = [
        row for (row,) in connection.execute(f"EXPLAIN {sql}").fetchall() if row.startswith("when distributed")
    ]
    assert "reads back" not in stages


@pytest.mark.parametrize("sql", FROM_FIRST[:6])
def test_from_first_is_placed_in_stages(both: tuple[secateur.Connection, duckdb.DuckDBPyConnection], sql: str) -> None:
    lines = [row for (row,) in both[0].execute(f"EXPLAIN {sql}").fetchall()]
    assert any(line.startswith("when distributed: in ") for line in lines), lines
