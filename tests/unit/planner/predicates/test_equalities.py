"""Constant propagation through equal columns of one scan."""

from __future__ import annotations

from typing import Any

from secateur.partitioning.pruning import Box, Choice, Comparison, Constraint, Parameter, ParameterComparison, points
from secateur.partitioning.types import parse_type
from secateur.planner import SelectStatement
from secateur.planner.predicates import ColumnEqualities

DDL = (
    "CREATE TABLE pairs (a INTEGER, b INTEGER, s SMALLINT, x INTEGER, y INTEGER, t VARCHAR, d DOUBLE, PRIMARY KEY (a,"
    " b, s)) PARTITION BY HASH (a) PARTITIONS 101, HASH (b, s) PARTITIONS 103"
)
BUCKETS = 103


def kept(context: Any, where: str, params: Any = ()) -> list[int] | None:
    """The buckets of ``a``, of a scan that is pruned by nothing else; None for all."""
    context.create(DDL)
    statement: SelectStatement = context.select(f"SELECT count(*) FROM pairs WHERE {where}", params)
    bound = statement.plan.scans[0].tree.bind(statement.params)
    return None if bound.is_all else sorted({partition // BUCKETS for partition in bound.ids})


def buckets(context: Any, *values: int) -> list[int]:
    return sorted({context.partition("pairs", a=value, b=0, s=0) // BUCKETS for value in values})


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
