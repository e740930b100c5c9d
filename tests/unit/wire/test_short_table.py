from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from secateur.partitioning.types import SqlType, parse_type
from secateur.protocol import pack, unpack
from secateur.wire import ShortTable, is_short, shorten, travels_short

UUID_1 = uuid.UUID(int=1)

VALUES = [
    pytest.param("BOOLEAN", [True, None], id="boolean"),
    pytest.param("UBIGINT", [2**64 - 1, 0], id="ubigint"),
    pytest.param("HUGEINT", [10**37, -1, None], id="hugeint"),
    pytest.param("DECIMAL(10,2)", [Decimal("1.50"), Decimal("-0.01"), None], id="decimal keeps its scale"),
    pytest.param("FLOAT", [0.10000000149011612, None], id="float"),
    pytest.param("DOUBLE", [1.5, float("inf"), -0.0], id="double"),
    pytest.param("VARCHAR", ["", "żółć", None], id="varchar"),
    pytest.param("BLOB", [b"", b"\x00\xff"], id="blob"),
    pytest.param("DATE", [date(1, 1, 1), date(9999, 12, 31), None], id="date"),
    pytest.param("TIME", [time(23, 59, 59, 999_999), None], id="time"),
    pytest.param("TIMESTAMP", [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)], id="timestamp"),
    pytest.param("TIMESTAMP WITH TIME ZONE", [datetime(2024, 1, 1, tzinfo=UTC), None], id="timestamptz"),
    pytest.param("UUID", [UUID_1, None], id="uuid"),
]


def column(kind: SqlType, values: list[Any]) -> pa.Array:
    return ShortTable([values], len(values)).to_table([("x", kind)]).column("x")


@pytest.mark.parametrize(("type_text", "values"), VALUES)
def test_values_travel_and_become_the_same_column_again(type_text: str, values: list[Any]) -> None:
    kind = parse_type(type_text)
    array = column(kind, values)
    assert array.type == kind.arrow
    short = shorten([array], [kind], len(values))
    assert short is not None
    (received,) = unpack(pack(short.columns))
    assert received == values
    assert [type(value) for value in received] == [type(value) for value in values]
    assert ShortTable([received], len(values)).to_table([("x", kind)]).column("x").equals(array)


def test_nan_and_the_sign_of_zero_travel() -> None:
    short = shorten([pa.array([float("nan"), -0.0])], [parse_type("DOUBLE")], 2)
    assert short is not None
    (received,) = unpack(pack(short.columns))
    assert str(received) == "[nan, -0.0]"


def test_two_columns_of_one_name_stay_two() -> None:
    table = ShortTable([[1], ["a"]], 1).to_table([("x", parse_type("BIGINT")), ("x", parse_type("VARCHAR"))])
    assert [c.to_pylist() for c in table.columns] == [[1], ["a"]]


def test_chunks_are_one_column() -> None:
    chunked = pa.chunked_array([[1, 2], [3]])
    assert shorten([chunked], [parse_type("BIGINT")], 3) == ShortTable([[1, 2, 3]], 3)


@pytest.mark.parametrize("type_text", ["INTERVAL", "BIGINT[]"])
def test_types_that_are_more_than_their_python_values_stay_arrow(type_text: str) -> None:
    assert not travels_short([parse_type("BIGINT"), parse_type(type_text)])


def test_long_texts_stay_arrow() -> None:
    text = parse_type("VARCHAR")
    assert shorten([pa.array(["x" * 9000])], [text], 1) is None
    assert not is_short([["x" * 5000, None, "x" * 5000]], [text])
    assert is_short([["x" * 4000, None]], [text])


def test_a_date_that_python_has_no_object_for_stays_arrow() -> None:
    assert shorten([pa.array([4_000_000], pa.int32()).cast(pa.date32())], [parse_type("DATE")], 1) is None
