from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from secateur.engine.kernels.duckdb import conform
from secateur.errors import DataError, InternalError

HUGEINT = pa.opaque(pa.binary(16), "hugeint", "DuckDB")
DECIMAL = pa.decimal128(38, 0)


def hugeints(*values: int | None) -> pa.Array:
    storage = pa.array(
        [None if value is None else value.to_bytes(16, "little", signed=True) for value in values], pa.binary(16)
    )
    return pa.ExtensionArray.from_storage(HUGEINT, storage)


def booleans(*values: bool | None) -> pa.Array:
    return pa.ExtensionArray.from_storage(
        pa.bool8(), pa.array([None if value is None else int(value) for value in values], pa.int8())
    )


#: Its second list is NULL, and has an element all the same.
NULL_OVER_ELEMENTS = pa.ListArray.from_arrays(
    pa.array([0, 1, 2, 3], pa.int32()), booleans(True, None, False), mask=pa.array([False, True, False])
)


def conformed(array: pa.Array, wanted: pa.DataType) -> list[object]:
    table = conform(pa.table({"c0": array}), [wanted], ["x"])
    table.validate(full=True)
    assert table.schema == pa.schema([("x", wanted)])
    return table.column("x").to_pylist()


@pytest.mark.parametrize("value", [0, 1, -1, 2**63, -(2**64), 10**38 - 1, -(10**38) + 1], ids=str)
def test_a_hugeint_of_38_digits_is_the_same_decimal(value: int) -> None:
    assert conformed(hugeints(value, None), DECIMAL) == [Decimal(value), None]


@pytest.mark.parametrize("value", [10**38, -(10**38), 2**127 - 1, -(2**127)], ids=str)
def test_a_hugeint_of_39_digits_is_refused_by_value(value: int) -> None:
    with pytest.raises(
        DataError, match=f"HUGEINT value {value} of the result has more than 38 digits; cast it to DOUBLE or VARCHAR"
    ):
        conformed(hugeints(1, value), DECIMAL)


def test_what_lies_under_a_null_does_not_matter() -> None:
    storage = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), 2, [pa.py_buffer(b"\x01"), pa.py_buffer((5).to_bytes(16, "little") + b"\xff" * 15 + b"\x7f")]
    )
    assert conformed(pa.ExtensionArray.from_storage(HUGEINT, storage), DECIMAL) == [Decimal(5), None]


CASES = [
    ("booleans", booleans(True, None, False), pa.bool_(), [True, None, False]),
    ("a slice of hugeints", hugeints(1, 2, 3).slice(1), DECIMAL, [Decimal(2), Decimal(3)]),
    ("no row", hugeints().slice(0), DECIMAL, []),
    ("untyped nulls", pa.nulls(2), pa.int32(), [None, None]),
    (
        "a zone of another name",
        pa.array([0], pa.timestamp("us", "Etc/UTC")).cast(pa.timestamp("us", "Etc/UTC")),
        pa.timestamp("us", "UTC"),
        None,
    ),
    (
        "lists with a null",
        pa.ListArray.from_arrays(pa.array([0, 2, None, 3], pa.int32()), booleans(True, None, False)),
        pa.list_(pa.bool_()),
        [[True, None], [False], None],
    ),
    ("a null over elements", NULL_OVER_ELEMENTS, pa.list_(pa.bool_()), [[True], None, [False]]),
    ("a slice of lists with a null", NULL_OVER_ELEMENTS.slice(1), pa.list_(pa.bool_()), [None, [False]]),
    (
        "a slice of lists",
        pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), booleans(True, None, False)).slice(1),
        pa.list_(pa.bool_()),
        [[None, False]],
    ),
    (
        "pairs with a null",
        pa.FixedSizeListArray.from_arrays(
            booleans(True, False, None, None, False, True), 2, mask=pa.array([False, True, False])
        ),
        pa.list_(pa.bool_(), 2),
        [[True, False], None, [False, True]],
    ),
    (
        "structs with a null",
        pa.StructArray.from_arrays(
            [booleans(True, False), hugeints(7, None)], ["b", "h"], mask=pa.array([False, True])
        ),
        pa.struct([("b", pa.bool_()), ("h", DECIMAL)]),
        [{"b": True, "h": Decimal(7)}, None],
    ),
    (
        "maps",
        pa.MapArray.from_arrays(pa.array([0, 1, 1], pa.int32()), pa.array(["k"]), booleans(True)),
        pa.map_(pa.string(), pa.bool_()),
        [[("k", True)], []],
    ),
]


@pytest.mark.parametrize(("array", "wanted", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_exported_arrays_become_ours(array: pa.Array, wanted: pa.DataType, expected: list[object] | None) -> None:
    values = conformed(array, wanted)
    assert values == (array.cast(wanted).to_pylist() if expected is None else expected)


def test_a_right_column_is_passed_on_without_a_copy() -> None:
    column = pa.chunked_array([pa.array([1, 2]), pa.array([3])])
    result = conform(pa.table({"a": column}), [pa.int64()], ["b"])
    assert result.column("b").chunk(0).buffers()[1].address == column.chunk(0).buffers()[1].address


def test_names_may_repeat() -> None:
    assert conform(pa.table({"a": [1], "b": [2]}), [pa.int64(), pa.int64()], ["x", "x"]).column_names == ["x", "x"]


def test_an_export_nobody_knows_is_our_bug() -> None:
    with pytest.raises(InternalError, match="DuckDB exported int64 where string was expected"):
        conformed(pa.array([1]), pa.string())
