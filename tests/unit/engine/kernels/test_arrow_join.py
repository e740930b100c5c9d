"""Joins of the arrow kernel over relations of literal values: which rows match, and what is declined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from secateur.engine.kernels.arrow import (
    ArrowFragment,
    ArrowSource,
    CallExpression,
    ColumnExpression,
    Expression,
    ParameterExpression,
    ScalarFunction,
    SourceJoin,
)
from secateur.engine.kernels.arrow import kernel as arrow_kernel
from secateur.partitioning.types import parse_type

TYPES = {name: parse_type(text) for name, text in {"k": "BIGINT", "s": "VARCHAR", "v": "INTEGER"}.items()}
LEFT = {"k": [1, 2, 2, None, 5], "s": ["a", "b", None, "d", "e"], "v": [10, 20, 21, 40, 50]}
RIGHT = {"k": [2, 2, 5, 7, None], "s": ["b", "x", "e", "y", "z"], "v": [1, 2, 3, 4, 5]}


def column(name: str) -> ColumnExpression:
    return ColumnExpression(name, TYPES[name.partition(".")[2]])


def call(function: ScalarFunction, *arguments: Expression) -> CallExpression:
    return CallExpression(function, arguments, parse_type("BOOLEAN"))


def key(name: str) -> tuple[Expression, Expression]:
    return column(f"s0.{name}"), column(f"s1.{name}")


def table(rows: dict[str, Sequence[Any]]) -> pa.Table:
    return pa.table({name: pa.array(values, TYPES[name].arrow) for name, values in rows.items()})


def joined(
    *sources: ArrowSource,
    outputs: Sequence[str] = ("s0.v", "s1.v"),
    left: dict[str, Sequence[Any]] = LEFT,
    right: dict[str, Sequence[Any]] = RIGHT,
    params: Sequence[Any] = (),
    where: Expression | None = None,
) -> set[tuple[Any, ...]] | None:
    fragment = ArrowFragment(
        outputs=tuple((name, column(name)) for name in outputs), where=where, sources=(ArrowSource("s0"), *sources)
    )
    relations = {"s0": table(left), "s1": table(right), "s2": table(left)}
    found = arrow_kernel.run(fragment, relations, params)
    if found is None:
        return None
    rows = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
    assert len(set(rows)) == len(rows)
    return set(rows)


def test_an_inner_join_has_each_pair_with_an_equal_key() -> None:
    assert joined(ArrowSource("s1", keys=(key("k"),))) == {(20, 1), (20, 2), (21, 1), (21, 2), (50, 3)}


def test_a_left_join_keeps_rows_without_a_match() -> None:
    assert joined(ArrowSource("s1", kind=SourceJoin.LEFT, keys=(key("k"),))) == {
        (10, None),
        (20, 1),
        (20, 2),
        (21, 1),
        (21, 2),
        (40, None),
        (50, 3),
    }


def test_a_null_in_any_part_of_a_key_matches_nothing() -> None:
    assert joined(ArrowSource("s1", keys=(key("k"), key("s")))) == {(20, 1), (50, 3)}


@pytest.mark.parametrize(("kind", "rows"), [(SourceJoin.SEMI, {20, 21, 50}), (SourceJoin.ANTI, {10, 40})])
def test_semi_and_anti_joins_keep_each_row_once(kind: SourceJoin, rows: set[int]) -> None:
    source = ArrowSource("s1", kind=kind, keys=(key("k"),))
    assert joined(source, outputs=["s0.v"]) == {(value,) for value in rows}


def test_a_condition_decides_about_pairs_before_rows_count_as_unmatched() -> None:
    condition = call(ScalarFunction.NOT_EQUAL, *key("s"))
    assert joined(ArrowSource("s1", kind=SourceJoin.LEFT, keys=(key("k"),), condition=condition)) == {
        (10, None),
        (20, 2),
        (21, None),
        (40, None),
        (50, None),
    }
    assert joined(ArrowSource("s1", kind=SourceJoin.ANTI, keys=(key("k"),), condition=condition), outputs=["s0.v"]) == {
        (10,),
        (21,),
        (40,),
        (50,),
    }


def test_the_condition_of_one_side_leaves_the_other_unmatched_but_where_removes_rows() -> None:
    above = call(ScalarFunction.GREATER, column("s1.v"), ParameterExpression(1, TYPES["v"]))
    left_join = ArrowSource("s1", kind=SourceJoin.LEFT, keys=(key("k"),))
    on = ArrowSource("s1", where=above, kind=SourceJoin.LEFT, keys=(key("k"),))
    assert joined(on, params=[2]) == {(10, None), (20, None), (21, None), (40, None), (50, 3)}
    assert joined(left_join, params=[2], where=above) == {(50, 3)}


def test_a_third_relation_is_joined_to_the_pairs() -> None:
    third = ArrowSource("s2", keys=((column("s1.s"), column("s2.s")),))
    assert joined(ArrowSource("s1", keys=(key("k"),)), third, outputs=["s0.v", "s1.v", "s2.v"]) == {
        (20, 1, 20),
        (21, 1, 20),
        (50, 3, 50),
    }


@pytest.mark.parametrize("searched", ["k", "s"])
def test_a_relation_in_order_is_searched(searched: str) -> None:
    many = {"k": range(100_000), "s": [f"{number:06}" for number in range(100_000)], "v": range(100_000)}
    few = {"k": [99_999, 5, None, -1], "s": ["099999", "000005", None, "x"], "v": [1, 2, 3, 4]}
    source = ArrowSource("s1", keys=(key(searched),), is_searched=True)
    assert joined(source, left=few, right=many) == {(1, 99_999), (2, 5)}
    # The scan of so many rows is left to DuckDB.
    assert joined(ArrowSource("s1", keys=(key(searched),)), left=few, right=many) is None


def test_one_large_side_is_reduced_to_the_keys_of_the_other() -> None:
    many = {"k": range(20_000), "s": ["x"] * 20_000, "v": range(20_000)}
    few = {"k": [3, 19_999, 20_000], "s": ["x"] * 3, "v": [1, 2, 3]}
    assert joined(ArrowSource("s1", keys=(key("k"),)), left=few, right=many) == {(1, 3), (2, 19_999)}
    assert joined(ArrowSource("s1", keys=(key("k"),)), left=many, right=few) == {(3, 1), (19_999, 2)}
    assert joined(ArrowSource("s1", keys=(key("k"),)), left=many, right=many) is None


def test_many_pairs_are_left_to_duckdb() -> None:
    same = {"k": [1] * 300, "s": ["x"] * 300, "v": range(300)}
    assert joined(ArrowSource("s1", keys=(key("k"),)), left=same, right=same) is None


def test_columns_of_other_types_than_planned_are_left_to_duckdb() -> None:
    fragment = ArrowFragment(
        outputs=(("v", column("s0.v")),), sources=(ArrowSource("s0"), ArrowSource("s1", keys=(key("k"),)))
    )
    relations = {"s0": table(LEFT), "s1": table(RIGHT).set_column(0, "k", pa.array([1, 2, 3, 4, 5], pa.int32()))}
    assert arrow_kernel.run(fragment, relations) is None
