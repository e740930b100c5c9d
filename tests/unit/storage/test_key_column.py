"""The order of every key type is the dialect's, in the sort, in the search and for single values alike."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest

from secateur.errors import DataError, NotSupportedError
from secateur.partitioning.types import parse_type
from secateur.storage import DuplicateKeys, KeyColumn, TableLayout, sort_rows

# Ascending, as the dialect orders them; extremes and signs included.
ASCENDING: dict[str, list[Any]] = {
    "BOOLEAN": [False, True],
    "TINYINT": [-128, -1, 0, 1, 127],
    "SMALLINT": [-32768, -1, 0, 32767],
    "INTEGER": [-(2**31), -7, 0, 7, 2**31 - 1],
    "BIGINT": [-(2**63), -(2**53) - 1, -(2**53), 0, 2**53, 2**53 + 1, 2**63 - 1],
    "UTINYINT": [0, 1, 255],
    "USMALLINT": [0, 65535],
    "UINTEGER": [0, 2**31, 2**32 - 1],
    "UBIGINT": [0, 2**63 - 1, 2**63, 2**64 - 1],
    "HUGEINT": [-(10**37), -(2**64) - 1, -(2**64), -1, 0, 1, 2**63, 2**64 - 1, 2**64, 10**37],
    "FLOAT": [float("-inf"), -1.5, 0.0, 0.25, float("inf"), float("nan")],
    "DOUBLE": [float("-inf"), -1e300, -5e-324, 0.0, 5e-324, 1.5, float("inf"), float("nan")],
    "DECIMAL(4,2)": [Decimal("-99.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("1.50")],
    "DECIMAL(18,3)": [
        Decimal("-999999999999999.999"),
        Decimal("0.000"),
        Decimal("0.001"),
        Decimal("999999999999999.999"),
    ],
    "DECIMAL(38,10)": [
        Decimal("-9999999999999999999999999999.0"),
        Decimal("-1.5"),
        Decimal("0"),
        Decimal("1e-10"),
        Decimal("9999999999999999999999999999.0"),
    ],
    "VARCHAR": ["", "\0", "A", "Z", "a", "a\0", "aa", "b", "é", "\uffff", "\U0001f600"],
    "BLOB": [b"", b"\0", b"\0\0", b"\x7f", b"\x80", b"\xff", b"\xff\0"],
    "DATE": [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)],
    "TIME": [time(0), time(0, 0, 0, 1), time(23, 59, 59, 999999)],
    "TIMESTAMP": [
        datetime(1, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime(1970, 1, 1),
        datetime(2024, 2, 29, 1),
    ],
    "TIMESTAMP WITH TIME ZONE": [datetime(1969, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)],
    "UUID": [UUID(int=0), UUID(int=255), UUID(int=256), UUID(int=2**127 - 1), UUID(int=2**127), UUID(int=2**128 - 1)],
}


def one_column(make_table: Any, text: str, values: list[Any]) -> tuple[TableLayout, pa.Table]:
    layout = TableLayout.of(make_table({"k": text, "n": "INTEGER"}, ["k"]))
    arrays = [pa.array(values, layout.schema.field("k").type), pa.array(range(len(values)), pa.int32())]
    return layout, pa.Table.from_arrays(arrays, schema=layout.schema)


@pytest.mark.parametrize("text", ASCENDING)
def test_sorts_as_written(make_table: Any, text: str) -> None:
    values = ASCENDING[text]
    shuffled = values[::2] + values[1::2][::-1]
    layout, table = one_column(make_table, text, shuffled)
    ordered = sort_rows(layout, [table], DuplicateKeys.REFUSED).table
    assert [repr(value) for value in ordered["k"].to_pylist()] == [
        repr(value) for value in pa.array(values, layout.schema.field("k").type).to_pylist()
    ]


@pytest.mark.parametrize("text", [text for text in ASCENDING if text != "BLOB"])
def test_sorts_as_duckdb(make_table: Any, text: str) -> None:
    layout, table = one_column(make_table, text, ASCENDING[text][::-1])
    with duckdb.connect() as connection:
        connection.register("rows", table)
        expected = [row[0] for row in connection.execute("SELECT n FROM rows ORDER BY k").fetchall()]
    assert sort_rows(layout, [table], DuplicateKeys.REFUSED).table["n"].to_pylist() == expected


@pytest.mark.parametrize("text", ASCENDING)
def test_every_value_is_found_where_it_stands(make_table: Any, text: str) -> None:
    layout, table = one_column(make_table, text, ASCENDING[text])
    column = layout.order.columns[0]
    view = column.view(table["k"].chunk(0))
    assert len(view) == table.num_rows
    assert [bisect_left(view, column.cell(value)) for value in ASCENDING[text]] == list(range(table.num_rows))


@pytest.mark.parametrize("text", ASCENDING)
def test_view_of_a_slice_begins_at_the_slice(make_table: Any, text: str) -> None:
    layout, table = one_column(make_table, text, ASCENDING[text])
    column = layout.order.columns[0]
    view = column.view(table["k"].chunk(0)[1:])
    assert [view[position] for position in range(len(view))] == [column.cell(value) for value in ASCENDING[text][1:]]


def test_zeros_are_one_key_and_so_are_nans(make_table: Any) -> None:
    layout, table = one_column(make_table, "DOUBLE", [0.0, float("nan"), -0.0, -float("nan")])
    assert sort_rows(layout, [table], DuplicateKeys.LAST_WINS).table["n"].to_pylist() == [2, 3]


@pytest.mark.parametrize("text", ["INTEGER[]", "INTERVAL"])
def test_types_without_an_order_are_no_keys(text: str) -> None:
    with pytest.raises(NotSupportedError, match=r"table t: column k of type .* cannot be part of a key or index"):
        KeyColumn.of("t", "k", parse_type(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("BIGINT", "1", id="text-for-integer"),
        pytest.param("BIGINT", 1.0, id="float-for-integer"),
        pytest.param("VARCHAR", 5, id="integer-for-text"),
        pytest.param("VARCHAR", b"a", id="bytes-for-text"),
        pytest.param("BLOB", "a", id="text-for-bytes"),
        pytest.param("DATE", datetime(2024, 1, 1), id="timestamp-for-date"),
        pytest.param("TIMESTAMP", date(2024, 1, 1), id="date-for-timestamp"),
        pytest.param("TIMESTAMP", datetime(2024, 1, 1, tzinfo=UTC), id="aware-for-naive"),
        pytest.param("TIMESTAMP WITH TIME ZONE", datetime(2024, 1, 1), id="naive-for-aware"),
        pytest.param("TIME", datetime(2024, 1, 1), id="timestamp-for-time"),
        pytest.param("DECIMAL(4,2)", Decimal("1.001"), id="too-many-digits"),
        pytest.param("DECIMAL(4,2)", 1.5, id="float-for-decimal"),
        pytest.param("UUID", "00000000-0000-0000-0000-000000000000", id="text-for-uuid"),
        pytest.param("DOUBLE", "x", id="text-for-float"),
    ],
)
def test_another_python_type_is_refused(text: str, value: Any) -> None:
    with pytest.raises(DataError, match=r"^t\.k: .* is not a value of type .*; coerce it"):
        KeyColumn.of("t", "k", parse_type(text)).cell(value)


def test_integer_outside_the_type_still_compares(make_table: Any) -> None:
    layout, table = one_column(make_table, "UTINYINT", [0, 255])
    column = layout.order.columns[0]
    assert bisect_left(column.view(table["k"].chunk(0)), column.cell(256)) == 2
