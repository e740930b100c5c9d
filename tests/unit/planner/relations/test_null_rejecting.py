"""Which predicates refuse the rows that an outer join makes up with NULLs. ``x`` is NULL, ``y`` is anything."""

from __future__ import annotations

import pytest
from sqlglot import exp

from secateur.partitioning.types import parse_type
from secateur.planner.relations import Attribute, BoundPredicate, bind, rejects_nulls
from secateur.planner.text import parse_query, tokenize

X = Attribute(1, 0, "x", parse_type("INTEGER"))
Y = Attribute(2, 0, "y", parse_type("INTEGER"))


def bound_predicate(text: str) -> BoundPredicate:
    sql = f"SELECT 1 FROM t WHERE {text}"
    tree = parse_query(sql, tokenize(sql))
    return bind(tree.args["where"].this, lambda column: {"x": X, "y": Y}.get(column.name))


@pytest.mark.parametrize(
    ("text", "rejects"),
    [
        ("x = 1", True),
        ("x <> 1", True),
        ("1 < x + 2", True),
        ("x = y", True),
        ("y = 1", False),
        ("x IS NULL", False),
        ("x IS NOT NULL", True),
        ("NOT x IS NULL", True),
        ("x IS NOT DISTINCT FROM y", False),
        ("x IN (1, 2)", True),
        ("x NOT IN (1, 2)", True),
        ("x IN (SELECT 1)", True),
        ("x NOT IN (SELECT 1)", False),
        ("(x, y) IN (SELECT 1, 2)", False),
        ("NOT x <> ALL (SELECT 1)", True),
        ("x <> ALL ((SELECT 1) INTERSECT (SELECT 2))", False),
        ("x < ALL ((SELECT 1) UNION (SELECT 2))", False),
        ("NOT x <> ALL ((SELECT 1) INTERSECT (SELECT 2))", True),
        ("x = SOME ((SELECT 1) UNION (SELECT 2))", True),
        ("x < all ([1, 2])", False),
        ("x BETWEEN 1 AND y", True),
        ("NOT x BETWEEN 1 AND y", True),
        ("y BETWEEN 1 AND x", False),
        ("coalesce(x, 1) = 1", False),
        ("CAST(x AS VARCHAR) LIKE 'a%'", True),
        ("x = 1 OR y = 1", False),
        ("x = 1 OR x = 2", True),
        ("x = 1 OR FALSE", True),
        ("x = 1 AND y = 1", True),
        ("NOT (x = 1 AND y = 1)", False),
        ("NOT (x = 1 OR y = 1)", True),
        ("NOT x = 1", True),
        ("FALSE", True),
        ("NULL", True),
        ("TRUE", False),
        ("x", True),
        ("CASE WHEN x = 1 THEN FALSE ELSE TRUE END", False),
    ],
)
def test_what_refuses_nulls(text: str, rejects: bool) -> None:
    assert rejects_nulls(bound_predicate(text), lambda attribute: attribute == X) is rejects


def test_a_long_chain_is_no_deep_recursion() -> None:
    predicate = exp.or_(*(f"x = {value}" for value in range(5000)), copy=False)
    assert rejects_nulls(bind(predicate, lambda column: X), lambda attribute: attribute == X)
