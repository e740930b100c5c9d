"""Bounds that follow from inequalities between attributes; ``a`` is on the side that is asked, the others are not."""

from __future__ import annotations

import pytest

from secateur.partitioning.types import parse_type
from secateur.planner.relations import (
    Attribute,
    BoundPredicate,
    EquivalenceClasses,
    bind,
    implied_bounds,
    predicate_text,
)
from secateur.planner.text import parse_query, tokenize

COLUMNS = {
    "a": Attribute(1, 0, "a", parse_type("BIGINT")),
    "b": Attribute(2, 0, "b", parse_type("BIGINT")),
    "c": Attribute(3, 0, "c", parse_type("BIGINT")),
    "small": Attribute(4, 0, "small", parse_type("INTEGER")),
    "d": Attribute(5, 0, "d", parse_type("DOUBLE")),
    "n": Attribute(6, 0, "n", parse_type("DECIMAL(9, 2)")),
}


def conjuncts(text: str) -> list[BoundPredicate]:
    found = []
    for part in text.split(" AND "):
        sql = f"SELECT 1 FROM t WHERE {part}"
        tree = parse_query(sql, tokenize(sql))
        found.append(bind(tree.args["where"].this, lambda column: COLUMNS.get(column.name)))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > b AND b >= 10", {"a > 10"}),
        ("a >= b AND b >= 10", {"a >= 10"}),
        ("a >= b AND b > 10", {"a > 10"}),
        ("b < a AND 10 = b", {"a > 10"}),
        ("a < b AND b < 10", {"a < 10"}),
        ("a < b AND b > 10", set()),
        ("a > b AND b < 10", set()),
        ("a > b AND b > c AND c > 1", {"a > 1"}),
        ("a > b AND b = c AND c > 1", {"a > 1"}),
        ("a > small AND small >= 7", {"a > 7"}),
        # What is compared as DOUBLE may have been rounded, so the bound is not strict.
        ("a > b AND b >= 10.5", {"a >= 10.5"}),
        ("a > b AND b > 10.5", {"a > 10.5"}),
        ("a > b AND b >= $1", {"a >= $1"}),
        ("a > b AND b >= '10'", {"a >= '10'"}),
        # These are compared in a third type, in which different values may be equal.
        ("a > d AND d > 1", set()),
        ("a > n AND n > 1", set()),
        ("a >= b AND b >= a AND b >= 3", {"a >= 3"}),
        ("a > b OR b > 10", set()),
        ("a <> b AND b > 10", set()),
        ("a > b AND b > c", set()),
        ("a > unknown AND b > 1", set()),
        ("a > b AND b > (SELECT 1)", set()),
        ("a > 3 AND a > b AND b > 3", set()),
        # 'Z' >= 'M' COLLATE NOCASE and 'a' > 'Z', but not 'a' > 'M' COLLATE NOCASE.
        ("a > b AND b >= 'M' COLLATE NOCASE", set()),
    ],
)
def test_bounds_that_follow(text: str, expected: set[str]) -> None:
    held = conjuncts(text)
    found = implied_bounds(held, frozenset({1}), EquivalenceClasses(held))
    assert {predicate_text(bound) for bound in found} == expected


def test_no_more_bounds_are_derived_than_a_scan_may_read() -> None:
    held = conjuncts(" AND ".join(["a > b", *(f"b > {number}" for number in range(500))]))
    assert 0 < len(implied_bounds(held, frozenset({1}), EquivalenceClasses(held))) <= 64
