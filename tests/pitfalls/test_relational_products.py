"""Joins x conditions and derived tables x conditions, compared with DuckDB: where a filter may pass an operator, and
where a key may pass a join.

There are some 3,100 statements; ``make test`` draws 50 of them with the seed of ``SECATEUR_SEED``, and
``make test-long`` 2,000.
"""

from __future__ import annotations

import os
import random
from itertools import product

import pytest

from worlds import World, check

DRAWN = int(25 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
KINDS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
JOINS = [
    "x.a = y.a",
    "y.a = x.a AND x.b = y.b",
    "x.a + 0 = y.a",
    "x.a = y.a + 1",
    "x.a IS NOT DISTINCT FROM y.a",
    "x.a = y.a OR x.b = y.b",
    "x.b = y.b COLLATE NOCASE",
    "x.b = lower(y.b)",
    "x.a = y.v",
    "x.a = y.a AND y.a = x.v/10",
    "x.a::VARCHAR = y.a::VARCHAR",
]
CONDITIONS = [
    "x.a = 1",
    "y.a = 1",
    "x.a = 1 AND y.b = 'a'",
    "x.b = 'A'",
    "y.b = 'a'",
    "x.a = 1 OR y.a = 2",
    "x.a IS NULL",
    "y.a IS NULL",
    "x.a IN (1,2) AND y.a IN (2,3)",
    "NOT (x.a = 1)",
    "x.a = y.a AND x.a = 1",
    "coalesce(x.a, y.a) = 1",
    "x.a = 1 AND y.a = 2",
    "y.a <> 1",
    "(x.a = 1) IS NOT TRUE",
    "y.b LIKE 'a%' AND x.a=1",
]
DERIVED = [
    "(SELECT a, b, v FROM t)",
    "(SELECT a AS b, b AS a, v FROM t)",
    "(SELECT a + 1 AS a, b, v FROM t)",
    "(SELECT DISTINCT a, b, 1 AS v FROM t)",
    "(SELECT a, max(b) AS b, count(*) AS v FROM t GROUP BY a)",
    "(SELECT a, b, v FROM t ORDER BY a, b, c LIMIT 30)",
    "(SELECT a, b, v FROM t ORDER BY a, b, c OFFSET 30)",
    "(SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b, c) AS v FROM t)",
    "(SELECT a, b, row_number() OVER (ORDER BY a, b, c) AS v FROM t)",
    "(SELECT a, b, v FROM t UNION ALL SELECT a, b, v FROM t2)",
    "(SELECT a, b, v FROM t UNION SELECT v, b, a FROM t2)",
    "(SELECT a, b, v FROM t EXCEPT SELECT a, b, a*10 FROM t2)",
    "(SELECT a, b, v FROM t INTERSECT SELECT a, b, a * 10 FROM t2)",
    "(SELECT b COLLATE NOCASE AS b, a, v FROM t)",
    "(SELECT x.a, y.b, x.v FROM t x LEFT JOIN t2 y ON x.a = y.a AND x.b = y.b)",
    "(SELECT y.a, x.b, x.v FROM t x LEFT JOIN t2 y ON x.a = y.a AND x.b = y.b)",
    "(SELECT a, b, v FROM t x WHERE EXISTS (SELECT 1 FROM t2 y WHERE y.a = x.a AND y.b = 'a'))",
    "(SELECT a, b, v FROM t x WHERE a NOT IN (SELECT a FROM t2 WHERE b = 'a'))",
    "(SELECT a, b, v FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY a, c) = 1)",
    "(SELECT a, b, v, unnest([1, 2]) AS k FROM t)",
    "(SELECT unnest([1, 2]) AS a, b, v FROM t)",
    "(SELECT a, b, sum(v) AS v FROM t GROUP BY GROUPING SETS ((a, b), (a), ()))",
    "(SELECT a, b, sum(v) AS v FROM t GROUP BY ROLLUP (a, b))",
    "(SELECT DISTINCT ON (b) a, b, v FROM t ORDER BY b, a, c)",
    "(SELECT a::VARCHAR AS b, b AS q, a, v FROM t)",
    "(SELECT a, b, v FROM t WHERE random() < 2)",
    "(SELECT 1 AS a, b, v FROM t)",
    "(SELECT a, b, v FROM t TABLESAMPLE 100%)",
    "(SELECT CAST(a AS BIGINT) AS a, b, v FROM t)",
    "(SELECT a, a AS b, v FROM t)",
    "(SELECT -a AS a, b, v FROM t)",
    "(SELECT a, lower(b) AS b, v FROM t)",
]
FILTERS = [
    "a = 1",
    "b = 'a'",
    "a = 1 AND b = 'a'",
    "a IS NULL",
    "a IS NULL OR b = 'a'",
    "NOT (a = 1)",
    "v = 1 AND a = 1",
    "b = 'A'",
    "a IN (1, 2) AND v > 0",
    "a IS DISTINCT FROM 1",
    "b = '1'",
]
AROUND = [
    "SELECT count(*), sum(v) FROM {derived} s WHERE {filter}",
    "WITH s AS {derived} SELECT count(*), sum(v) FROM s WHERE {filter}",
    "SELECT count(*), sum(s.v) FROM {derived} s LEFT JOIN t2 z ON z.a = s.a WHERE s.{filter}",
    "SELECT count(*), sum(z.v) FROM t2 z LEFT JOIN {derived} s ON z.a = s.a WHERE s.{filter}",
    "SELECT count(*), sum(z.v) FROM t2 z WHERE z.a IN (SELECT a FROM {derived} s WHERE {filter})",
    "SELECT count(*), sum(z.v) FROM t2 z WHERE z.a NOT IN (SELECT a FROM {derived} s WHERE {filter} AND a IS NOT NULL)",
    "SELECT count(*), sum(z.v) FROM t2 z WHERE EXISTS (SELECT 1 FROM {derived} s WHERE s.{filter} AND s.a = z.a)",
]
OTHER_TYPES = [
    ("u", "x.a = y.a", ["x.a = 1", "y.a = '1'", "y.a = '01'", "x.a = 1 AND y.a = '01'"]),
    (
        "wide",
        "x.a = y.a AND x.c = y.ts",
        [
            "x.a = 1",
            "y.a = 1",
            "y.ts = TIMESTAMP '2024-01-01 12:00:00'",
            "x.c = DATE '2024-01-02'",
            "y.ts = DATE '2024-01-02'",
        ],
    ),
    (
        "exact",
        "x.a = y.n AND x.c = y.d",
        ["x.a = 1", "y.n = 1.0", "y.n = 1", "x.c = DATE '2024-01-02'", "y.d = '2024-01-02'"],
    ),
]


def _statements() -> list[str]:
    joins = [
        f"SELECT count(*), sum(x.a), sum(y.a), sum(x.v) FROM t x {kind} t2 y ON {on} WHERE {where}"
        for kind, on, where in product(KINDS, JOINS, CONDITIONS)
    ]
    types = [
        f"SELECT count(*), sum(x.a), sum(x.v) FROM t x {kind} {table} y ON {on} WHERE {where}"
        for kind in KINDS
        for table, on, all_ in OTHER_TYPES
        for where in all_
    ]
    around = [
        text.format(derived=derived, filter=filter_)
        for text, derived, filter_ in product(AROUND, DERIVED, FILTERS)
        if "s." not in text or "NOT (" not in filter_
    ]
    return random.Random(int(os.environ.get("SECATEUR_SEED", "0"))).sample(joins + types + around, DRAWN)


@pytest.fixture(scope="module")
def products(world: World) -> World:
    rows = (
        "SELECT x, y, DATE '2024-01-01' + CAST(x + 4 AS INTEGER) % 3, x FROM range(0, 6) r(x), (VALUES ('a'), ('01'),"
        " ('b'), ('1')) q(y)"
    )
    keys = "PRIMARY KEY (a, b, c)) PARTITION BY HASH (a) PARTITIONS 7, HASH (b) PARTITIONS 5"
    world.fill(f"CREATE TABLE t2 (a INTEGER, b VARCHAR, c DATE, v BIGINT, {keys}", rows)
    world.fill(
        "CREATE TABLE wide (a BIGINT, b VARCHAR, ts TIMESTAMP, PRIMARY KEY (a, b, ts)) PARTITION BY HASH (a) PARTITIONS"
        " 7, HASH (ts) PARTITIONS 3",
        "SELECT x, y, TIMESTAMP '2024-01-01' + CAST(x AS INTEGER) * INTERVAL 12 HOUR FROM range(-1, 6) r(x), (VALUES"
        " ('a'), ('01')) q(y)",
    )
    world.fill(
        "CREATE TABLE exact (n DECIMAL(10,1), d DATE, PRIMARY KEY (n, d)) PARTITION BY HASH (n) PARTITIONS 5, HASH (d)"
        " PARTITIONS 3",
        "SELECT x::DECIMAL(10,1) / 2, DATE '2024-01-01' + CAST(x % 3 AS INTEGER) FROM range(-2, 9) r(x)",
    )
    return world


def test_products_of_joins_derived_tables_and_conditions(products: World) -> None:
    checked = sum(check(products, sql, (), random.Random(1)) for sql in _statements())
    assert checked > DRAWN * 0.8, "DuckDB refused too many statements for the test to mean anything"
