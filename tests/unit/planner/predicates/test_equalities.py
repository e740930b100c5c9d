"""Constant propagation through equal columns of one scan."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.partitioning.comparison import Comparison
from secateur.partitioning.condition import Box, Choice, Constraint, Test
from secateur.partitioning.domain import points
from secateur.partitioning.operand import Parameter
from secateur.partitioning.types import parse_type
from secateur.planner.predicates.equalities import Equalities
from secateur.planner.statement import SelectStatement

DDL = (
    "CREATE TABLE pairs (a INTEGER, b INTEGER, s SMALLINT, x INTEGER, y INTEGER, t VARCHAR, d DOUBLE, PRIMARY KEY (a, b, s)) "
    "PARTITION BY HASH (a) PARTITIONS 101, HASH (b, s) PARTITIONS 103"
)
BUCKETS = 103


def kept(bench: Any, where: str, params: Any = ()) -> list[int] | None:
    """The buckets of ``a``, of a scan that is pruned by nothing else; None for all."""
    bench.create(DDL)
    statement: SelectStatement = bench.select(f"SELECT count(*) FROM pairs WHERE {where}", params)
    bound = statement.plan.scans[0].tree.bind(statement.params)
    return None if bound.is_all else sorted({partition // BUCKETS for partition in bound.ids})


def buckets(bench: Any, *values: int) -> list[int]:
    return sorted({bench.partition("pairs", a=value, b=0, s=0) // BUCKETS for value in values})


@pytest.mark.parametrize(
    ("where", "params", "values"),
    [
        pytest.param("a = b AND b = 5", (), [5], id="another key column"),
        pytest.param("a = x AND x = 5", (), [5], id="a column that is no key"),
        pytest.param("x = 5 AND x = a", (), [5], id="in any order"),
        pytest.param("a = x AND x = y AND y IN (5, 6)", (), [5, 6], id="a chain"),
        pytest.param("a = x AND x BETWEEN 5 AND 7", (), [5, 6, 7], id="a range"),
        pytest.param("a = s AND s = 5", (), [5], id="integers of another width"),
        pytest.param("a = x AND x = ?", [5], [5], id="a parameter"),
        pytest.param("a = x AND x = ? AND a IN (5, 6)", [6], [6], id="a parameter and constants"),
        pytest.param("a = x AND x > 5 AND a IN (5, 6, 7)", (), [6, 7], id="what both say"),
        pytest.param("(a = x AND x = 5) OR a = 6", (), [5, 6], id="in a branch of OR"),
        pytest.param("a = x AND (x = 5 OR x = 6)", (), [5, 6], id="over branches of OR"),
        pytest.param("NOT (a <> x OR x <> 5)", (), [5], id="under NOT"),
        pytest.param("a = x AND (x = y AND y = 5 OR x = 6)", (), [5, 6], id="inside and outside of a branch"),
        pytest.param("a = a AND a = 5", (), [5], id="itself"),
    ],
)
def test_what_is_said_of_one_holds_for_its_equals(bench: Any, where: str, params: Any, values: list[int]) -> None:
    assert kept(bench, where, params) == buckets(bench, *values)


@pytest.mark.parametrize(
    "where",
    [
        pytest.param("a = x OR x = 5", id="no conjunction"),
        pytest.param("a <> x AND x = 5", id="no equality"),
        pytest.param("a = d AND d = 5", id="another type"),
        pytest.param("a = x", id="nothing is known"),
        pytest.param("NOT (a = x AND x = 5)", id="not FALSE by both"),
    ],
)
def test_what_does_not_follow_prunes_nothing(bench: Any, where: str) -> None:
    assert kept(bench, where) is None


def test_a_contradiction_between_equals_is_never_true(bench: Any) -> None:
    assert kept(bench, "a = x AND x = 5 AND a = 6") == []
    assert kept(bench, "a = s AND a = 100000") == []


def test_a_test_passes_between_columns_of_one_type_only() -> None:
    types = {"a": parse_type("INTEGER"), "b": parse_type("INTEGER"), "s": parse_type("SMALLINT")}
    tested = Constraint((Choice(tests=(Test(Comparison.IN, (Parameter(0),)),)),))
    (box,) = Equalities.of([("a", "b"), ("b", "s")], types).applied((Box.of({"a": tested}),))
    assert dict(box.constraints) == {"a": tested, "b": tested}


def test_classes_are_joined_by_any_pair() -> None:
    types = {name: parse_type("INTEGER") for name in "abcd"}
    equalities = Equalities.of([("a", "b"), ("c", "d"), ("b", "c")], types)
    assert equalities.linked_with(["d"]) == frozenset("abcd")
    said = Box.of({"a": Constraint((Choice(points([1, 2])),)), "d": Constraint((Choice(points([2, 3])),))})
    (box,) = equalities.applied((said,))
    assert {name: box.resolve((), types)[name] for name in "abcd"} == {name: points([2]) for name in "abcd"}
