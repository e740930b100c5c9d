"""Single rows of stored columns are the values that Arrow gives."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from secateur.storage import StoredColumns

COLUMNS = {
    "int8": pa.array([-128, None, 127], pa.int8()),
    "int16": pa.array([-(2**15), 0, 2**15 - 1], pa.int16()),
    "int32": pa.array([None, -1, 2**31 - 1], pa.int32()),
    "int64": pa.array([-(2**63), 2**63 - 1, 0], pa.int64()),
    "uint8": pa.array([0, 255, None], pa.uint8()),
    "uint16": pa.array([0, 2**16 - 1, 1], pa.uint16()),
    "uint32": pa.array([0, 2**32 - 1, 1], pa.uint32()),
    "uint64": pa.array([0, 2**64 - 1, None], pa.uint64()),
    "float": pa.array([1.5, -0.0, None], pa.float32()),
    "double": pa.array([0.1, None, float("inf")], pa.float64()),
    "boolean": pa.array([True, None, False]),
    "text": pa.array(["", None, "naïve 🌳"]),
    "texts of one byte a character": pa.array(["open", "", "returned"]),
    "texts of several bytes a character": pa.array(["naïve", "", "🌳x"]),
    "texts without characters": pa.array(["", "", ""]),
    "empty texts": pa.array([None, None, None], pa.string()),
    "blob": pa.array([b"\x00\xff", None, b""], pa.binary()),
    "decimal": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(10, 2)),
    "wide decimal": pa.array([Decimal(10**37), None, Decimal(-1)], pa.decimal128(38, 0)),
    "longest decimal of a word": pa.array([Decimal(10**18 - 1), Decimal(1 - 10**18), None], pa.decimal128(18, 0)),
    "small decimal": pa.array([Decimal("0.00"), Decimal("-1.00"), Decimal("0.01")], pa.decimal128(3, 2)),
    "date": pa.array([dt.date(1969, 12, 31), None, dt.date(9999, 12, 31)]),
    "timestamp": pa.array([dt.datetime(2024, 1, 1, 12), None, dt.datetime(1, 1, 1)], pa.timestamp("us")),
    "time with zone": pa.array([0, None, 1], pa.timestamp("us", "UTC")),
    "uuid": pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([uuid.UUID(int=7).bytes, None, uuid.UUID(int=2**128 - 1).bytes], pa.binary(16))
    ),
    "list": pa.array([[1, None], None, []], pa.list_(pa.int32())),
    "struct": pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int64())])),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_values_are_those_of_arrow(name: str) -> None:
    column = pa.chunked_array([COLUMNS[name]])
    stored = StoredColumns([column, column])
    for position, value in enumerate(column.to_pylist()):
        assert stored.row(position) == [value, value]
        assert [type(read) for read in stored.row(position)] == [type(value)] * 2


@pytest.mark.parametrize("name", COLUMNS)
def test_slices_begin_at_their_first_row(name: str) -> None:
    whole = pa.concat_arrays([COLUMNS[name]] * 7)
    stored = StoredColumns([pa.chunked_array([whole.slice(10, 9)])])
    assert [stored.row(position)[0] for position in range(9)] == whole.to_pylist()[10:19]


def test_columns_of_several_chunks_are_read_as_well() -> None:
    stored = StoredColumns([pa.chunked_array([[1, 2], [3]])])
    assert [stored.row(position) for position in range(3)] == [[1], [2], [3]]


def test_a_value_without_a_python_object_is_an_error() -> None:
    beyond = pa.array([10**18], pa.timestamp("us"))
    with pytest.raises((ValueError, OverflowError)):
        StoredColumns([pa.chunked_array([beyond])]).row(0)


@pytest.mark.parametrize("name", COLUMNS)
def test_runs_are_those_of_arrow(name: str) -> None:
    whole = pa.concat_arrays([COLUMNS[name]] * 4).slice(2, 9)
    stored = StoredColumns([pa.chunked_array([[0] * 9]), pa.chunked_array([whole])])
    for start, stop in ((0, 9), (4, 5), (3, 8), (5, 5)):
        assert stored.run([1, 1], start, stop) == [whole.to_pylist()[start:stop]] * 2
