"""Lists of a fixed length: made of any lists of that length, and of no others."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from secateur.errors import DataError
from secateur.partitioning.types import as_they_stand, cast_column, check_held, column_of, parse_type

FLOAT3 = parse_type("FLOAT[3]")
KEY = UUID(int=7)


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("FLOAT[3]", [1, 2, 3], [1.0, 2.0, 3.0]),
        ("FLOAT[3]", (0.1, None, "2.5"), [float(np.float32(0.1)), None, 2.5]),
        ("FLOAT[3]", np.array([1, 2, 3], "f4"), [1.0, 2.0, 3.0]),
        ("FLOAT[3]", [0.1, float("inf"), -0.0], [float(np.float32(0.1)), float("inf"), -0.0]),
        ("DOUBLE[2]", np.array([0.1, 1e300]), [0.1, 1e300]),
        ("INTEGER[2][2]", np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        ("UUID[2]", [KEY, None], [KEY, None]),
        ("UUID[][1]", [[KEY]], [[KEY]]),
        ("TIMESTAMP_NS[1]", np.array(["NaT"], "datetime64[ns]"), [None]),
        ("STRUCT(v VARCHAR[1])", {"V": ["a"]}, {"v": ["a"]}),
    ],
)
def test_values(text: str, given: Any, expected: Any) -> None:
    type_ = parse_type(text)
    found = column_of([None, given, None, given], type_, name="v")
    assert found.type == type_.arrow
    assert found.to_pylist() == [None, expected, None, expected]
    found.validate(full=True)


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        (
            "FLOAT[3]",
            [1.0, 2.0],
            r"row 2, column v: \[1.0, 2.0\] \(list\) does not fit FLOAT\[3\]: it has 2 elements, and",
        ),
        ("FLOAT[3]", [], "it has 0 elements, and the type 3"),
        ("FLOAT[3]", np.zeros(4), "it has 4 elements, and the type 3"),
        ("INTEGER[2][2]", [[1, 2], [3]], "it has 1 element, and the type 2"),
        ("STRUCT(v VARCHAR[1])", {"v": ["a", "b"]}, "column v: .* it has 2 elements, and the type 1"),
        ("FLOAT[3]", [1e300, 0.0, 0.0], "it is too large for single precision"),
        ("FLOAT[3]", "abc", "give a list"),
    ],
)
def test_values_that_are_refused(text: str, given: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        column_of([None, given], parse_type(text), name="v")


LISTS = [[9.0, 9.0, 9.0], [1.0, 2.0, 3.0], None, [4.0, None, 6.0]]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float64()),
        pa.large_list(pa.float64()),
        pa.list_view(pa.float64()),
        pa.list_(pa.float32()),
        pa.list_(pa.float64(), 3),
        pa.list_(pa.float32(), 3),
    ],
    ids=str,
)
def test_columns(kind: pa.DataType) -> None:
    for start in range(4):
        column = pa.array(LISTS, kind).slice(start)
        found = cast_column(column, FLOAT3, name="v")
        assert found.type == FLOAT3.arrow
        assert found.to_pylist() == LISTS[start:]
        found.validate(full=True)
        back = cast_column(found, parse_type("DOUBLE[]"), name="v")
        assert back.to_pylist() == LISTS[start:]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.string(), pa.dictionary(pa.int8(), pa.string())], ids=str)
@pytest.mark.parametrize("values", [[["a", "b"], None], [None, None], []])
def test_texts_of_every_layout(kind: pa.DataType, values: list[Any]) -> None:
    array = pa.array([item for value in values for item in value or ["x", "y"]], pa.string()).cast(kind)
    column = pa.FixedSizeListArray.from_arrays(array, 2, mask=pa.array([value is None for value in values], pa.bool_()))
    assert cast_column(column, parse_type("VARCHAR[2]"), name="v").to_pylist() == values


def test_what_is_under_a_null_does_not_matter() -> None:
    hidden = pa.ListArray.from_arrays([0, 1, 4], pa.array([7.0, 1.0, 2.0, 3.0]), mask=pa.array([True, False]))
    assert cast_column(hidden, FLOAT3, name="v").to_pylist() == [None, [1.0, 2.0, 3.0]]


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        (
            pa.array([[1, 2, 3], None, [1, 2]]),
            "FLOAT[3]",
            r"column v, row 3: \[1, 2\] .* does not fit FLOAT\[3\]: it has 2 elements, and the type 3",
        ),
        (pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)), "FLOAT[3]", "row 1: .* it has 2 elements, and the type 3"),
        (pa.array([[[1]]]), "INTEGER[1][2]", "it has 1 element, and the type 2"),
        (pa.array([[[1]]]), "INTEGER[2][1]", "it has 1 element, and the type 2"),
        (pa.array([{"v": [1, 2]}]), "STRUCT(v INTEGER[1])", "it has 2 elements, and the type 1"),
        (pa.array([[1.5, 2.0]]), "INTEGER[2]", "does not fit"),
        (pa.array(["[1, 2]"]), "INTEGER[2]", "is not converted to INTEGER"),
    ],
    ids=str,
)
def test_columns_that_are_refused(column: pa.Array, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        cast_column(column, parse_type(text), name="v")


def test_lists_of_doubles_stand_as_they_are() -> None:
    found = as_they_stand([None, [0.1, 2.0, -0.0], None], FLOAT3)
    assert found.type == FLOAT3.arrow
    assert found.to_pylist() == [None, [float(np.float32(0.1)), 2.0, -0.0], None]
    assert as_they_stand([None, None], FLOAT3).to_pylist() == [None, None]
    assert as_they_stand([], FLOAT3).to_pylist() == []
    for other in ([1, 2, 3], [1.0, None, 2.0], (1.0, 2.0, 3.0), [1e300, 0.0, 0.0], "[1, 2, 3]"):
        assert as_they_stand([other], FLOAT3) is None
    with pytest.raises(DataError, match=r"column v: .* it has 1 element, and the type 3"):
        as_they_stand([[1.0, 2.0, 3.0], [1.0]], FLOAT3, column="v")


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_years_that_the_dialect_has_not_are_refused(unit: str) -> None:
    last = (2**63 - 1) // {"s": 10**6, "ms": 1000}[unit]
    for held in (last, -last, 2**63 - 1, -(2**63 - 1), 0, None):
        check_held(pa.chunked_array([pa.array([held], pa.timestamp(unit))]), "t")
    for beyond in (last + 1, -last - 1, 2**62):
        with pytest.raises(DataError, match="column 't' has an instant in a year"):
            check_held(pa.chunked_array([pa.array([[beyond]], pa.list_(pa.timestamp(unit)))]), "t")
