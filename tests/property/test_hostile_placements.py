"""Statements that are made to be placed wrongly, each with what it is about, in worlds of :mod:`placed`."""

from __future__ import annotations

import random

import pytest

from placed import EXCHANGES, exchange_model, placed_world
from worlds import World, check

TABLES = ("orders", "items", "hashed", "ranged", "single", "copied", "nothing")

SUBQUERIES = [
    "SELECT x.k FROM single x, LATERAL (SELECT max(y.k) AS c FROM items y WHERE y.j = x.k) z",
    "SELECT x.k, z.c FROM single x, (SELECT max(y.k) AS c FROM items y WHERE y.j = x.k) z",
    "SELECT x.k, z.c FROM single x LEFT JOIN LATERAL (SELECT max(y.k) AS c FROM items y WHERE y.j = x.k) z ON z.c > 0",
    "SELECT k FROM single x WHERE k NOT IN (SELECT max(y.k) FROM items y WHERE y.j = x.i)",
    "SELECT k FROM single x WHERE k NOT IN ((SELECT max(y.k) FROM items y WHERE y.j = x.i))",
    "SELECT k FROM single x WHERE k <> ALL (SELECT max(y.k) FROM items y WHERE y.j = x.i)",
    "SELECT k FROM single x WHERE k <> ALL ((SELECT max(y.k) FROM items y WHERE y.j = x.i))",
    "SELECT k FROM single x WHERE EXISTS ((SELECT max(y.k) FROM items y WHERE y.j = x.i))",
    "SELECT k FROM single x WHERE NOT EXISTS (SELECT max(y.k) FROM items y WHERE y.j = x.i)",
    "SELECT k FROM single x WHERE k IN (1, (SELECT max(y.k) FROM items y WHERE y.j = x.i))",
    "SELECT k, ARRAY(SELECT max(y.k) FROM items y WHERE y.j = x.i) FROM single x",
    "SELECT k, [(SELECT max(y.k) FROM items y WHERE y.j = x.i)] FROM single x",
    "SELECT k, (SELECT max(y.k) FROM items y WHERE y.j = x.i) + 1 FROM single x",
    "SELECT k, coalesce((SELECT sum(y.k) FROM items y WHERE y.j = x.i), -1) FROM single x",
    "SELECT k, (SELECT count(*) FROM items y WHERE y.j = x.i) FROM single x",
    "SELECT k, (SELECT sum(y.m) / count(*) FROM items y WHERE y.j = x.i) FROM single x",
    "SELECT k, (SELECT max(y.s) FROM items y WHERE y.s = x.s) FROM hashed x",
    "SELECT k, (SELECT max(y.k) FROM items y WHERE y.m = x.i) FROM orders x",
    "SELECT k, (SELECT max(y.k) FROM items y WHERE y.j = x.f) FROM orders x",
    "SELECT k FROM orders x WHERE i > (SELECT avg(y.i) FROM items y WHERE y.j = x.j AND y.k = x.i)",
    (
        "SELECT k FROM orders x WHERE i > (SELECT avg(y.i) FROM items y WHERE y.j = x.j AND EXISTS (SELECT 1 FROM"
        " hashed z WHERE z.k = y.k AND z.j = x.j))"
    ),
    (
        "SELECT k FROM orders x WHERE EXISTS (SELECT 1 FROM items y WHERE y.k = x.k AND y.i > (SELECT min(z.i) FROM"
        " hashed z WHERE z.k = x.k AND z.j = y.j))"
    ),
    "SELECT k FROM orders x WHERE EXISTS (SELECT 1 FROM items y WHERE y.i = x.i LIMIT 0)",
    "SELECT k FROM orders x WHERE EXISTS (SELECT 1 FROM items y WHERE y.i = x.i OFFSET 2)",
    "SELECT k FROM orders x WHERE i = (SELECT y.i FROM items y WHERE y.k = x.k ORDER BY ALL LIMIT 1)",
    "SELECT k FROM orders x WHERE i NOT IN (SELECT i FROM items)",
    "SELECT k FROM orders x WHERE i NOT IN (SELECT i FROM items WHERE i IS NOT NULL)",
    "SELECT k FROM orders x WHERE i NOT IN (SELECT i FROM nothing)",
    "SELECT k FROM orders x WHERE k NOT IN (SELECT y.i FROM items y WHERE y.k = x.k)",
    "SELECT k FROM orders x WHERE (k, i) NOT IN (SELECT k, i FROM items)",
    "SELECT k FROM orders x WHERE (k, j) IN (SELECT k, j FROM items)",
    "SELECT k FROM orders x WHERE (j, k) IN (SELECT k, j FROM items)",
    "SELECT k FROM orders x WHERE (k IN (SELECT k FROM items WHERE i = 1)) IS NOT TRUE",
    "SELECT k, k IN (SELECT i FROM items) AS a, EXISTS (SELECT 1 FROM hashed y WHERE y.j = x.k) AS b FROM orders x",
    "SELECT k, count(*) FROM orders x GROUP BY k HAVING count(*) > (SELECT count(*) FROM items y WHERE y.k = x.k)",
    "SELECT k, count(*) FROM orders x GROUP BY k HAVING k IN (SELECT j FROM hashed)",
    "SELECT k, j FROM orders x ORDER BY (SELECT count(*) FROM items y WHERE y.j = x.j), k, j LIMIT 3",
    "SELECT x.k FROM orders x JOIN items y ON x.k = y.k AND x.i IN (SELECT i FROM hashed)",
    (
        "SELECT x.k, y.k FROM orders x LEFT JOIN items y ON x.k = y.k AND EXISTS (SELECT 1 FROM hashed z WHERE z.j ="
        " y.j AND z.i = x.i)"
    ),
    "SELECT x.k FROM orders x LEFT JOIN items y ON x.k = y.k AND y.i > (SELECT avg(i) FROM ranged)",
    "SELECT sum((SELECT count(*) FROM items y WHERE y.k = x.k)) FROM orders x",
    "SELECT k, (SELECT max(k) FROM nothing), (SELECT count(*) FROM nothing) FROM single",
    (
        "SELECT k FROM orders WHERE k = (SELECT min(k) FROM orders) AND j IN (SELECT j FROM orders WHERE k = (SELECT"
        " max(k) FROM orders))"
    ),
    "SELECT k FROM orders x WHERE i IN (SELECT i FROM items UNION SELECT k FROM hashed EXCEPT SELECT j FROM ranged)",
    "SELECT k FROM copied x WHERE k IN (SELECT k FROM orders) AND NOT EXISTS (SELECT 1 FROM items y WHERE y.k = x.j)",
    (
        "SELECT x.k FROM (SELECT k, i FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE items.k = orders.k)) x JOIN"
        " hashed h ON h.j = x.i"
    ),
]

JOINS = [
    "SELECT x.k, y.k FROM orders x LEFT JOIN items y ON x.k = y.k WHERE x.k = 1",
    "SELECT x.k, y.k FROM orders x RIGHT JOIN items y ON x.k = y.k WHERE x.k = 1",
    "SELECT x.k, y.k FROM orders x FULL JOIN items y ON x.k = y.k WHERE x.k = 1",
    "SELECT x.k, y.k FROM orders x LEFT JOIN items y ON x.k = y.k AND x.k = 1",
    "SELECT x.k, y.k FROM orders x RIGHT JOIN items y ON x.k = y.k AND y.k = 1",
    "SELECT x.k, y.k FROM orders x FULL JOIN items y ON x.k = y.k AND x.k = 1 AND y.j = 2",
    "SELECT x.k, y.k FROM orders x FULL JOIN items y ON x.i = y.i",
    (
        "SELECT x.k, y.k FROM (SELECT * FROM orders WHERE k = 1) x FULL JOIN (SELECT * FROM items WHERE k = 2) y ON x.k"
        " = y.k"
    ),
    "SELECT x.k, y.j, z.k FROM orders x LEFT JOIN (items y FULL JOIN hashed z ON y.j = z.j) ON x.k = y.k",
    (
        "SELECT x.k FROM orders x LEFT JOIN items y ON x.k = y.k LEFT JOIN hashed z ON y.j = z.j AND z.k = x.k WHERE"
        " z.j IS NULL"
    ),
    "SELECT x.k FROM orders x ANTI JOIN items y ON x.k = y.i",
    "SELECT x.k FROM orders x ANTI JOIN nothing y ON x.k = y.k",
    "SELECT x.k FROM orders x SEMI JOIN items y USING (k) ANTI JOIN hashed z USING (j)",
    "SELECT x.k FROM copied x LEFT JOIN orders y ON x.k = y.k",
    "SELECT x.k FROM copied x ANTI JOIN orders y ON x.k = y.k",
    "SELECT x.k, y.i FROM copied x FULL JOIN orders y ON x.k = y.k",
    "SELECT x.k FROM copied x SEMI JOIN orders y ON x.k = y.k",
    "SELECT * FROM orders x JOIN items y USING (k)",
    "SELECT * FROM orders x FULL JOIN items y USING (k)",
    "SELECT k, count(*) FROM orders x FULL JOIN items y USING (k) GROUP BY k",
    "SELECT k, x.k, y.k FROM orders x FULL JOIN hashed y USING (k, j)",
    "SELECT * FROM orders x NATURAL JOIN items y",
    "SELECT * FROM single x NATURAL LEFT JOIN copied y",
    "SELECT * FROM single x NATURAL FULL JOIN nothing y",
    "SELECT k FROM orders x JOIN items y USING (k) JOIN hashed z USING (k) WHERE k IN (1, 2)",
    "SELECT x.k, y.j FROM orders x ASOF JOIN items y ON x.k = y.k AND x.i >= y.j",
    "SELECT x.k, y.j FROM orders x ASOF LEFT JOIN hashed y ON x.k = y.k AND x.i >= y.j",
    "SELECT x.k, y.j FROM orders x ASOF JOIN single y ON x.i >= y.k WHERE y.j = 1 AND x.k = 2 AND y.k < 0",
    "SELECT x.k, y.k FROM orders x JOIN items y ON x.k <= y.k AND x.j = 1",
    "SELECT count(*) FROM orders x POSITIONAL JOIN items y",
    "SELECT x.k FROM orders x, LATERAL (SELECT y.i FROM items y WHERE y.k = x.k ORDER BY ALL LIMIT 1) z",
    (
        "SELECT x.k, z.i FROM orders x LEFT JOIN LATERAL (SELECT y.i FROM hashed y WHERE y.j = x.k ORDER BY ALL LIMIT"
        " 1) z ON TRUE"
    ),
    "SELECT x.k, z.n FROM orders x, LATERAL (SELECT count(*) AS n FROM hashed y WHERE y.j = x.i) z",
    (
        "SELECT a.k FROM orders a JOIN orders b ON a.k = b.i JOIN orders c ON b.k = c.i JOIN orders d ON c.k = d.k AND"
        " c.j = d.j WHERE a.i = 1"
    ),
    "SELECT count(*) FROM orders a "
    + " ".join(f"JOIN items b{at} ON a.k = b{at}.k AND a.j = b{at}.j" for at in range(20)),
    "SELECT count(*) FROM orders a "
    + " ".join(f"LEFT JOIN {TABLES[at % 7]} b{at} ON a.k = b{at}.k AND a.j = b{at}.j" for at in range(19)),
    f"SELECT x.k FROM orders x JOIN hashed y ON x.j = y.j WHERE x.i IN ({', '.join(map(str, range(300)))})",
]

NAMES = [
    "WITH items AS (SELECT k, j FROM orders) SELECT * FROM items JOIN orders USING (k, j)",
    "WITH items AS (SELECT * FROM items WHERE i = 1) SELECT x.k FROM items x JOIN orders y ON x.k = y.k",
    (
        "WITH items AS (SELECT * FROM items), orders AS (SELECT * FROM items) SELECT x.k FROM items x JOIN orders y ON"
        " x.k = y.k"
    ),
    (
        "WITH s0 AS (SELECT k FROM orders), x0 AS (SELECT j FROM hashed) SELECT * FROM s0, x0, s0 s1 WHERE s0.k = x0.j"
        " AND s1.k = 1"
    ),
    "SELECT s0.k, x0.k, v0.j FROM orders s0 JOIN items x0 ON s0.k = x0.j JOIN hashed v0 ON v0.k = x0.i",
    "SELECT x0.k AS k0, count(*) AS a0 FROM orders x0 JOIN hashed x1 ON x0.i = x1.j GROUP BY k0",
    "SELECT q.k AS v0, q.j AS c0, q.i AS a0 FROM orders q LEFT JOIN hashed k0 ON q.i = k0.j ORDER BY ALL LIMIT 4",
    "SELECT v0, count(*) FROM (SELECT x.k AS v0, y.j AS v1 FROM orders x JOIN hashed y ON x.i = y.j) v GROUP BY ALL",
    "SELECT q.* FROM (SELECT * FROM (SELECT x.k, y.k FROM orders x JOIN hashed y ON x.i = y.j) q) q",
    "SELECT d.k_1 FROM (SELECT x.k, y.k FROM orders x JOIN hashed y ON x.i = y.j) d",
    (
        "SELECT count(*) FROM (SELECT x.k, y.k FROM orders x JOIN hashed y ON x.i = y.j ORDER BY ALL LIMIT 5) d JOIN"
        " items z ON z.k = d.k_1"
    ),
    'SELECT "Größe"."k" FROM orders "Größe" JOIN hashed "select" ON "Größe".i = "select".j',
    (
        'SELECT "a b".K AS "x.y", count(*) AS "COUNT" FROM Orders "a b" JOIN HASHED ON "a b".I = hashed.J GROUP BY 1'
        ' ORDER BY "COUNT", 1'
    ),
    "SELECT k AS j, j AS k FROM orders JOIN (SELECT i AS z FROM hashed) h ON h.z = orders.k WHERE k = 1",
    "SELECT x.j AS k, count(*) FROM orders x JOIN items y ON x.k = y.k GROUP BY x.j ORDER BY k",
    "SELECT x.i AS k, sum(x.k) AS q FROM orders x JOIN items y ON x.k = y.k GROUP BY x.i, x.k HAVING q > 0",
    "SELECT orders FROM orders JOIN items ON orders.k = items.k",
    "SELECT x.k, count(*) FROM orders x GROUP BY k, CUBE (x.k)",
    "SELECT x.k AS q, count(*) FROM orders x GROUP BY CUBE (q, x.k)",
    "SELECT x.k AS q, count(*) FROM orders x JOIN items y ON x.k = y.k GROUP BY CUBE (1, x.k)",
    (
        "SELECT x.d, count(*), count(DISTINCT y.i) FROM orders x JOIN hashed y ON x.k = y.j GROUP BY GROUPING SETS"
        " ((d), (x.d))"
    ),
]

CTES = [
    "WITH a AS (SELECT DISTINCT k FROM orders), b AS (SELECT x.k FROM a x, a y) SELECT k FROM items",
    (
        "WITH a AS (SELECT DISTINCT k FROM orders) SELECT k FROM (WITH b AS (SELECT x.k FROM a x, a y) SELECT k FROM"
        " items)"
    ),
    "WITH a AS (SELECT max(k) AS k FROM orders) SELECT x.k FROM a x JOIN a y ON x.k = y.k JOIN items z ON z.k = x.k",
    (
        "WITH a AS (SELECT k, sum(i) AS s FROM orders GROUP BY k), b AS (SELECT max(s) AS s FROM a) SELECT a.k FROM a"
        " JOIN b USING (s)"
    ),
    (
        "WITH a AS MATERIALIZED (SELECT k FROM orders ORDER BY ALL LIMIT 4) SELECT * FROM a WHERE k IN (SELECT k FROM"
        " a) AND k NOT IN (SELECT j FROM hashed)"
    ),
    "WITH a(p, q) AS (SELECT k, i FROM orders) SELECT x.p, y.q FROM a x JOIN a y(r) ON x.p = y.r",
    (
        "WITH a AS (WITH b AS (SELECT k, i FROM orders) SELECT x.k FROM b x JOIN b y ON x.k = y.i) SELECT * FROM a"
        " EXCEPT SELECT k FROM items"
    ),
]

GROUPS = [
    (
        "SELECT x.k, y.j, count(*), sum(x.m), avg(x.i), grouping(x.k, y.j) FROM orders x JOIN hashed y ON x.i = y.i"
        " GROUP BY ROLLUP (x.k, y.j)"
    ),
    (
        "SELECT x.k, count(DISTINCT y.i), sum(DISTINCT x.i), string_agg(y.s, ',' ORDER BY y.s) FROM orders x JOIN"
        " hashed y ON x.j = y.j GROUP BY ALL"
    ),
    "SELECT count(*), max(x.k), sum(x.m) FROM orders x JOIN nothing y ON x.k = y.k",
    "SELECT count(*) FROM orders x JOIN nothing y ON x.k = y.k HAVING count(*) > 0",
    "SELECT count(*) FROM orders x JOIN nothing y ON x.k = y.k GROUP BY x.k",
    "SELECT x.k, count(*) FROM orders x JOIN nothing y ON x.k = y.k GROUP BY GROUPING SETS ((), (x.k))",
    (
        "SELECT count(*) FILTER (WHERE x.i = 1), avg(y.f) FILTER (WHERE y.k > x.k) FROM orders x JOIN hashed y ON x.j"
        " = y.j"
    ),
    (
        "SELECT x.k % 2 AS p, count(*) FROM orders x JOIN items y ON x.k = y.k GROUP BY p HAVING count(*) > 1 ORDER BY"
        " 2 DESC, 1 LIMIT 1"
    ),
    "SELECT max(n) FROM (SELECT x.k, count(*) AS n FROM orders x JOIN hashed y ON x.i = y.j GROUP BY x.k)",
    "SELECT DISTINCT x.k, y.i FROM orders x JOIN items y ON x.k = y.k",
    "SELECT DISTINCT y.i FROM orders x JOIN items y ON x.k = y.k ORDER BY 1 LIMIT 2",
    "SELECT DISTINCT ON (x.k) x.k, x.j, y.i FROM orders x JOIN items y ON x.k = y.k ORDER BY ALL",
    "SELECT DISTINCT ON (y.i) y.i, x.k, x.j, y.j FROM orders x JOIN items y ON x.k = y.k ORDER BY ALL",
    "SELECT x.k, y.j, row_number() OVER (PARTITION BY x.k ORDER BY x.j, y.j) FROM orders x JOIN items y ON x.k = y.k",
    (
        "SELECT x.k, rank() OVER w, sum(y.i) OVER w FROM orders x JOIN items y ON x.k = y.k WINDOW w AS (PARTITION BY"
        " x.i ORDER BY y.i)"
    ),
    (
        "SELECT x.k FROM orders x JOIN items y ON x.k = y.k QUALIFY row_number() OVER (PARTITION BY x.k, x.j ORDER BY"
        " y.j) = 1"
    ),
    "SELECT x.i, sum(count(*)) OVER (ORDER BY x.i) FROM orders x JOIN hashed y ON x.k = y.k GROUP BY x.i",
    (
        "SELECT x.k, count(*) FROM orders x JOIN items y ON x.k = y.k GROUP BY x.k QUALIFY rank() OVER (ORDER BY"
        " count(*) DESC) = 1"
    ),
    "SELECT k FROM (SELECT k, j FROM orders ORDER BY k DESC, j LIMIT 5) ORDER BY k LIMIT 2",
    (
        "SELECT * FROM (SELECT k FROM orders UNION ALL SELECT k FROM items) x JOIN (SELECT k FROM orders EXCEPT SELECT"
        " k FROM items) y USING (k)"
    ),
    "SELECT k, j FROM orders INTERSECT ALL SELECT j, k FROM items",
    "SELECT k, j FROM orders EXCEPT ALL SELECT k, i FROM copied",
    "SELECT k, j FROM copied EXCEPT SELECT k, j FROM orders",
    "SELECT k, i FROM orders UNION BY NAME SELECT i, k FROM items",
    "SELECT k, i FROM orders UNION ALL BY NAME SELECT s, k FROM copied",
    (
        "(SELECT k FROM orders ORDER BY k, j LIMIT 3) UNION ALL (SELECT k FROM items ORDER BY k DESC, j LIMIT 2) ORDER"
        " BY 1 DESC OFFSET 1"
    ),
]

VALUES = [
    (
        "SELECT x.k, sum(y.big), max(y.l) FROM orders x JOIN (SELECT j, k::HUGEINT * 1000000000000 AS big, [k, i] AS l"
        " FROM hashed) y ON x.i = y.j GROUP BY x.k"
    ),
    (
        "SELECT max(y.st), max(y.ts) FROM orders x JOIN (SELECT j, {'a': k, 'b': s} AS st, TIMESTAMP '2024-01-01' +"
        " to_days(j) AS ts FROM hashed) y ON x.i = y.j"
    ),
    (
        "SELECT x.k FROM orders x JOIN (SELECT j, max(to_days(k)) AS iv FROM hashed GROUP BY j) y ON x.i = y.j WHERE"
        " y.iv > INTERVAL 1 DAY"
    ),
    (
        "SELECT x.k, y.l[1] FROM orders x JOIN (SELECT j, list([k, i] ORDER BY k, i) AS l FROM hashed GROUP BY j) y ON"
        " x.i = y.j"
    ),
    (
        "SELECT x.k, CASE WHEN y.i IS NULL THEN 'none' WHEN y.i > x.i THEN y.s ELSE x.s END FROM orders x LEFT JOIN"
        " hashed y ON x.j = y.j AND x.k = y.k"
    ),
    "SELECT x.d + INTERVAL 1 MONTH, count(*) FROM orders x JOIN ranged y ON x.d = y.d + INTERVAL 1 DAY GROUP BY 1",
    "SELECT x.k, x.m * y.m, x.m + y.i FROM orders x JOIN items y ON x.j = y.j",
    "SELECT x.k FROM orders x JOIN items y ON x.m = y.i",
    "SELECT x.k FROM orders x JOIN hashed y ON x.f = y.j",
    "SELECT sum(x.m), avg(x.m), sum(x.f) FROM orders x JOIN items y ON x.k = y.k",
    "SELECT x.k, unnest([x.j, y.j]) AS u FROM orders x JOIN items y ON x.k = y.k",
    "SELECT count(*) FROM orders x JOIN hashed y ON x.i = y.j WHERE random() >= 0",
    "SELECT x.k FROM orders x JOIN (VALUES (1, 'a'), (2, NULL)) y(k, s) ON x.k = y.k JOIN range(3) r(i) ON r.i = x.j",
]


@pytest.fixture(scope="module", params=EXCHANGES)
def world(request: pytest.FixtureRequest) -> World:
    return placed_world(random.Random(5), TABLES, exchange_model(request.param))


@pytest.mark.parametrize("sql", [*SUBQUERIES, *JOINS, *NAMES, *CTES, *GROUPS, *VALUES])
@pytest.mark.sampled(one_in=8)
def test_placed_answers_equal_duckdb(world: World, sql: str) -> None:
    rng = random.Random(3)
    assert all(check(world, sql, (), rng) for _ in range(2)), "DuckDB refuses the statement"


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        pytest.param(
            "SELECT x.k FROM orders x WHERE x.i IN (SELECT y.i FROM hashed y WHERE y.k > $1) AND x.k <> $2",
            [0, 3],
            id="in a subquery that moves",
        ),
        pytest.param("SELECT x.k FROM orders x JOIN hashed y ON x.i = y.j AND y.k = $1", [1], id="in ON"),
        pytest.param(
            "SELECT x.k, $1 AS p FROM orders x JOIN hashed y ON x.i = y.j GROUP BY ALL HAVING count(*) > $2",
            ["a", 0],
            id="in the list and HAVING",
        ),
        pytest.param(
            "WITH a AS (SELECT k, i FROM orders WHERE i = $1) SELECT x.k FROM a x JOIN a y ON x.k = y.k WHERE y.i = $1",
            [1],
            id="in a CTE",
        ),
        pytest.param(
            "SELECT x.k, (SELECT max(y.i) + $1 FROM items y WHERE y.j = x.i AND y.k < $2) FROM orders x",
            [10, 3],
            id="in a look-up",
        ),
        pytest.param("SELECT x.k FROM orders x JOIN items y ON x.k = y.k ORDER BY ALL LIMIT $1", [2], id="in LIMIT"),
    ],
)
def test_parameters(world: World, sql: str, params: list[object]) -> None:
    assert check(world, sql, params, random.Random(3)), "DuckDB refuses the statement"
