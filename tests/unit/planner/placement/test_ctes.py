"""Common table expressions: one mention becomes a subquery, several become rows computed once, none is nothing."""

from __future__ import annotations

import pytest
from sqlglot import exp

from secateur.planner.fragments import NotDistributable
from secateur.planner.placement.ctes import without_ctes
from secateur.planner.text import parse_query, to_sql, tokenize


@pytest.mark.parametrize(
    ("sql", "expected", "computed"),
    [
        pytest.param(
            "WITH a AS (SELECT k FROM t) SELECT * FROM a",
            "SELECT * FROM (SELECT k FROM t) AS a",
            [],
            id="mentioned once",
        ),
        pytest.param(
            "WITH a AS (SELECT k FROM t) SELECT * FROM a AS x, a AS y",
            "SELECT * FROM r0 AS x, r0 AS y",
            ["a"],
            id="mentioned twice",
        ),
        pytest.param(
            "WITH a(p) AS (SELECT k FROM t) SELECT * FROM a",
            "SELECT * FROM (SELECT k FROM t) AS a(p)",
            [],
            id="names of columns",
        ),
        pytest.param(
            "WITH a(p, q) AS (SELECT 1, 2) SELECT * FROM a AS x(z)",
            "SELECT * FROM (SELECT 1, 2) AS x(z, q)",
            [],
            id="columns named by both",
        ),
        pytest.param("WITH a AS (SELECT k FROM t) SELECT 1", "SELECT 1", [], id="not mentioned"),
        pytest.param(
            "WITH a AS (SELECT k FROM t), b AS (SELECT * FROM a AS x, a AS y) SELECT 1",
            "SELECT 1",
            [],
            id="mentioned by one that is not",
        ),
        pytest.param(
            "WITH a AS (SELECT k FROM t) SELECT * FROM (WITH b AS (SELECT * FROM a AS x, a AS y) SELECT 1) AS z",
            "SELECT * FROM (SELECT 1) AS z",
            [],
            id="mentioned by one inside that is not",
        ),
        pytest.param(
            "WITH b AS (WITH a AS (SELECT k FROM t) SELECT * FROM a), a AS (SELECT * FROM b AS x, b AS y) SELECT 1",
            "SELECT 1",
            [],
            id="mentioned where another one has its name",
        ),
        pytest.param(
            "WITH a AS (SELECT k FROM t) SELECT * FROM (WITH a AS (SELECT * FROM a) SELECT 1) AS z",
            "SELECT * FROM (SELECT 1) AS z",
            [],
            id="mentioned in the definition of one of its name that is not",
        ),
        pytest.param(
            "WITH a AS (SELECT k FROM t), b AS (SELECT * FROM a) SELECT * FROM b AS x, b AS y, a",
            "SELECT * FROM r1 AS x, r1 AS y, r0 AS a",
            ["a", "b"],
            id="one reads the other",
        ),
    ],
)
def test_without_ctes(sql: str, expected: str, computed: list[str]) -> None:
    names: list[str] = []

    def compute(cte: exp.CTE) -> str:
        names.append(cte.alias)
        return f"r{len(names) - 1}"

    assert to_sql(without_ctes(parse_query(sql, tokenize(sql)), compute, compute)) == expected
    assert names == computed


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        pytest.param("WITH a AS (SELECT 1) SELECT * FROM a TABLESAMPLE 10%", "SAMPLE", id="sampled"),
        pytest.param(
            "WITH a AS (SELECT 1) SELECT * FROM a, (WITH a AS (SELECT 2) SELECT * FROM a) AS b",
            "two common table expressions",
            id="one name twice",
        ),
    ],
)
def test_what_is_not_taken_apart(sql: str, reason: str) -> None:
    with pytest.raises(NotDistributable, match=reason):
        without_ctes(parse_query(sql, tokenize(sql)), lambda _: "r", lambda _: "r")


@pytest.mark.parametrize("union", ["SELECT 1 AS x UNION SELECT 2.5", "(SELECT 1 AS x UNION ALL SELECT 2.5)"])
def test_a_union_of_with_recursive_is_computed_as_a_recursion_without_a_mention_of_itself(union: str) -> None:
    sql = f"WITH RECURSIVE a AS ({union}) SELECT * FROM a"
    recursions: list[str] = []

    def recurse(cte: exp.CTE) -> str:
        recursions.append(to_sql(cte))
        return "r"

    assert to_sql(without_ctes(parse_query(sql, tokenize(sql)), lambda _: "never", recurse)) == "SELECT * FROM r AS a"
    assert recursions == [f"a AS ({union})"]


def test_what_mentions_itself_is_computed_also_where_it_is_mentioned_once() -> None:
    sql = (
        "WITH RECURSIVE a AS (SELECT 1 AS x), b AS (SELECT x FROM a UNION SELECT x + 1 FROM b WHERE x < 3) SELECT *"
        " FROM b"
    )
    recursions: list[str] = []

    def recurse(cte: exp.CTE) -> str:
        recursions.append(to_sql(cte))
        return "r"

    assert to_sql(without_ctes(parse_query(sql, tokenize(sql)), lambda _: "never", recurse)) == "SELECT * FROM r AS b"
    assert recursions == ["b AS (SELECT x FROM (SELECT 1 AS x) AS a UNION SELECT x + 1 FROM b WHERE x < 3)"]
