"""Statements of which each looks as if more could be left out than can: relations by hand, beside the random ones of
:mod:`test_relations`.
"""

from __future__ import annotations

import random

import pytest

from worlds import World, check, random_world

STATEMENTS = [
    "SELECT a, x.v, y.v, z.v FROM t x FULL JOIN u y USING (a) FULL JOIN t z USING (a) WHERE a = 1",
    "SELECT a, x.v FROM t x LEFT JOIN u y USING (a) LEFT JOIN t z USING (a) WHERE a IN (1,2) AND z.v > 0",
    "SELECT a, b FROM t x RIGHT JOIN u y USING (a, b) WHERE a = 2 AND b = 'a'",
    "SELECT a FROM t x RIGHT JOIN u y USING (a) FULL JOIN t z USING (a) WHERE a = 2",
    "SELECT x.a, (SELECT count(*) FROM u y WHERE y.a = x.a) FROM t x GROUP BY x.a HAVING x.a = 2",
    "SELECT x.a, sum(x.v) FROM t x GROUP BY x.a HAVING EXISTS (SELECT 1 FROM u y WHERE y.a = x.a AND y.a = 1)",
    (
        "SELECT count(*) FROM t x WHERE EXISTS (SELECT 1 FROM u y WHERE y.a = x.a AND y.a = 2 ORDER BY y.v LIMIT 1"
        " OFFSET 1)"
    ),
    "SELECT count(*) FROM t x WHERE x.a = 1 AND NOT EXISTS (SELECT 1 FROM u y WHERE y.a = x.a OFFSET 3)",
    "SELECT count(*) FROM t x WHERE x.a IN (SELECT a FROM u ORDER BY a, b, c LIMIT 3)",
    "SELECT count(*) FROM t x WHERE x.a = 3 AND x.a NOT IN (SELECT a FROM u ORDER BY a, b, c LIMIT 9)",
    "SELECT count(*) FROM t x WHERE x.a = 3 AND x.v NOT IN (SELECT v FROM u WHERE u.a = x.a)",
    "SELECT count(*) FROM t x WHERE x.v NOT IN (SELECT v FROM u WHERE v = 2)",
    "SELECT count(*) FROM t x WHERE x.v = 2 AND x.v NOT IN (SELECT v FROM u)",
    (
        "SELECT count(*) FROM t x WHERE x.a = 2 AND x.a NOT IN (SELECT y.a FROM t z LEFT JOIN u y ON z.a = y.a AND y.b"
        " = 'a')"
    ),
    "SELECT count(*) FROM t x WHERE x.a IN (SELECT x.a FROM u WHERE u.a = 1)",
    (
        "SELECT count(*) FROM t x WHERE EXISTS (SELECT 1 FROM u WHERE u.a = x.a UNION ALL SELECT 1 FROM t WHERE t.a = 3"
        " AND t.a = x.a)"
    ),
    (
        "SELECT count(*) FROM t x WHERE EXISTS (SELECT a FROM u WHERE u.a = x.a AND u.a < 2 UNION SELECT a FROM t WHERE"
        " t.a = 3 AND t.a = x.a)"
    ),
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT a FROM u WHERE u.a = x.a EXCEPT SELECT a FROM t WHERE t.a = 3)",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT max(y.v) FROM u y WHERE y.a = x.a AND y.a = 1 HAVING count(*) > 2)",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT y.b FROM u y WHERE y.a = x.a AND y.a = 1 GROUP BY y.b)",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT 1 FROM u y WHERE y.a = x.a AND y.a = 1 GROUP BY ())",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT median(y.v) FROM u y WHERE y.a = x.a AND y.a = 1)",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT 1 + median(y.v) FROM u y WHERE y.a = x.a AND y.a = 1)",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT first(y.v) OVER () FROM u y WHERE y.a = x.a AND y.a = 1)",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT list(y.v)[1] FROM u y WHERE y.a = x.a AND y.a = 1)",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT [count(*)] FROM u y WHERE y.a = x.a AND y.a = 1)",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT {'k': count(*)} FROM u y WHERE y.a = x.a AND y.a = 1)",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT count(*) IS NULL FROM u y WHERE y.a = x.a AND y.a = 1)",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT (SELECT 1), -count(*) FROM u y WHERE y.a = x.a AND y.a = 1)",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT x.a, count(*) FROM u y WHERE y.a = x.a AND y.a = 1)",
    "SELECT count(*) FROM t x WHERE EXISTS (SELECT 1 FROM u y WHERE y.a = x.a AND y.a = 1 ORDER BY count(*))",
    "SELECT count(*) FROM t x, (SELECT count(*) AS n, 5 AS a FROM u WHERE u.a = 1) d WHERE d.a = 5 AND x.a = 1",
    "SELECT count(*) FROM t x, (SELECT any_value(5) AS n FROM u WHERE FALSE) d",
    "SELECT count(*) FROM t x JOIN (SELECT 1 AS k FROM u WHERE u.a = 77) d ON TRUE",
    (
        "SELECT x.a, l.v FROM t x LEFT JOIN LATERAL (SELECT y.v FROM u y WHERE y.a = x.a AND y.b = x.b ORDER BY y.v"
        " LIMIT 1) l ON TRUE WHERE x.a = 1"
    ),
    (
        "SELECT x.a, l.n FROM t x, LATERAL (SELECT count(*) AS n FROM u y WHERE y.a = x.a) l WHERE x.a IN (1, 2) AND"
        " l.n > 0"
    ),
    "SELECT x.a, l.n FROM t x, LATERAL (SELECT count(*) AS n FROM u y WHERE y.a = x.a) l WHERE l.n = 0",
    (
        "WITH w AS (FROM t), v AS (SELECT * FROM w WHERE a = 1 UNION ALL SELECT * FROM w WHERE a = 2) SELECT * FROM v x"
        " JOIN v y USING (a, b, c) WHERE a = 2"
    ),
    "WITH t AS (SELECT * FROM u WHERE a = 1) SELECT * FROM t WHERE b = 'a'",
    (
        "WITH w AS (SELECT a, b FROM t) SELECT * FROM (WITH w AS (SELECT a, b FROM u) SELECT * FROM w WHERE a = 1) x, w"
        " WHERE w.a = 2"
    ),
    "WITH w(p, q) AS (SELECT a, b FROM t) SELECT * FROM w AS z(m) WHERE m = 1 AND q = 'a'",
    (
        "WITH w AS (SELECT a AS k, max(v) AS m FROM t GROUP BY a) SELECT * FROM w x FULL JOIN w y ON x.k = y.m WHERE"
        " x.k = 1 OR y.k = 2"
    ),
    "SELECT * FROM (SELECT a, a AS b2, v AS a2 FROM t) d WHERE b2 = 1 AND a2 IS NULL",
    "SELECT * FROM (SELECT x.a, y.a FROM t x JOIN u y ON x.b = y.b) d WHERE a = 1",
    "SELECT * FROM (SELECT x.a, y.a FROM t x JOIN u y ON x.b = y.b) d(p, q) WHERE q = 1",
    "SELECT * FROM (SELECT x.a, y.a FROM t x JOIN u y ON x.b = y.b) d WHERE a_1 = 1",
    "SELECT a, b FROM t x WHERE a = 1 AND (SELECT a_1 FROM (SELECT x.a, y.a FROM u y LIMIT 1) d) = 1",
    "SELECT b AS a, a AS b FROM t WHERE a = 1 AND b = 'a'",
    "SELECT a AS z, b FROM t GROUP BY z, b HAVING z = 1",
    "SELECT b AS a, max(a) AS m FROM t GROUP BY b HAVING m > 1",
    "SELECT a % 2 AS a, count(*) FROM t GROUP BY a HAVING a = 1",
    "SELECT a % 2 AS a, count(*) FROM t GROUP BY ALL HAVING a = 1",
    "SELECT max(a) AS a FROM t GROUP BY b HAVING a = 3",
    "SELECT a % 2 AS a, row_number() OVER (PARTITION BY a ORDER BY b, c) AS r FROM t QUALIFY a = 1",
    "SELECT DISTINCT ON (a) a % 3 AS a, b FROM t ORDER BY a, b, c",
    "SELECT * FROM (SELECT DISTINCT ON (a) a % 3 AS a, b, c FROM t ORDER BY ALL) WHERE a = 1",
    "SELECT * FROM (SELECT a AS k, b AS a, c FROM t) d JOIN u ON d.k = u.a WHERE d.a = 'a' AND k = 1",
    "SELECT * FROM t x SEMI JOIN u y ON x.a = y.a AND y.a = 1 AND x.b = 'a'",
    "SELECT * FROM t x ANTI JOIN u y ON x.a = y.a AND x.a = 1",
    "SELECT * FROM t x ANTI JOIN u y USING (a) WHERE a = 2",
    "SELECT * FROM t x SEMI JOIN u y USING (a) JOIN t z ON x.a = z.a WHERE z.a = 1",
    "SELECT count(*) FROM t x LEFT JOIN u y ON x.a = y.a AND x.a = 1 AND y.b = 'a'",
    "SELECT count(*) FROM t x LEFT JOIN u y ON FALSE WHERE x.a = 1",
    "SELECT count(*) FROM t x LEFT JOIN (SELECT * FROM u WHERE a = 1) y ON x.a = y.a WHERE y.v IS NULL",
    (
        "SELECT count(*) FROM t x LEFT JOIN u y ON x.a = y.a LEFT JOIN t z ON y.a = z.a AND z.b = 'a' WHERE x.a = 1 AND"
        " z.a IS NULL"
    ),
    "SELECT count(*) FROM t x LEFT JOIN (u y JOIN t z ON y.a = z.a) ON x.a = y.a WHERE x.a = 2",
    (
        "SELECT count(*) FROM t x LEFT JOIN (u y LEFT JOIN t z ON y.a = z.a AND z.a = 1) ON x.b = y.b WHERE z.a IS NULL"
        " AND x.a = 2"
    ),
    "SELECT count(*) FROM t x FULL JOIN u y ON x.a = y.a WHERE x.a = 1 OR y.a = 2",
    "SELECT count(*) FROM t x FULL JOIN u y ON x.a = y.a AND x.a = 1 WHERE coalesce(x.a, y.a) = 1",
    "SELECT count(*) FROM t x FULL JOIN u y ON x.a = y.a WHERE x.a IS NOT NULL AND y.b = 'a'",
    "SELECT count(*) FROM t x FULL JOIN u y USING (a) WHERE a = 1 AND x.b IS NULL",
    "SELECT count(*) FROM t x FULL JOIN u y USING (a) WHERE (a = 1 AND x.b IS NULL) OR (a = 2 AND y.b = 'a')",
    "SELECT count(*) FROM t x FULL JOIN u y USING (a) JOIN t z USING (a) WHERE z.b = 'a' AND a = 1",
    "SELECT count(*) FROM (SELECT a, b FROM t EXCEPT SELECT a, b FROM u WHERE a = 1) WHERE a IN (1, 2)",
    "SELECT count(*) FROM (SELECT a FROM t EXCEPT ALL SELECT a FROM u) WHERE a = 2",
    "SELECT count(*) FROM (SELECT a, 'x' AS k FROM t UNION ALL SELECT v, b FROM u) WHERE a = 1 AND k = 'x'",
    "SELECT count(*) FROM (SELECT a FROM t UNION ALL SELECT NULL UNION ALL SELECT v FROM u) WHERE a = 1",
    "SELECT count(*) FROM (SELECT a, b FROM t UNION ALL BY NAME SELECT b, a FROM u) WHERE a = 1",
    "SELECT count(*) FROM (SELECT a, b FROM t UNION BY NAME SELECT c, a FROM u) WHERE a = 1 AND b IS NULL",
    "SELECT count(*) FROM (SELECT a::VARCHAR AS a FROM t UNION SELECT b FROM u) WHERE a < '2'",
    "SELECT count(*) FROM (SELECT a FROM t UNION ALL SELECT v FROM u) d JOIN t ON t.a = d.a WHERE d.a = 1",
    "SELECT count(*) FROM t x JOIN u y ON x.a = y.v WHERE y.v = 99999999999",
    "SELECT count(*) FROM t x JOIN u y ON x.a = y.v WHERE y.v < 99999999999 AND y.v > '0'",
    "SELECT count(*) FROM t x JOIN u y ON x.a = y.v WHERE y.v = 1.5",
    "SELECT count(*) FROM t x WHERE x.a = x.v AND x.v = 2",
    "SELECT count(*) FROM t x WHERE (x.a, x.b) IN (SELECT a, b FROM u WHERE a = 1 AND b = 'a')",
    "SELECT count(*) FROM t x WHERE (x.a, x.b) NOT IN (SELECT a, b FROM u) AND x.a = 1",
    "SELECT count(*) FROM t x WHERE x.a = ANY (SELECT a FROM u WHERE a = 1)",
    "SELECT count(*) FROM t x WHERE x.a <> ALL (SELECT a FROM u WHERE a = 1)",
    "SELECT count(*) FROM t x WHERE x.a = (SELECT a FROM u WHERE u.a = x.a AND u.a = 1 LIMIT 1)",
    "SELECT count(*) FROM t x WHERE NOT (x.a IN (SELECT a FROM u WHERE a = 1))",
    "SELECT count(*) FROM t x WHERE NOT NOT EXISTS (SELECT 1 FROM u WHERE u.a = x.a AND u.a = 1)",
    "SELECT count(*) FROM t x WHERE x.a IN (SELECT a FROM u WHERE a = 1) IS NOT TRUE",
    (
        "SELECT count(*) FROM t x WHERE EXISTS (SELECT 1 FROM u y WHERE y.a = x.a AND EXISTS (SELECT 1 FROM t z WHERE"
        " z.a = x.a AND z.b = y.b)) AND x.a = 1"
    ),
    (
        "SELECT count(*) FROM t x WHERE x.a = 1 AND EXISTS (SELECT 1 FROM (SELECT * FROM u y WHERE y.a = x.a LIMIT 2) d"
        " JOIN t z ON z.a = d.a)"
    ),
    "SELECT sum(n) OVER (), a FROM (SELECT a, count(*) AS n FROM t GROUP BY a) WHERE a = 1",
    "SELECT * FROM (SELECT a, b, sum(v) OVER (PARTITION BY a) AS s, count(*) OVER () AS n FROM t) WHERE a = 1",
    "SELECT * FROM (SELECT a, b, lag(v) OVER w AS s FROM t WINDOW w AS (PARTITION BY a ORDER BY b, c)) WHERE a = 1",
    "SELECT * FROM (SELECT a, b, lag(v) OVER (w ORDER BY b, c) AS s FROM t WINDOW w AS (PARTITION BY a)) WHERE a = 1",
    "SELECT * FROM (SELECT a, rank() OVER (PARTITION BY a % 2 ORDER BY a, b, c) AS r FROM t) WHERE a = 1",
    "SELECT * FROM (SELECT a % 2 AS a, rank() OVER (PARTITION BY a ORDER BY b, c) AS r FROM t) WHERE a = 1",
    "FROM t SELECT a, b WHERE a = 1",
    "SELECT * FROM (FROM t) WHERE a = 1",
    "SELECT * FROM (VALUES (1), (2)) d(k) JOIN t ON t.a = d.k WHERE d.k = 1",
    "SELECT * FROM range(3) r(i) JOIN t ON t.a = r.i WHERE r.i = 1",
    "SELECT x.* FROM t x, u y WHERE x.a = y.a AND y.a IN (SELECT v FROM t z WHERE z.v = 1)",
    "SELECT * FROM t x NATURAL JOIN u y WHERE a = 1",
    "SELECT * FROM t x NATURAL LEFT JOIN u y WHERE a = 1",
    "SELECT COLUMNS(*) FROM (SELECT * FROM t) WHERE a = 1",
    "SELECT * FROM (SELECT * EXCLUDE (a), b AS a FROM t) WHERE a = 'a'",
    "SELECT * FROM (SELECT * REPLACE (v AS a) FROM t) WHERE a = 1",
    "SELECT * FROM (SELECT * RENAME (a AS z, v AS a) FROM t) WHERE a = 1",
    "SELECT * FROM (SELECT unnest([a, v]) AS a, b FROM t) WHERE a = 1",
    "SELECT * FROM (SELECT unnest([1, 2]) AS k, a FROM t) WHERE a = 1",
    "SELECT a FROM t x WHERE a = (SELECT max(a) FROM u WHERE b = x.b) AND a = 2",
    "SELECT x.a FROM t x JOIN u y ON (x.a = y.a) = TRUE WHERE y.a = 1",
    "SELECT x.a FROM t x POSITIONAL JOIN u y WHERE x.a = 1",
    "SELECT x.a, y.a FROM t x ASOF JOIN u y ON x.b = y.b AND x.a >= y.a WHERE y.a = 1",
    "SELECT a FROM t ORDER BY (SELECT count(*) FROM u WHERE u.a = t.a AND u.a = 1), a, b, c LIMIT 5",
    "SELECT a FROM t x GROUP BY a, (SELECT max(v) FROM u WHERE u.a = x.a AND u.b = 'a') HAVING a = 1",
]

JOINS_OF_UNKNOWN_COLUMNS = [
    "(SELECT * EXCLUDE (v) FROM t) x NATURAL JOIN u y",
    "(SELECT unnest([1, 2, 7, -1, 0]) AS a) x NATURAL FULL JOIN u y",
    "(SELECT unnest([1, 2, 7, -1, 0]) AS a) x natural left join u y",
    "(SELECT COLUMNS(*) FROM (VALUES (1), (2), (9)) w(a)) x NATURAL RIGHT JOIN u y",
    "(t x FULL JOIN (SELECT a + 2 AS a, v FROM u) y USING (a)) POSITIONAL JOIN range(9) r(i)",
    "range(9) r(i) POSITIONAL JOIN (t x FULL JOIN (SELECT a + 2 AS a, v FROM u) y USING (a))",
    "range(3) q(i), ((SELECT unnest([1, 2, 7, -1, 0]) AS a) x NATURAL FULL JOIN u y)",
]
"""Joins that merge columns of which nothing is known: a bare ``a`` behind them is theirs, also where a later item has
an ``a`` of its own.
"""
BEHIND_THEM = [
    "LEFT JOIN t z ON a = z.v",
    "LEFT JOIN t z ON a = z.v WHERE z.v = 2",
    "JOIN t z ON a = 1 AND z.a = 2",
    "LEFT JOIN t z ON TRUE WHERE a = 1",
    ", t z WHERE a = z.v AND z.v = 2",
    "ANTI JOIN t z ON a = z.v AND a = 1",
    "WHERE EXISTS (FROM t z WHERE z.v = a)",
]


@pytest.fixture(scope="module", params=[1, 2])
def world(request: pytest.FixtureRequest) -> World:
    return random_world(random.Random(request.param), ("t", "u"))


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.sampled(one_in=7)
def test_pruned_answers_equal_duckdb(world: World, sql: str) -> None:
    assert check(world, sql, (), random.Random(3)), "DuckDB refuses the statement"


@pytest.mark.parametrize("behind", BEHIND_THEM)
@pytest.mark.sampled(one_in=7)
@pytest.mark.parametrize("joined", JOINS_OF_UNKNOWN_COLUMNS)
def test_a_merged_name_is_not_a_later_items(world: World, joined: str, behind: str) -> None:
    for shown in ("count(*), count(y.v)", "y.v, count(*) OVER (PARTITION BY a)"):
        assert check(world, f"SELECT {shown} FROM {joined} {behind}", (), random.Random(3)), "DuckDB refuses it"
