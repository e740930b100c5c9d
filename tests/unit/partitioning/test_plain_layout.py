"""Columns that Arrow cannot reorder are made into ones with the same values that it can."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from secateur.partitioning.types import without_views

VIEW = pa.string_view()
RUNS = pa.RunEndEncodedArray.from_arrays([1, 3], pa.array(["x", "y"], VIEW))


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", None, "y"], VIEW),
        pa.array([b"x", None, b"y"], pa.binary_view()),
        RUNS,
        pa.RunEndEncodedArray.from_arrays([1, 3], pa.array(["x", "y"]).dictionary_encode()),
        pa.DictionaryArray.from_arrays([1, None, 0], pa.array(["x", "y"], VIEW)),
        pa.array([["x"], None, ["y", None]], pa.list_(VIEW)),
        pa.array([["x"], None, []], pa.large_list(VIEW)),
        pa.array([["x"], None, ["y"]], pa.list_(VIEW, 1)),
        pa.array([["x"], None, ["y"]], pa.list_view(VIEW)),
        pa.array([{"a": "x"}, None, {"a": None}], pa.struct([("a", VIEW)])),
        pa.array([[("x", "y")], None, []], pa.map_(VIEW, VIEW)),
        pa.array([[{"a": ["x"]}], None, []], pa.list_(pa.struct([("a", pa.list_(VIEW))]))),
        pa.ListArray.from_arrays([0, 1, 1, 3], RUNS),
    ],
    ids=lambda column: str(column.type),
)
def test_such_columns_can_be_reordered(column: pa.Array) -> None:
    values: list[Any] = column.to_pylist()
    for start in (0, 1):
        batch = without_views(pa.record_batch({"v": column.slice(start), "k": list(range(len(column) - start))}))
        batch.validate(full=True)
        assert batch.take(pa.array([1, 0])).column("v").to_pylist() == [values[start + 1], values[start]]


def test_other_batches_are_handed_back() -> None:
    batch = pa.record_batch({"v": [[1]], "s": ["x"], "d": pa.array(["x"]).dictionary_encode()})
    assert without_views(batch) is batch
