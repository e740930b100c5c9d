"""Constant propagation through equal columns of one scan."""

from __future__ import annotations

from secateur.partitioning.pruning import Box, Choice, Comparison, Constraint, Parameter, ParameterComparison, points
from secateur.partitioning.types import parse_type
from secateur.planner.prune import ColumnEqualities


def test_a_test_passes_between_columns_of_one_type_only() -> None:
    types = {"a": parse_type("INTEGER"), "b": parse_type("INTEGER"), "s": parse_type("SMALLINT")}
    tested = Constraint((Choice(tests=(ParameterComparison(Comparison.IN, (Parameter(0),)),)),))
    (box,) = ColumnEqualities.of([("a", "b"), ("b", "s")], types).applied((Box.of({"a": tested}),))
    assert dict(box.constraints) == {"a": tested, "b": tested}


def test_classes_are_joined_by_any_pair() -> None:
    types = {name: parse_type("INTEGER") for name in "abcd"}
    equalities = ColumnEqualities.of([("a", "b"), ("c", "d"), ("b", "c")], types)
    assert equalities.linked_with(["d"]) == frozenset("abcd")
    said = Box.of({"a": Constraint((Choice(points([1, 2])),)), "d": Constraint((Choice(points([2, 3])),))})
    (box,) = equalities.applied((said,))
    assert {name: box.resolve((), types)[name] for name in "abcd"} == {name: points([2]) for name in "abcd"}
