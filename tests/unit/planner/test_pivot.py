"""PIVOT and UNPIVOT as statements: the query that is planned for them. tests/sql/pivot.test compares their rows."""

from __future__ import annotations

import pytest

from secateur.planner.binding import as_queries
from secateur.planner.text import read_parameters, tokenize


def query(sql: str) -> str:
    """A statement with all others inside of it as queries."""
    while (found := as_queries(sql, *read_parameters(sql, tokenize(sql)))) is not None:
        sql = found.text
    return sql


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("PIVOT t ON a IN (1, 2)", "SELECT * FROM t PIVOT (count(*) FOR a IN (1, 2))"),
        (
            "PIVOT (FROM t) ON t.a IN (?), b IN ('x') USING sum(v) GROUP BY k",
            "SELECT * FROM (FROM t) PIVOT (sum(v) FOR t.a IN ($1) b IN ('x') GROUP BY k)",
        ),
        (
            "pivot t on a in (1) using max(v) as m order by k limit 3",
            "SELECT * FROM t PIVOT (max(v) as m FOR a in (1)) order by k limit 3",
        ),
        ("UNPIVOT t ON a, b", "SELECT * FROM t UNPIVOT (value FOR name IN (a, b))"),
        ("UNPIVOT t ON a INTO NAME n VALUE v LIMIT 1", "SELECT * FROM t UNPIVOT (v FOR n IN (a)) LIMIT 1"),
        ("UNPIVOT t ON (a, b) AS x INTO NAME n VALUE v, w", "SELECT * FROM t UNPIVOT ((v, w) FOR n IN ((a, b) AS x))"),
    ],
)
def test_a_statement_is_a_query(sql: str, expected: str) -> None:
    assert query(sql) == expected


PIVOT = "SELECT * FROM t PIVOT (count(*) FOR a IN (1))"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE OR REPLACE VIEW v (x) AS PIVOT t ON a IN (1)", f"CREATE OR REPLACE VIEW v (x) AS {PIVOT}"),
        ("COPY (PIVOT t ON a IN (1)) TO 'x.csv'", f"COPY ({PIVOT} ) TO 'x.csv'"),
        ("INSERT INTO o PIVOT t ON a IN (1) RETURNING *", f"INSERT INTO o {PIVOT} RETURNING *"),
        (
            "WITH z AS (SELECT 1) INSERT INTO main.o (x) PIVOT_WIDER t ON a IN (1) ON CONFLICT DO NOTHING",
            f"WITH z AS (SELECT 1) INSERT INTO main.o (x) {PIVOT} ON CONFLICT DO NOTHING",
        ),
        ("WITH z AS (PIVOT t ON a IN (1)) FROM z", f"WITH z AS ({PIVOT} ) FROM z"),
        ("WITH z AS (SELECT 1) PIVOT t ON a IN (1)", f"WITH z AS (SELECT 1) {PIVOT}"),
        ("(WITH z AS (SELECT 1) PIVOT t ON a IN (1))", f"(WITH z AS (SELECT 1) {PIVOT} )"),
        ("PIVOT t ON a IN (1) UNION ALL BY NAME PIVOT t ON a IN (1)", f"{PIVOT} UNION ALL BY NAME {PIVOT}"),
        (
            "PIVOT (UNPIVOT t ON b) ON a IN (1)",
            f"{PIVOT.replace(' t ', ' (SELECT * FROM t UNPIVOT (value FOR name IN (b)) ) ')}",
        ),
        ("DESCRIBE PIVOT t ON a IN (1)", f"DESCRIBE {PIVOT}"),
        ("SELECT EXISTS (DESCRIBE t)", "SELECT EXISTS (FROM (DESCRIBE t) )"),
        (
            "SHOW TABLES UNION SUMMARIZE SELECT 1 UNION SELECT 2",
            "FROM (SHOW TABLES) UNION FROM (SUMMARIZE SELECT 1 UNION SELECT 2)",
        ),
        (
            "CREATE TABLE t PRIMARY KEY (a) AS DESC t WITH NO DATA",
            "CREATE TABLE t PRIMARY KEY (a) AS FROM (DESC t) WITH NO DATA",
        ),
    ],
)
def test_a_statement_in_the_place_of_a_query_is_one(sql: str, expected: str) -> None:
    assert query(sql).split() == expected.split()


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT 1 AS pivot, t.show, "describe" FROM t',
        "SELECT 'PIVOT t ON a IN (1)' -- SHOW TABLES",
        "SELECT * FROM t PIVOT (sum(v) FOR k IN (1)) JOIN (SELECT 1) UNPIVOT (a FOR b IN (c)) ON true",
        "INSERT INTO o SELECT * FROM t PIVOT (sum(v) FOR k IN (1))",
        "WITH z AS (SELECT 1) FROM (FROM z) PIVOT (sum(v) FOR k IN (1))",
        "SELECT list(x ORDER BY (x) DESC) FROM (DESCRIBE t), (SHOW t) JOIN (SUMMARIZE t) USING (a) ORDER BY x DESC",
        "WITH c AS (SELECT 1 AS a) (SELECT k FROM t) EXCEPT ALL (SELECT a FROM c) ORDER BY ((1)) DESC NULLS LAST",
        "INSERT INTO u (SELECT k FROM t) ORDER BY k DESC",
        "DESCRIBE t",
        "SUMMARIZE SELECT 1 UNION SELECT 2",
        "SHOW ALL TABLES",
        "CREATE TABLE t (show INTEGER PRIMARY KEY, s STRUCT(describe INTEGER))",
    ],
)
def test_words_elsewhere_are_left_as_they_are(sql: str) -> None:
    assert query(sql) == sql
