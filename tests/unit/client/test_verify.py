from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from secateur.client.execution import same_rows

NAN = float("nan")


def table(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.table(
        {"k": pa.array([row[0] for row in rows], pa.string()), "x": pa.array([row[1] for row in rows], pa.float64())}
    )


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        pytest.param([], [], True, id="empty"),
        pytest.param([("a", 1.0)], [("a", 1.0)], True, id="equal"),
        pytest.param([("a", 1.0), ("b", 2.0)], [("b", 2.0), ("a", 1.0)], True, id="order"),
        pytest.param([("a", 0.1 + 0.2)], [("a", 0.3)], True, id="rounding"),
        pytest.param([("a", 1.0)], [("a", 1.0001)], False, id="another number"),
        pytest.param([("a", 1.0)], [("b", 1.0)], False, id="another key"),
        pytest.param([("a", 1.0)], [("a", 1.0), ("a", 1.0)], False, id="more rows"),
        pytest.param(
            [("a", 1.0), ("a", 1.0), ("b", 2.0)], [("a", 1.0), ("b", 2.0), ("b", 2.0)], False, id="other multiplicity"
        ),
        pytest.param([("a", None)], [("a", 0.0)], False, id="null is not zero"),
        pytest.param([("a", NAN), (None, None)], [(None, None), ("a", NAN)], True, id="nan and null"),
        pytest.param([("a", NAN)], [("a", 0.0)], False, id="nan is a value"),
        pytest.param([("a", 1e300), ("a", 2.0)], [("a", 2.0), ("a", 1e300 * (1 + 1e-12))], True, id="large"),
    ],
)
def test_rows_are_a_multiset(left: list[Any], right: list[Any], same: bool) -> None:
    assert same_rows(table(*left), table(*right)) is same
    assert same_rows(table(*right), table(*left)) is same


def test_floats_that_sort_differently_are_matched() -> None:
    """Two float columns, the first equal up to rounding: sorting by it pairs the wrong rows."""
    step = 1e-13
    left = pa.table({"x": [1.0, 1.0 + step], "y": [5.0, 6.0]})
    right = pa.table({"x": [1.0 + step, 1.0], "y": [5.0, 6.0]})
    assert same_rows(left, right)
    assert not same_rows(left, pa.table({"x": [1.0, 1.0], "y": [5.0, 7.0]}))


def test_other_columns_are_other_results() -> None:
    assert not same_rows(pa.table({"x": [1]}), pa.table({"y": [1]}))
    assert not same_rows(pa.table({"x": [1]}), pa.table({"x": [1.0]}))
