"""Which common table expressions go with a subquery that is taken out, and which are left without readers."""

from __future__ import annotations

import pytest

from secateur.planner.steps.subqueries import EnclosingCTEs
from secateur.planner.text import NO_PARAMETERS, compared_trees, parse_query, tokenize


def around(sql: str, subquery: str) -> tuple[EnclosingCTEs, list[str] | None]:
    """The common table expressions of a statement, and the texts of those that one of its subqueries needs."""
    tokens = tokenize(sql)
    found = EnclosingCTEs.of(sql, tokens, NO_PARAMETERS)
    start = sql.index(f"({subquery})")
    position, opening = next((index, token) for index, token in enumerate(tokens) if token.start == start)
    closing = next(token for token in tokens if token.start == start + len(subquery) + 1)
    needed = found.needed_by(parse_query(subquery, tokenize(subquery)), opening, closing, position)
    return found, (
        None if needed is None else [sql[tokens[first].start : tokens[last].end + 1] for first, last in needed]
    )


@pytest.mark.parametrize(
    ("sql", "subquery", "expected"),
    [
        pytest.param("SELECT 1 FROM t WHERE k IN (SELECT k FROM u)", "SELECT k FROM u", [], id="none"),
        pytest.param(
            "WITH a AS (SELECT 1 AS k) SELECT 1 FROM t WHERE k IN (SELECT k FROM u)",
            "SELECT k FROM u",
            [],
            id="not read",
        ),
        pytest.param(
            "WITH a AS (SELECT 1 AS k) SELECT 1 FROM t WHERE k IN (SELECT k FROM A)",
            "SELECT k FROM A",
            ["a AS (SELECT 1 AS k)"],
            id="read",
        ),
        pytest.param(
            "WITH a AS (SELECT 1 AS k), b(k) AS NOT MATERIALIZED (SELECT k + ')' FROM a), c AS (SELECT 3) SELECT 1 FROM"
            " t WHERE k IN (SELECT k FROM b)",
            "SELECT k FROM b",
            ["a AS (SELECT 1 AS k)", "b(k) AS NOT MATERIALIZED (SELECT k + ')' FROM a)"],
            id="through another",
        ),
        pytest.param(
            "WITH RECURSIVE a(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM a WHERE k < 9) SELECT 1 FROM t WHERE k IN"
            " (SELECT k FROM a)",
            "SELECT k FROM a",
            ["a(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM a WHERE k < 9)"],
            id="recursive",
        ),
        pytest.param(
            "WITH a AS (SELECT 1 AS k), b AS (SELECT 1 WHERE 1 IN (SELECT k FROM a)) SELECT 1 FROM b",
            "SELECT k FROM a",
            None,
            id="inside of WITH",
        ),
        pytest.param(
            "SELECT 1 FROM (WITH a AS (SELECT 1 AS k) SELECT 1 FROM t WHERE k IN (SELECT k FROM a))",
            "SELECT k FROM a",
            None,
            id="of a part of the statement",
        ),
        pytest.param(
            "SELECT 1 FROM t WHERE k IN (WITH a AS (SELECT 1 AS k) SELECT k FROM a)",
            "WITH a AS (SELECT 1 AS k) SELECT k FROM a",
            [],
            id="of the subquery itself",
        ),
    ],
)
def test_what_goes_with_a_subquery(sql: str, subquery: str, expected: list[str] | None) -> None:
    assert around(sql, subquery)[1] == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param(
            "WITH a AS (SELECT 1 AS k) SELECT 1 FROM t WHERE k IN (SELECT k FROM a)",
            {0},
            id="read by the subquery alone",
        ),
        pytest.param(
            "WITH a AS (SELECT 1 AS k) SELECT 1 FROM a WHERE k IN (SELECT k FROM a)", set(), id="read by the rest too"
        ),
        pytest.param(
            "WITH a AS (SELECT 1 AS k), b AS (FROM a) SELECT 1 FROM b WHERE k IN (SELECT k FROM a)",
            set(),
            id="read by another that is read",
        ),
        pytest.param(
            "WITH a AS (SELECT 1 AS k), b AS (FROM a) SELECT 1 FROM t WHERE k IN (SELECT k FROM b)",
            {0, 1},
            id="a chain",
        ),
    ],
)
def test_what_nobody_reads_any_more(sql: str, expected: set[int]) -> None:
    start = sql.rindex("(")
    assert EnclosingCTEs.of(sql, tokenize(sql), NO_PARAMETERS).unneeded_without([(start, len(sql))]) == expected


def test_duckdb_has_to_see_the_same_definitions() -> None:
    sql = "WITH a AS (SELECT 1 AS k) SELECT 1 FROM t WHERE k IN (SELECT k FROM a)"
    found = EnclosingCTEs.of(sql, tokenize(sql), NO_PARAMETERS)
    original, same, other = compared_trees(
        [sql, "WITH a AS (SELECT 1 AS k) SELECT k FROM a", "WITH a AS (SELECT 2 AS k) SELECT k FROM a"]
    )
    assert original is not None
    assert same is not None
    assert other is not None
    assert found.are_those_of(original, same)
    assert not found.are_those_of(original, other)
    assert found.left_out(original, same, [0]) is None  # it still reads from a
