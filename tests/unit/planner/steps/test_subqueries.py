"""Which subqueries of a text stand where their values could."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from secateur.planner.steps import Subquery, find_subqueries
from secateur.planner.text import tokenize


def found(sql: str) -> list[object]:
    tokens = tokenize(sql)

    def shown(subqueries: Sequence[Subquery]) -> list[object]:
        return [
            (
                subquery.use.value,
                sql[tokens[subquery.opening].start : tokens[subquery.closing].end + 1],
                *([shown(subquery.inner)] if subquery.inner else []),
            )
            for subquery in subqueries
        ]

    return shown(find_subqueries(tokens))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param("SELECT a FROM t WHERE k IN (SELECT b FROM u)", [("list", "(SELECT b FROM u)")], id="in"),
        pytest.param("SELECT a FROM t WHERE k NOT IN (SELECT b FROM u)", [("list", "(SELECT b FROM u)")], id="not in"),
        pytest.param("SELECT a FROM t WHERE k IN (FROM u)", [("list", "(FROM u)")], id="from first"),
        pytest.param(
            "SELECT a FROM t WHERE k IN (WITH v AS (SELECT 1) FROM v)",
            [("list", "(WITH v AS (SELECT 1) FROM v)")],
            id="with inside",
        ),
        pytest.param("SELECT a FROM t WHERE k = ANY (SELECT b FROM u)", [("list", "(SELECT b FROM u)")], id="any"),
        pytest.param("SELECT a FROM t WHERE k < ANY (SELECT b FROM u)", [], id="less than any"),
        pytest.param("SELECT a FROM t WHERE k = ALL (SELECT b FROM u)", [], id="all"),
        pytest.param("SELECT a FROM t WHERE k = (SELECT b FROM u)", [("value", "(SELECT b FROM u)")], id="equals"),
        pytest.param("SELECT a FROM t WHERE (SELECT b FROM u) >= k", [("value", "(SELECT b FROM u)")], id="mirrored"),
        pytest.param(
            "SELECT a FROM t WHERE k BETWEEN (SELECT 1) AND (SELECT 2)",
            [("value", "(SELECT 1)"), ("value", "(SELECT 2)")],
            id="between",
        ),
        pytest.param("SELECT a FROM t WHERE EXISTS (SELECT b FROM u)", [], id="exists"),
        pytest.param("SELECT (SELECT b FROM u) FROM t", [], id="column"),
        pytest.param(
            "SELECT a FROM (SELECT * FROM t WHERE k IN (SELECT b FROM u))",
            [("list", "(SELECT b FROM u)")],
            id="inside of a derived table",
        ),
        pytest.param("SELECT a FROM t WHERE k IN (1, 2)", [], id="values"),
        pytest.param("SELECT a FROM t WHERE k IN ((SELECT b FROM u), 2)", [], id="scalar in a list"),
        pytest.param(
            "SELECT a FROM t WHERE k IN (SELECT b FROM u WHERE c IN (SELECT d FROM v) AND e = (SELECT 1))",
            [
                (
                    "list",
                    "(SELECT b FROM u WHERE c IN (SELECT d FROM v) AND e = (SELECT 1))",
                    [("list", "(SELECT d FROM v)"), ("value", "(SELECT 1)")],
                )
            ],
            id="nested",
        ),
        pytest.param(
            "SELECT a FROM t WHERE k = 'IN (SELECT x)' AND j IN (SELECT ')' FROM u)",
            [("list", "(SELECT ')' FROM u)")],
            id="text",
        ),
        pytest.param("SELECT a FROM t WHERE k IN (SELECT b FROM u", [], id="not closed"),
        pytest.param("(SELECT 1)", [], id="a statement in parentheses"),
    ],
)
def test_subqueries_in_place_of_values(sql: str, expected: list[object]) -> None:
    assert found(sql) == expected


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        ("", True),
        (" AND b", True),
        (" OR b", True),
        (" GROUP BY a", True),
        (" < b", True),
        (" + 1", False),
        ("::DATE", False),
        (" || 'x'", False),
        ("[1]", False),
    ],
)
def test_a_subquery_may_be_part_of_an_expression(behind: str, expected: bool) -> None:
    (subquery,) = find_subqueries(tokenize(f"SELECT a FROM t WHERE k = (SELECT b FROM u){behind}"))
    assert subquery.is_whole == expected
