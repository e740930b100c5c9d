"""Statements that were answered wrongly because a column or an aggregate was not where the analysis looked for it.

Each is compared with DuckDB.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from worlds import World, check

TABLES = {
    "CREATE TABLE t (a INTEGER, b VARCHAR, c DATE, v BIGINT, PRIMARY KEY (a, b, c)) PARTITION BY HASH (a)"
    " PARTITIONS 7": (
        """
    SELECT x, y, DATE '2024-01-01' + CAST(x + 3 AS INTEGER) % 3, CASE WHEN x = 2 THEN NULL ELSE (x + 5) % 6 END
    FROM range(-2, 6) r(x), (VALUES ('a'), ('A'), ('1'), (''), ('b')) q(y)
    """
    ),
    "CREATE TABLE u (a INTEGER, b VARCHAR, c DATE, v BIGINT, PRIMARY KEY (a, b, c)) PARTITION BY HASH (b)"
    " PARTITIONS 3, RANGE (a) SPLIT AT (0, 2, 4)": (
        """
    SELECT x, y, DATE '2024-01-01' + CAST(x + 3 AS INTEGER) % 4, CASE WHEN x % 3 = 0 THEN NULL ELSE x END
    FROM range(0, 8) r(x), (VALUES ('a'), ('A'), ('1')) q(y)
    """
    ),
    "CREATE TABLE n (k BIGINT, s TINYINT, PRIMARY KEY (k, s)) PARTITION BY HASH (k) PARTITIONS 5, HASH (s)"
    " PARTITIONS 3": (
        """
    SELECT x, x % 3 FROM range(-3, 9) r(x)
    """
    ),
    "CREATE TABLE small (a INTEGER PRIMARY KEY, b VARCHAR) REPLICATED": "SELECT x, 'a' FROM range(4) r(x)",
}

TYPES = {
    "a function of the type above a union": (
        "SELECT * FROM (SELECT a FROM t UNION ALL SELECT k FROM n) q WHERE typeof(a) = 'BIGINT'"
    ),
    "bits of the wider type": "SELECT * FROM (SELECT a FROM t UNION ALL SELECT k FROM n) q WHERE bit_count(a) = 64",
    "no overflow in the wider type": "SELECT * FROM (SELECT s FROM n UNION ALL SELECT k FROM n) q WHERE s * 100 > 200",
    "the wider of two merged columns": (
        "SELECT a FROM (SELECT k AS a FROM n) x FULL JOIN t USING (a) WHERE typeof(a) = 'BIGINT'"
    ),
}
NAMES = {
    "a mention that renames some columns of a definition with names": (
        "WITH w(x, v, a) AS (SELECT b, a, v FROM t) SELECT * FROM w AS z(y) WHERE v = 1",
        "WITH w(x, v, a) AS (SELECT b, a, v FROM t) SELECT * FROM w AS z(y) WHERE a = 1",
    ),
    "a column beside another one of its name that USING has merged": (
        (
            "SELECT * FROM (SELECT * FROM t x JOIN u y USING (a), t z) q(c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11)"
            " WHERE c8 = 1"
        ),
        (
            "SELECT * FROM (SELECT * FROM t z, t x LEFT JOIN u y USING (a)) q(c1, c2, c3, c4, c5, c6, c7, c8, c9, c10,"
            " c11) WHERE c1 = 1"
        ),
    ),
    "COLUMNS inside of an expression stands for several columns": (
        "SELECT x, y, z FROM (SELECT COLUMNS('[ab]')::VARCHAR, a FROM t) q(x, y, z) WHERE y = 'a'",
        "SELECT * FROM (SELECT COLUMNS('[av]') + 0, a FROM t) q(x, y, z) WHERE y = 4",
        "SELECT * FROM (SELECT DISTINCT ON (2) COLUMNS('[bc]'), a FROM t ORDER BY b, c, a) q(p, q, r) WHERE r = 1",
    ),
    "ON sees what is in front of a comma, before what is around": (
        (
            "SELECT count(*) FROM t WHERE t.a = 2 AND EXISTS (SELECT 1 FROM (SELECT 3 AS a) t, u y LEFT JOIN n ON t.a ="
            " n.k WHERE n.k IS NOT NULL)"
        ),
    ),
    "a name inside of a list comprehension": (
        "SELECT * FROM (SELECT a AS x, v FROM t) q WHERE len([x for x in [1, 2, 3] if x > 1]) = 2",
    ),
    "names are alike in the letters A to Z alone": (
        'SELECT * FROM (SELECT a AS "É", v AS "é", b FROM t) q WHERE q."é" = 4',
        'SELECT * FROM t AS "ß", u AS ss WHERE ss.a = 1',
        """
        SELECT * FROM (SELECT row_number() OVER "é" AS r, a FROM t WINDOW "é" AS (PARTITION BY b ORDER BY a, c),
          "É" AS (PARTITION BY a ORDER BY b, c))
        WHERE a = 1
        """,
        'SELECT * FROM (SELECT v AS "É", b, a FROM t) x NATURAL JOIN (SELECT a AS "é", v, b FROM u) y WHERE "é" = 1',
    ),
    "COLUMNS in a condition is about all tables": (
        "SELECT x.a, x.v, y.v FROM t x JOIN u y ON x.b = y.b WHERE COLUMNS('v') > 1 OR x.a = 1",
        "SELECT * FROM (SELECT a AS x, v FROM t) q WHERE COLUMNS('x') > 1 OR x = -1",
    ),
}
# An aggregate over no rows makes one row, so that EXISTS is TRUE for every row.
AGGREGATES = {
    "in REPLACE": "SELECT * EXCLUDE (b) REPLACE (count(*) AS a) FROM small u WHERE u.a = t.a AND u.a = 1",
    "in DISTINCT ON": "SELECT DISTINCT ON (count(*)) 1 FROM u WHERE u.a = t.a AND u.a = 1",
    "in a named window": (
        "SELECT row_number() OVER w FROM u WHERE u.a = t.a AND u.a = 1 WINDOW w AS (ORDER BY count(*))"
    ),
    "in a subquery that names columns from outside alone": (
        "SELECT (SELECT max(u.v)) FROM u WHERE u.a = t.a AND u.a = 1"
    ),
    "in a subquery of ORDER BY": "SELECT 1 FROM u WHERE u.a = t.a AND u.a = 1 ORDER BY (SELECT max(u.v))",
}
WINDOWS = {
    "in DISTINCT ON": (
        "SELECT * FROM (SELECT DISTINCT ON (a, row_number() OVER (ORDER BY a, c, b) // 7) a, b, c FROM t ORDER BY a, b,"
        " c) WHERE a = 3"
    ),
}
MISREAD = (Path(__file__).parent / "misread" / "statements.sql").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def tables() -> World:
    world = World()
    for ddl, rows in TABLES.items():
        world.fill(ddl, rows)
    return world


@pytest.mark.parametrize("sql", [pytest.param(sql, id=name) for name, sql in TYPES.items()])
def test_a_condition_is_evaluated_in_the_type_that_the_column_has_there(tables: World, sql: str) -> None:
    assert check(tables, sql, (), random.Random(1))


@pytest.mark.parametrize(
    "sql",
    [pytest.param(sql, id=f"{name} {number}") for name, listed in NAMES.items() for number, sql in enumerate(listed)],
)
def test_a_name_means_what_duckdb_takes_it_for(tables: World, sql: str) -> None:
    assert check(tables, sql, (), random.Random(1))


@pytest.mark.parametrize("subquery", [pytest.param(subquery, id=name) for name, subquery in AGGREGATES.items()])
def test_an_aggregate_without_groups_is_seen_wherever_it_stands(tables: World, subquery: str) -> None:
    assert check(tables, f"SELECT count(*) FROM t WHERE EXISTS ({subquery})", (), random.Random(1))


@pytest.mark.parametrize("sql", [pytest.param(sql, id=name) for name, sql in WINDOWS.items()])
def test_a_window_is_seen_wherever_it_stands(tables: World, sql: str) -> None:
    assert check(tables, sql, (), random.Random(1))


@pytest.mark.parametrize(
    "sql", [pytest.param(sql, id=str(number)) for number, sql in enumerate(MISREAD, 1) if not sql.startswith("--")]
)
@pytest.mark.sampled(one_in=7)
def test_a_statement_that_tries_to_be_misread(tables: World, sql: str) -> None:
    assert check(tables, sql, (), random.Random(1)), f"DuckDB refuses {sql}"
