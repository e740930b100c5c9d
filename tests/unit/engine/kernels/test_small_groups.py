"""Aggregations of few rows in plain Python."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from secateur.engine.kernels.arrow import (
    AggregateFunction,
    ArrowAggregate,
    ArrowFragment,
    ColumnExpression,
    compile_small_aggregation,
    slot_name,
)
from secateur.partitioning.types import parse_type

DOUBLE = parse_type("DOUBLE")
FUNCTIONS = (AggregateFunction.SUM, AggregateFunction.AVG)
AGGREGATION = compile_small_aggregation(
    ArrowFragment(
        outputs=tuple((str(number), ColumnExpression(slot_name(number), DOUBLE)) for number in range(len(FUNCTIONS))),
        keys=(),
        aggregates=tuple(ArrowAggregate(function, ColumnExpression("x", DOUBLE), DOUBLE) for function in FUNCTIONS),
    )
)


def aggregated(values: list[float | None]) -> list[Any]:
    assert AGGREGATION is not None
    return [value for (value,) in AGGREGATION(lambda name, counts: values, len(values), lambda count: (0, count))]


@given(st.lists(st.one_of(st.none(), st.just(0.1), st.floats()), max_size=300))
def test_doubles_without_keys_are_added_in_arrows_order(values: list[float | None]) -> None:
    array = pa.array(values, pa.float64(), from_pandas=False)
    assert [repr(value) for value in aggregated(values)] == [repr(pc.sum(array).as_py()), repr(pc.mean(array).as_py())]


def test_that_is_not_the_order_of_the_rows() -> None:
    assert aggregated([0.1] * 1000)[0] != reduce(add, [0.1] * 1000)
