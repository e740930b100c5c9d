"""IN lists bound all at once: the same partitions as by the general way, for whatever values."""

from __future__ import annotations

import random
import uuid
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from secateur.partitioning.pruning import (
    Box,
    Cast,
    Choice,
    Comparison,
    Computed,
    Constant,
    Constraint,
    Keys,
    Operand,
    Parameter,
    ParameterComparison,
    ParameterFunction,
    ParameterList,
    PartitionTree,
    combination_limit,
    points,
)
from secateur.partitioning.pruning.select_partitions import select_partitions
from secateur.partitioning.schemes import HashComponent, PartitionScheme, build_scheme
from secateur.partitioning.types import parse_type

VALUES: dict[str, Any] = {
    "TINYINT": lambda rng: rng.randint(-128, 127),
    "BIGINT": lambda rng: rng.choice([rng.randint(-(2**63), 2**63 - 1), rng.randint(0, 9), 2**63 - 1]),
    "VARCHAR": lambda rng: "é" * rng.randint(0, 2) + str(rng.randint(0, 10**9)),
    "BLOB": lambda rng: rng.randbytes(rng.randint(0, 40)),
    "BOOLEAN": lambda rng: rng.random() < 0.5,
    "DATE": lambda rng: date(1, 1, 1) + timedelta(days=rng.randint(0, 3_000_000)),
    "UUID": lambda rng: uuid.UUID(int=rng.getrandbits(128)),
}
STRANGERS: list[Any] = [
    None,
    1.0,
    2.5,
    "x",
    "\ud800",
    True,
    7,
    2**63,
    -(2**63) - 1,
    b"b",
    datetime(2024, 1, 1),
    object(),
]


def scheme_of(column_type: str, partitions: int = 1000) -> PartitionScheme:
    return build_scheme(
        hashes=[HashComponent(("k",), partitions)], types={"k": parse_type(column_type)}, primary_key=("k",), table="t"
    )


def tree_of(
    scheme: PartitionScheme, *tests: tuple[Operand | ParameterList, ...], constants: tuple[Any, ...] = ()
) -> PartitionTree:
    choice = Choice(points(constants), tuple(ParameterComparison(Comparison.IN, operands) for operands in tests))
    limit = combination_limit(scheme)
    return PartitionTree("t", scheme, Keys(Box.of({"k": Constraint((choice,))})), scheme.partition_count, limit)


def generally(tree: PartitionTree, params: list[Any]) -> list[int]:
    assert isinstance(tree.root, Keys)
    return list(select_partitions(tree.scheme, tree.root.box.resolve(params, dict(tree.scheme.types)), tree.limit).ids)


@pytest.mark.parametrize("size", [1, 2, 40, 400])
@pytest.mark.parametrize("column_type", VALUES)
def test_lists_and_parameters(column_type: str, size: int) -> None:
    rng = random.Random(size)
    scheme = scheme_of(column_type)
    listed = tree_of(scheme, (ParameterList(0),), constants=(VALUES[column_type](rng),))
    marks = tree_of(scheme, (*(Parameter(index) for index in range(size)), Constant(VALUES[column_type](rng))))
    for _ in range(5):
        values = [VALUES[column_type](rng) for _ in range(size)]
        assert list(listed.bind([values]).ids) == generally(listed, [values])
        assert list(marks.bind(values).ids) == generally(marks, values)


@pytest.mark.parametrize("size", [3, 300])
@pytest.mark.parametrize("stranger", STRANGERS, ids=map(repr, range(len(STRANGERS))))
@pytest.mark.parametrize("column_type", VALUES)
def test_values_of_other_classes(column_type: str, stranger: Any, size: int) -> None:
    rng = random.Random(1)
    tree = tree_of(scheme_of(column_type), (ParameterList(0),))
    values = [*(VALUES[column_type](rng) for _ in range(size)), stranger]
    assert list(tree.bind([values]).ids) == generally(tree, [values])


@pytest.mark.parametrize("column_type", VALUES)
def test_several_parameters_that_one_column_must_equal(column_type: str) -> None:
    rng = random.Random(2)
    scheme = scheme_of(column_type)
    choices = tuple(tree_of(scheme, (Parameter(index),)).root.box["k"].choices[0] for index in range(3))
    tree = replace(tree_of(scheme, (Parameter(0),)), root=Keys(Box.of({"k": Constraint(choices)})))
    for _ in range(20):
        value, other = VALUES[column_type](rng), VALUES[column_type](rng)
        for params in (
            [value] * 3,
            [value, value, other],
            [value, other, value],
            [value, value, rng.choice(STRANGERS)],
        ):
            assert list(tree.bind(params).ids) == generally(tree, params)
    for stranger in STRANGERS:
        assert list(tree.bind([stranger] * 3).ids) == generally(tree, [stranger] * 3)


@pytest.mark.parametrize("value", [None, [], "abc", ["a", "a"]], ids=["NULL", "no elements", "no list", "twice"])
def test_odd_lists(value: Any) -> None:
    tree = tree_of(scheme_of("VARCHAR"), (ParameterList(0),))
    assert list(tree.bind([value]).ids) == generally(tree, [value])


def test_more_values_than_the_limit_are_everything() -> None:
    tree = tree_of(scheme_of("BIGINT", 10), (ParameterList(0),))
    assert tree.bind([list(range(81))]).is_all
    assert not tree.bind([[1] * 81]).is_all


@pytest.mark.parametrize(
    ("column_type", "operand", "value"),
    [
        ("VARCHAR", Computed(ParameterFunction.UPPER, (Parameter(0),)), "c2"),
        ("VARCHAR", Computed(ParameterFunction.UPPER, (Parameter(0),)), "ß"),
        ("VARCHAR", Computed(ParameterFunction.UPPER, (Parameter(0),)), None),
        ("BIGINT", Computed(ParameterFunction.ADD, (Parameter(0), Constant(1))), 5),
        ("TINYINT", Computed(ParameterFunction.ADD, (Parameter(0), Constant(1))), 127),
        ("DATE", Cast(Parameter(0), parse_type("DATE")), "2024-01-01"),
        ("DATE", Cast(Parameter(0), parse_type("TIMESTAMP")), "2024-01-01 00:00:00"),
    ],
)
def test_computed_keys(column_type: str, operand: Operand, value: Any) -> None:
    tree = tree_of(scheme_of(column_type), (operand,))
    assert list(tree.bind([value]).ids) == generally(tree, [value])
