"""Conjunctions and disjunctions stay bounded, whatever is written; measured in boxes."""

from __future__ import annotations

import pytest

from secateur.partitioning.pruning import (
    Box,
    Choice,
    Comparison,
    Constraint,
    Parameter,
    ParameterComparison,
    Span,
    points,
    within,
)
from secateur.planner.prune import BOXES_MAX, NOWHERE, UNBOUNDED, Boxes, bounds, intersect, multiply, unite


def says(**values: int) -> Boxes:
    return (Box.of({column: Constraint((Choice(points([value])),)) for column, value in values.items()}),)


def asks(column: str, index: int) -> Boxes:
    return (Box.of({column: Constraint((Choice(tests=(ParameterComparison(Comparison.IN, (Parameter(index),)),)),))}),)


def test_lists_of_one_column_are_one_box() -> None:
    found = unite(says(a=value) for value in range(10_000))
    assert len(found) == 1
    assert len(found[0]["a"].choices[0].domain.points) == 10_000


def test_lists_of_three_columns_are_one_box() -> None:
    assert len(intersect(*(unite(says(**{column: value}) for value in range(20)) for column in "abc"))) == 1


def test_keys_of_two_columns_stay_apart() -> None:
    assert len(unite(says(a=value, b=value) for value in range(2_000))) == 2_000


def test_a_conjunction_of_branches_is_multiplied_out_within_its_bound() -> None:
    conjuncts = [unite((asks("a", 2 * number), asks("b", 2 * number + 1))) for number in range(100)]
    factors = multiply(conjuncts)
    assert sum(map(len, factors)) <= 100 * BOXES_MAX
    assert max(map(len, factors)) <= BOXES_MAX
    assert len(intersect(*conjuncts)) <= BOXES_MAX


def test_products_are_counted_over_all_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "PRODUCTS_MAX", 11)
    conjuncts = [unite((asks("a", 2 * number), asks("b", 2 * number + 1))) for number in range(6)]
    assert sorted(map(len, multiply(conjuncts))) == [2, 2, 4, 4]


def test_too_many_alternatives_are_no_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "UNION_MAX", 16)
    assert unite(says(a=value, b=value) for value in range(17)) == UNBOUNDED


def test_the_ends_of_the_algebra() -> None:
    assert multiply([]) == ()
    assert multiply([UNBOUNDED, UNBOUNDED]) == ()
    assert intersect() == UNBOUNDED
    assert intersect(says(a=1), UNBOUNDED) == says(a=1)
    assert intersect(says(a=1), says(a=2)) == NOWHERE
    assert intersect(unite((says(a=1, b=1), says(a=2, b=2))), says(a=3)) == NOWHERE
    assert unite(()) == NOWHERE
    assert unite((says(a=1), UNBOUNDED)) == UNBOUNDED


def test_thousands_of_excluded_values_are_one_box() -> None:
    excluded = [(Box.of({"a": Constraint((Choice(points([value]).complement()),))}),) for value in range(3_000)]
    (box,) = intersect(*excluded)
    assert len(box["a"].choices[0].domain.spans) == 3_001


def test_spans_that_touch_melt() -> None:
    below = (Box.of({"a": Constraint((Choice(within([Span(upper=5)])),))}),)
    above = (Box.of({"a": Constraint((Choice(within([Span(lower=5)])),))}),)
    assert unite((below, above)) == UNBOUNDED
