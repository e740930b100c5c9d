"""Grouping by place gives what DuckDB's does, types and order included, or declines."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from secateur.engine.processors import AggregateExpression, avg_of, count_of, count_rows, min_of, sum_of

GroupedTwice = Callable[..., tuple[list[pa.Table], list[bool]]]
KEYS = pa.chunked_array([[3, None, 1], [3, 1, None, 2]], pa.int64())


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({"k": KEYS}, id="NULL among them"),
        pytest.param({"k": pa.array([127, 125, None, 126, 127, 124, 125], pa.int8())}, id="the end of a small type"),
        pytest.param(
            {"k": pa.array([2**32 - 1, 2**32 - 1, 2**32 - 2, None] + [2**32 - 2] * 3, pa.uint32())},
            id="the end of a type",
        ),
        pytest.param({"k": pa.array([-(2**63), -(2**63) + 2, None] + [-(2**63)] * 4)}, id="the beginning of a type"),
        pytest.param({"k": pa.nulls(7, pa.int64())}, id="NULL alone"),
        pytest.param({"k": KEYS, "l": pa.chunked_array([[None, 5, 4, 5], [4, 5, 4]], pa.int16())}, id="two keys"),
    ],
)
@pytest.mark.parametrize(
    "values",
    [
        pytest.param(pa.array([1, None, 3, -4, 5, 6, None], pa.int64()), id="BIGINT"),
        pytest.param(pa.array([1, 2, 3, 4, 5, 6, 255], pa.uint8()), id="UTINYINT"),
        pytest.param(pa.chunked_array([[1.5, None], [3.25, -4.0, 5.0, 6.0, 0.25]]), id="DOUBLE"),
        pytest.param(pa.array([1.5, None, 3.25, -4.0, float("inf"), 6.0, 0.25], pa.float32()), id="FLOAT"),
        pytest.param(pa.nulls(7, pa.int32()), id="no value at all"),
    ],
)
def test_agrees_with_duckdb(grouped_twice: GroupedTwice, keys: dict[str, pa.Array], values: pa.Array) -> None:
    aggregates = {"n": count_rows(), "c": count_of("v"), "s": sum_of("v")}
    (partials, combined, *expected), answered = grouped_twice(
        "grouped_densely", tuple(keys), aggregates, pa.table({**keys, "v": values})
    )
    assert answered == [True, True]
    assert [partials, combined] == expected


def test_the_first_of_two_stages_of_a_mean(grouped_twice: GroupedTwice) -> None:
    """Its sum is a HUGEINT, which the second stage leaves to others."""
    (partials, combined, *expected), answered = grouped_twice(
        "grouped_densely", ("k",), {"m": avg_of("v")}, pa.table({"k": KEYS, "v": range(7)})
    )
    assert answered == [True, False]
    assert [partials, combined] == expected


def test_many_groups_come_in_the_order_of_their_first_rows(grouped_twice: GroupedTwice) -> None:
    random = np.random.default_rng(7)
    table = pa.table({"a": random.integers(-50_000, 50_000, 300_000), "v": random.integers(-(10**9), 10**9, 300_000)})
    (partials, combined, *expected), answered = grouped_twice(
        "grouped_densely", ("a",), {"n": count_rows(), "s": sum_of("v")}, table
    )
    assert answered == [True, True]
    assert [partials, combined] == expected


@pytest.mark.parametrize(
    ("keys", "aggregates", "values"),
    [
        pytest.param([1, 10**6], {"n": count_rows()}, pa.array([1, 2]), id="keys far apart"),
        pytest.param([-(2**63), 2**63 - 1], {"n": count_rows()}, pa.array([1, 2]), id="keys as far apart as can be"),
        pytest.param(["a", "b"], {"n": count_rows()}, pa.array([1, 2]), id="texts"),
        pytest.param([1.0, 2.0], {"n": count_rows()}, pa.array([1, 2]), id="doubles"),
        pytest.param([1, 2], {"n": min_of("v")}, pa.array([1, 2]), id="the least"),
        pytest.param([1, 2], {"n": sum_of("v")}, pa.array([2**53, 1]), id="sums that no double holds"),
        pytest.param([1, 2], {"n": sum_of("v")}, pa.array([-(2**62), 1]), id="sums far below zero"),
        pytest.param([1, 2], {"n": sum_of("v")}, pa.array([Decimal("1.5"), Decimal(2)]), id="decimals"),
        pytest.param([1, 2], {"n": sum_of("v")}, pa.array([True, False]), id="booleans"),
    ],
)
def test_declines(
    grouped_twice: GroupedTwice, keys: list[int], aggregates: dict[str, AggregateExpression], values: pa.Array
) -> None:
    _, answered = grouped_twice("grouped_densely", ("k",), aggregates, pa.table({"k": keys, "v": values}))
    assert not answered[0]
