"""What the items of a SELECT hold."""

from __future__ import annotations

import pytest
from sqlglot import exp

from secateur.planner.relations import may_aggregate, may_be_many, windows_in
from secateur.planner.text import parse_query, tokenize


def _item(text: str) -> exp.Expr:
    sql = f"SELECT {text} FROM t"
    query = parse_query(sql, tokenize(sql))
    item: exp.Expr = query.expressions[0]
    return item


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("a", False),
        ("count(*)", False),
        ("coalesce(a, b)", False),
        ("(SELECT count(*) FROM (SELECT * FROM u))", False),
        ("*", True),
        ("t.*", True),
        ("COLUMNS('a|b')", True),
        ("COLUMNS('a|b')::VARCHAR", True),
        ("max(COLUMNS(*))", True),
        ("unnest({'a': 1, 'b': 2})", True),
    ],
)
def test_an_item_may_be_many_columns(item: str, expected: bool) -> None:
    assert may_be_many(_item(item)) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("a + 1", False),
        ("CASE WHEN a = 1 THEN 2 END", False),
        ("row_number() OVER (PARTITION BY a)", False),
        ("sum(a) OVER ()", False),
        ("sum(count(*)) OVER ()", True),
        ("row_number() OVER (ORDER BY count(*))", True),
        ("a_function_of_the_user(a)", True),
        ("* REPLACE (max(a) AS a)", True),
        ("(SELECT max(t.a))", True),
        ("[count(*)]", True),
    ],
)
def test_an_item_may_aggregate(item: str, expected: bool) -> None:
    assert may_aggregate(_item(item)) == expected


def test_windows_of_subqueries_are_not_those_of_the_expression() -> None:
    found = list(windows_in(_item("sum(a) OVER (PARTITION BY a) + (SELECT max(b) OVER () FROM u) + rank() OVER w")))
    assert len(found) == 2
