"""Whether a relation has each combination of values at most once."""

from __future__ import annotations

import pytest

from secateur.partitioning.types import SqlType, TypeKind
from secateur.planner.relations import Aggregate, Attribute, Distinct, Relation, Values, is_unique

A, B = (Attribute(1, position, name, SqlType(TypeKind.INTEGER)) for position, name in enumerate("ab"))
ROWS = Values((A, B))


@pytest.mark.parametrize(
    ("relation", "attributes", "expected"),
    [
        pytest.param(ROWS, {A, B}, False, id="rows of constants"),
        pytest.param(Distinct(ROWS, frozenset({A}), exact=True), {A}, True, id="DISTINCT ON (a)"),
        pytest.param(Distinct(ROWS, frozenset({A}), exact=True), {B}, False, id="DISTINCT ON (a), asked about b"),
        pytest.param(Distinct(ROWS, frozenset({A}), exact=False), {A}, False, id="DISTINCT ON (a, lower(b))"),
        pytest.param(Distinct(ROWS, frozenset(), exact=True), set(), False, id="DISTINCT ON ()"),
        pytest.param(Aggregate(ROWS, frozenset({A}), exact=True), {A, B}, True, id="GROUP BY a"),
        pytest.param(Aggregate(ROWS, frozenset({A}), exact=False), {A}, False, id="GROUP BY a, lower(b)"),
    ],
)
def test_uniqueness(relation: Relation, attributes: set[Attribute], expected: bool) -> None:
    assert is_unique(relation, frozenset(attributes)) == expected
