"""Functions over rows as dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from secateur.errors import DagError, DataError
from secateur.processors import filter_dicts, flat_map_dicts, map_dicts
from secateur.testing import verify_processor

ROWS = pa.table({"k": pa.array(["a", "b", None]).dictionary_encode(), "x": pa.array([1, None, 3])})
SCHEMA = pa.schema({"k": pa.string(), "n": pa.int32()})


@pytest.mark.parametrize("cooperative", [True, False])
def test_map(cooperative: bool) -> None:
    stage = map_dicts(
        lambda row: {"k": row["k"]} if row["x"] is None else {"k": row["k"], "n": row["x"] * 10},
        SCHEMA,
        cooperative=cooperative,
    )
    expected = pa.table({"k": ["a", "b", None], "n": pa.array([10, None, 30], pa.int32())})
    verify_processor(stage, [ROWS], expected, ordered=True)
    verify_processor(stage, [ROWS.slice(0, 0)], expected.slice(0, 0))


def test_flat_map() -> None:
    stage = flat_map_dicts(lambda row: ({"k": row["k"], "n": n} for n in range(row["x"] or 0)), SCHEMA)
    expected = pa.table({"k": ["a", None, None, None], "n": pa.array([0, 0, 1, 2], pa.int32())})
    verify_processor(stage, [ROWS], expected, ordered=True)


def test_filter() -> None:
    verify_processor(filter_dicts(lambda row: row["x"]), [ROWS], ROWS.take([0, 2]), ordered=True)
    verify_processor(filter_dicts(lambda row: False), [ROWS], ROWS.slice(0, 0))


def test_columns_of_one_name_are_told_apart() -> None:
    rows = pa.Table.from_arrays([pa.array([1, 2]), pa.array(["a", "b"]), pa.array([3, 4])], names=["k", "k", "K"])
    stage = map_dicts(lambda row: {"k": row["k_1"], "n": row["k"] * row["K_2"]}, SCHEMA)
    verify_processor(stage, [rows], pa.table({"k": ["a", "b"], "n": pa.array([3, 8], pa.int32())}), ordered=True)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        pytest.param(lambda row: 5, DagError, "returned a int; return a dict", id="no dict"),
        pytest.param(
            lambda row: {"z": 1}, DagError, "the column 'z', which its schema lacks; it has k, n", id="unknown column"
        ),
        pytest.param(lambda row: {"n": "one"}, DataError, "column n: 'one' (str) does not fit", id="another type"),
        pytest.param(lambda row: {"n": 2**40}, DataError, "column n: 1099511627776 (int)", id="too large"),
        pytest.param(lambda row: {"n": 1.5}, DataError, "it is not a whole number", id="a fraction"),
    ],
)
def test_wrong_results_are_named(
    function: Callable[[dict[str, Any]], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        verify_processor(map_dicts(function, SCHEMA), [ROWS])
    assert isinstance(caught.value.__cause__, error)
    assert message in str(caught.value.__cause__)
