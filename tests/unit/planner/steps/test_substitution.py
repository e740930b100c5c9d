"""That parameters stand in place of subqueries for DuckDB as well."""

from __future__ import annotations

import pytest

from secateur.planner.steps.subqueries import is_substituted
from secateur.planner.text import compared_trees

IN_U = "SELECT a FROM t WHERE k IN (SELECT b FROM u)"
IN_LIST = "SELECT a FROM t WHERE k IN (SELECT unnest($1))"
U = "SELECT b FROM u"


def substituted(original: str, other: str, *subqueries: str) -> bool:
    was, now, *parts = compared_trees([original, other, *subqueries])
    assert was is not None
    assert now is not None
    return is_substituted(was, now, {number: part for number, part in enumerate(parts, 1) if part is not None})


@pytest.mark.parametrize(
    ("original", "other", "subqueries"),
    [
        pytest.param(IN_U, IN_LIST, [U], id="list"),
        pytest.param(
            "SELECT a FROM t WHERE k = ANY (SELECT b FROM u)",
            "SELECT a FROM t WHERE k = ANY (SELECT unnest($1))",
            [U],
            id="any",
        ),
        pytest.param(
            "SELECT a FROM t WHERE k < (SELECT max(b) FROM u)",
            "SELECT a FROM t WHERE k < $1",
            ["SELECT max(b) FROM u"],
            id="value",
        ),
        pytest.param(
            "SELECT a FROM t WHERE k < (SELECT max(b) FROM u) - 1",
            "SELECT a FROM t WHERE k < CAST($1 AS DATE) - 1",
            ["SELECT max(b) FROM u"],
            id="cast",
        ),
        pytest.param(
            "SELECT a FROM t WHERE k IN (SELECT b FROM u) AND j = (SELECT c FROM u)",
            "SELECT a FROM t WHERE k IN (SELECT unnest($1)) AND j = $2",
            ["SELECT b FROM u", "SELECT c FROM u"],
            id="both",
        ),
        pytest.param(
            "SELECT a FROM t WHERE NOT k IN (SELECT b FROM u)",
            "SELECT a FROM t WHERE NOT k IN (SELECT unnest($1))",
            [f"{U} -- the same"],
            id="not",
        ),
    ],
)
def test_equal_but_for_the_subqueries(original: str, other: str, subqueries: list[str]) -> None:
    assert substituted(original, other, *subqueries)


@pytest.mark.parametrize(
    ("original", "other", "subqueries"),
    [
        pytest.param(IN_U, IN_LIST, ["SELECT c FROM u"], id="another subquery"),
        pytest.param(IN_U, "SELECT x FROM t WHERE k IN (SELECT unnest($1))", [U], id="another column"),
        pytest.param(IN_U, "SELECT a FROM t WHERE j IN (SELECT unnest($1))", [U], id="another key"),
        pytest.param(IN_U, "SELECT a FROM t WHERE k = $1", [U], id="a value for a list"),
        pytest.param("SELECT a FROM t WHERE k = (SELECT b FROM u)", IN_LIST, [U], id="a list for a value"),
        pytest.param(
            "SELECT a FROM t WHERE k = ALL (SELECT b FROM u)",
            "SELECT a FROM t WHERE k = ANY (SELECT unnest($1))",
            [U],
            id="all",
        ),
        pytest.param(IN_U, IN_U, [U], id="nothing done"),
        pytest.param(
            "SELECT a FROM t WHERE k < (SELECT b FROM u)",
            "SELECT a FROM t WHERE k < TRY_CAST($1 AS DATE)",
            [U],
            id="a cast that may fail",
        ),
        pytest.param(
            "SELECT a FROM t, (SELECT b FROM u)", "SELECT a FROM t, (SELECT unnest($1))", [U], id="not a value"
        ),
        pytest.param("SELECT a FROM t WHERE k = $1", "SELECT a FROM t WHERE k = $1 AND j", [], id="a conjunct more"),
    ],
)
def test_everything_else_differs(original: str, other: str, subqueries: list[str]) -> None:
    assert not substituted(original, other, *subqueries)
