"""Arrow's grouping gives what DuckDB's does, types and order included, or declines."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from secateur.engine.kernels import fragment
from secateur.engine.kernels.duckdb import Cancellation
from secateur.engine.processors import (
    AggregateExpression,
    Kernel,
    KernelGrouping,
    avg_of,
    count_distinct_of,
    count_of,
    count_rows,
    max_of,
    min_of,
    sum_of,
)
from secateur.errors import DataError

BIG = 2**62
GroupedTwice = Callable[..., tuple[list[pa.Table], list[bool]]]


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(pa.chunked_array([[3, None, 1], [3, 1, None, 2]], pa.int32()), id="integers"),
        pytest.param(pa.chunked_array([["b", "", "a", "b", None, "", "c"]]), id="texts"),
        pytest.param(pa.chunked_array([[True, False, None, True, True, False, None]]), id="booleans"),
        pytest.param(
            pa.chunked_array(
                [pa.array([Decimal("1.5"), Decimal("-2"), None] * 2 + [Decimal("1.5")], pa.decimal128(20, 3))]
            ),
            id="decimals",
        ),
        pytest.param(pa.chunked_array([[datetime.date(2024, 1, day) for day in (2, 1, 2, 3, 1, 1, 2)]]), id="dates"),
        pytest.param(pa.chunked_array([[b"\x00", b"", None, b"\x00", b"\xff", b"", b""]]), id="bytes"),
        pytest.param(pa.chunked_array([pa.array([5, 1, 5, None, 1, 2, 2], pa.timestamp("us", "UTC"))]), id="instants"),
    ],
)
@pytest.mark.parametrize(
    "values",
    [
        pytest.param(pa.array([1, None, 3, -4, 5, 6, None], pa.int64()), id="BIGINT"),
        pytest.param(pa.array([1, None, 3, 4, 5, 6, 255], pa.uint8()), id="UTINYINT"),
        pytest.param(pa.array([1, None, 3, 4, 5, 6, 2**60], pa.uint64()), id="UBIGINT"),
        pytest.param(pa.array([1.5, None, 3.25, -4.0, 5.0, 6.0, 0.25], pa.float64()), id="DOUBLE"),
        pytest.param(pa.array([Decimal("1.10"), None, *[Decimal("9999.99")] * 5], pa.decimal128(6, 2)), id="DECIMAL"),
    ],
)
def test_agrees_with_duckdb(grouped_twice: GroupedTwice, keys: pa.ChunkedArray, values: pa.Array) -> None:
    aggregates = {
        "n": count_rows(),
        "c": count_of("v"),
        "s": sum_of("v"),
        "lo": min_of("v"),
        "hi": max_of("v"),
        "m": avg_of("v"),
    }
    (partials, combined, *expected), answered = grouped_twice(
        "grouped_by_arrow", ("k",), aggregates, pa.table({"k": keys, "v": values})
    )
    assert answered == [True, True]
    assert [partials, combined] == expected


def test_agrees_without_a_key(grouped_twice: GroupedTwice) -> None:
    (partials, combined, *expected), answered = grouped_twice(
        "grouped_by_arrow", (), {"n": count_rows(), "s": sum_of("v")}, pa.table({"v": [1, None, 3]})
    )
    assert answered == [True, True]
    assert [partials, combined] == expected


def test_many_groups_come_in_the_order_of_their_first_rows(grouped_twice: GroupedTwice) -> None:
    """So many that Arrow finds some of them in another order."""
    random = np.random.default_rng(7)
    table = pa.table(
        {
            "a": random.integers(0, 50_000, 300_000),
            "b": pa.array(random.integers(0, 2, 300_000)).cast(pa.string()),
            "v": np.arange(300_000),
        }
    )
    (partials, combined, *expected), answered = grouped_twice(
        "grouped_by_arrow", ("a", "b"), {"first": min_of("v"), "s": sum_of("v")}, table
    )
    assert answered == [True, True]
    assert [partials, combined] == expected
    assert np.all(np.diff(partials["first"].to_numpy()) > 0)


@pytest.mark.parametrize(
    ("keys", "aggregates", "values"),
    [
        pytest.param(pa.array([0.0, -0.0]), {"n": count_rows()}, pa.array([1, 2]), id="a key with two zeros"),
        pytest.param(
            pa.array(["a", "a"]).dictionary_encode(), {"n": count_rows()}, pa.array([1, 2]), id="a dictionary key"
        ),
        pytest.param(pa.array([1, 1]), {"n": count_distinct_of("v")}, pa.array([1, 2]), id="distinct values"),
        pytest.param(pa.array([1, 1]), {"n": sum_of("v")}, pa.array([True, False]), id="booleans to add"),
        pytest.param(pa.array([1, 1]), {"n": max_of("v")}, pa.array([1.0, float("nan")]), id="the greatest of NaN"),
        pytest.param(
            pa.array([1, 1]), {"n": max_of("v")}, pa.array([b"a" * 16, b"b" * 16], pa.uuid()), id="the greatest UUID"
        ),
        pytest.param(pa.array([1, 2, 3, 4]), {"n": sum_of("v")}, pa.array([2**61] * 4), id="sums that might not fit"),
    ],
)
def test_declines(
    grouped_twice: GroupedTwice, keys: pa.Array, aggregates: dict[str, AggregateExpression], values: pa.Array
) -> None:
    _, answered = grouped_twice("grouped_by_arrow", ("k",), aggregates, pa.table({"k": keys, "v": values}))
    assert not answered[0]


@pytest.mark.parametrize("values", [pytest.param([BIG, BIG], id="signed"), pytest.param([2**63, 1], id="unsigned")])
def test_a_sum_that_does_not_fit_is_an_error(values: list[int]) -> None:
    kind = pa.uint64() if values[0] > BIG else pa.int64()
    values = [*values, 2**63] if kind == pa.uint64() else values
    with pytest.raises(DataError):
        KernelGrouping(("k",), {"s": sum_of("v")}).accumulate(
            Kernel(fragment.run, Cancellation()), pa.table({"k": [1] * len(values), "v": pa.array(values, kind)})
        )
