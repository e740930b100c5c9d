from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secateur.errors import DataError
from secateur.partitioning.types import cast_column, parse_type, scalar_text

TEXT = "7ACA8BBB-0b5d-4ee7-aab5-e32ee907368b"
ID = UUID(TEXT)
EASTERN = "America/New_York"

MAP = pa.map_(pa.string(), pa.string())
LISTS = pa.map_(pa.string(), pa.list_(pa.string()))
VIEWS = pa.array(["a", "b"], pa.string_view())
UNDER_NULL = pa.StructArray.from_arrays([pa.array([1, 300])], names=["a"], mask=pa.array([False, True]))


@pytest.mark.parametrize(
    ("type_", "given", "expected"),
    [
        ("TINYINT", pa.array([127, None, -128]), [127, None, -128]),
        ("UBIGINT", pa.array([5, None]), [5, None]),
        ("INTEGER", pa.array([1.0, None, -3.0]), [1, None, -3]),
        ("INTEGER", pa.array([Decimal("5.00")]), [5]),
        ("INTEGER", pa.array([True, None]), [1, None]),
        ("HUGEINT", pa.array([2**64 - 1], pa.uint64()), [Decimal(2**64 - 1)]),
        ("DECIMAL(10,2)", pa.array([5, None]), [Decimal("5.00"), None]),
        ("DECIMAL(2,1)", pa.array([9], pa.int8()), [Decimal("9.0")]),
        ("DECIMAL(10,2)", pa.array([1.1, None]), [Decimal("1.10"), None]),
        ("DECIMAL(10,2)", pa.array([Decimal("1.110")]), [Decimal("1.11")]),
        ("DECIMAL(10,2)", pa.array([Decimal("1.1")], pa.decimal256(50, 1)), [Decimal("1.10")]),
        ("FLOAT", pa.array([0.1, None, float("inf")]), [0.10000000149011612, None, float("inf")]),
        ("DOUBLE", pa.array([2**53]), [2.0**53]),
        ("DOUBLE", pa.array([0.5], pa.float16()), [0.5]),
        ("DOUBLE", pa.array([Decimal("0.1")]), [0.1]),
        ("VARCHAR", pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        ("VARCHAR", pa.array(["a"], pa.large_string()), ["a"]),
        ("VARCHAR", pa.array(["a"], pa.string_view()), ["a"]),
        ("BLOB", pa.array([b"a"], pa.large_binary()), [b"a"]),
        ("BLOB", pa.array([b"a"], pa.binary_view()), [b"a"]),
        ("BLOB", pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        ("DATE", pa.array([date(2024, 1, 1)], pa.date64()), [date(2024, 1, 1)]),
        ("DATE", pa.array([datetime(2024, 1, 1)]), [date(2024, 1, 1)]),
        ("DATE", pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", EASTERN)), [date(2024, 1, 1)]),
        ("TIME", pa.array([1], pa.time32("s")), [time(0, 0, 1)]),
        ("TIMESTAMP", pa.array([1000, None], pa.timestamp("ns")), [datetime(1970, 1, 1, 0, 0, 0, 1), None]),
        ("TIMESTAMP", pa.array([-1], pa.timestamp("s", EASTERN)), [datetime(1969, 12, 31, 23, 59, 59)]),
        ("TIMESTAMP", pa.array([date(2024, 1, 1)]), [datetime(2024, 1, 1)]),
        ("TIMESTAMP WITH TIME ZONE", pa.array([0], pa.timestamp("ms")), [datetime(1970, 1, 1, tzinfo=UTC)]),
        ("TIMESTAMP WITH TIME ZONE", pa.array([0], pa.timestamp("us", EASTERN)), [datetime(1970, 1, 1, tzinfo=UTC)]),
        ("UUID", pa.array([TEXT, None, TEXT.lower()]), [ID, None, ID]),
        ("UUID", pa.array(["junk", TEXT]).slice(1), [ID]),
        ("UUID", pa.array([TEXT], pa.large_string()), [ID]),
        ("UUID", pa.array([TEXT, TEXT]).dictionary_encode(), [ID, ID]),
        ("UUID", pa.array([ID.bytes, None]), [ID, None]),
        ("UUID", pa.array([ID.bytes], pa.binary(16)), [ID]),
        ("UUID", pa.array([None], pa.string()), [None]),
        ("UUID", pa.array([], pa.string()), []),
        ("FLOAT[]", pa.array([[1.0], None, [], [2.0, None]]), [[1.0], None, [], [2.0, None]]),
        ("FLOAT[]", pa.array([[9.0], [1.0, 2.0]]).slice(1), [[1.0, 2.0]]),
        ("FLOAT[]", pa.array([[1.0, 2.0], None], pa.list_(pa.float64(), 2)), [[1.0, 2.0], None]),
        ("INTEGER[]", pa.array([[1]], pa.large_list(pa.int64())), [[1]]),
        ("INTEGER[]", pa.array([[], [None]]), [[], [None]]),
        ("UUID[]", pa.array([[TEXT]]), [[ID]]),
        ("INTEGER[][]", pa.array([[[1], None], []]), [[[1], None], []]),
        (
            "STRUCT(a INTEGER, b UUID, c DATE)",
            pa.array([{"B": TEXT, "a": 1}, None, {"B": None, "a": None}]).slice(0),
            [{"a": 1, "b": ID, "c": None}, None, {"a": None, "b": None, "c": None}],
        ),
        ("STRUCT(a TINYINT)", pa.array([{"a": 1000}, {"a": 2}]).slice(1), [{"a": 2}]),
        ("STRUCT(a TINYINT)", UNDER_NULL, [{"a": 1}, None]),
        ("MAP(VARCHAR, UUID)", pa.array([[("x", TEXT)], None, []], MAP), [[("x", ID)], None, []]),
        ("MAP(VARCHAR, UUID)", pa.array([[("x", "junk")], [("y", TEXT)]], MAP).slice(1), [[("y", ID)]]),
        (
            "MAP(VARCHAR, UUID[])[]",
            pa.array([[[("x", [TEXT, None])], None]], pa.list_(LISTS)),
            [[[("x", [ID, None])], None]],
        ),
        ("INTERVAL", pa.nulls(2), [None, None]),
        ("INTERVAL", pa.array([timedelta(1, 2)]), [pa.MonthDayNano([0, 1, 2 * 10**9])]),
        ("INTEGER", pa.array(["5", None, " 7 "]).dictionary_encode(), [5, None, 7]),
        ("BOOLEAN", pa.array([1, 0, None]), [True, False, None]),
        ("DATE[]", pa.array([["2024-01-01"]]), [[date(2024, 1, 1)]]),
        ("DECIMAL(10,2)", pa.array([19.99, 0.57, None]), [Decimal("19.99"), Decimal("0.57"), None]),
        ("DECIMAL(10,2)", pa.array([19.99], pa.float32()), [Decimal("19.99")]),
        ("DECIMAL(38,0)", pa.array([2.0**70]), [Decimal(2**70)]),
        ("DOUBLE", pa.array([Decimal("19.99"), None]), [19.99, None]),
        ("DOUBLE", pa.array([Decimal("0.57")], pa.decimal256(50, 7)), [0.57]),
        ("UBIGINT", pa.array([2.0**63]), [2**63]),
        ("VARCHAR", pa.DictionaryArray.from_arrays([1, 0, None], VIEWS), ["b", "a", None]),
        ("VARCHAR", pc.run_end_encode(pa.array(["a", "a", None])), ["a", "a", None]),
        ("VARCHAR", pa.RunEndEncodedArray.from_arrays([2, 4], VIEWS).slice(1), ["a", "b", "b"]),
        ("VARCHAR", pa.RunEndEncodedArray.from_arrays([2, 3], VIEWS.cast(pa.string()).dictionary_encode()), [*"aab"]),
        ("BIGINT[]", pa.ListViewArray.from_arrays([2, 0, 1], [1, 2, 2], pa.array([1, 2, 3])), [[3], [1, 2], [2, 3]]),
        ("BIGINT[]", pa.array([[1], None, [2, 3]], pa.large_list_view(pa.int8())).slice(1), [None, [2, 3]]),
        ("VARCHAR", pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None])), ['{"a": 1}', None]),
        ("BOOLEAN", pa.ExtensionArray.from_storage(pa.bool8(), pa.array([2, 0, None], pa.int8())), [True, False, None]),
        ("FLOAT", pa.array([2**30, None]), [2.0**30, None]),
        ("DOUBLE", pa.array([2**63], pa.uint64()), [2.0**63]),
        ("BIGINT", pa.array([2.0, None], pa.float16()), [2, None]),
        ("BIGINT", pa.array([Decimal("2.0")], pa.decimal32(5, 1)), [2]),
        ("UBIGINT", pa.array([Decimal("2.0")], pa.decimal64(9, 1)), [2]),
        ("UUID", pa.nulls(1), [None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_converts(type_: str, given: pa.Array, expected: list[Any]) -> None:
    column = cast_column(given, parse_type(type_), name="c")
    column.validate(full=True)
    assert column.type == parse_type(type_).arrow
    assert column.to_pylist() == expected


@pytest.mark.parametrize(
    ("type_", "given", "message"),
    [
        (
            "TINYINT",
            pa.array([1, 300]),
            r"column c, row 2: 300 \(int64\) does not fit TINYINT, which holds whole numbers from -128 to 127",
        ),
        ("BIGINT", pa.array([2**63], pa.uint64()), "row 1: 9223372036854775808"),
        ("UBIGINT", pa.array([0, 0, -1]), "row 3: -1"),
        ("INTEGER", pa.array([1.0, 1.5]), "row 2: 1.5"),
        ("INTEGER", pa.array([float("nan")]), "row 1: nan"),
        ("INTEGER", pa.array([Decimal("5.5")]), r"row 1: Decimal\('5.5'\)"),
        (
            "DECIMAL(2,1)",
            pa.array([9, 10]),
            "row 2: 10 .* does not fit DECIMAL.2,1., which holds 1 digits before and 1 behind the point",
        ),
        ("DECIMAL(10,2)", pa.array([1.115]), "row 1: 1.115"),
        ("DECIMAL(10,2)", pa.array([float("inf")]), "row 1: inf"),
        ("DECIMAL(10,2)", pa.array([Decimal("1.115")]), r"row 1: Decimal\('1.115'\)"),
        ("FLOAT", pa.array([1.0, 1e300]), r"row 2: 1e\+300"),
        ("FLOAT", pa.array([2**24 + 1]), "row 1: 16777217"),
        ("TIMESTAMP", pa.array(["2024-01-01 00:00:00.1234567"]), "row 1: .* which holds whole microseconds"),
        ("DOUBLE", pa.array([2**53 + 1]), "row 1: 9007199254740993 .* without loss"),
        ("DATE", pa.array([datetime(2024, 1, 1, 1)]), "row 1: datetime.datetime"),
        ("TIME", pa.array([1], pa.time64("ns")), "row 1: .* does not fit TIME without loss"),
        (
            "TIMESTAMP",
            pa.array([0, 1], pa.timestamp("ns")),
            "row 2: .* does not fit TIMESTAMP, which holds whole microseconds",
        ),
        ("TIMESTAMP", pa.array([2**62], pa.timestamp("s")), r"row 1: 146138514283-06-19 07:45:04 \(timestamp"),
        (
            "UUID",
            pa.array([TEXT, None, "{" + TEXT + "}"]),
            "row 3: .* does not fit UUID; write it as 8-4-4-4-12 hexadecimal digits",
        ),
        ("UUID", pa.array([TEXT[:-1] + "g"]), "row 1: "),
        ("UUID", pa.array([TEXT.replace("-", "0")]), "row 1: "),
        ("UUID", pa.array([b"short"]), "row 1: b'short'"),
        ("TINYINT[]", pa.array([[1], [2, 300]]), r"row 2: \[2, 300\]"),
        (
            "VARCHAR",
            pa.array([5]),
            (
                "column c: the data are int64, which is not converted to VARCHAR automatically; cast the column to"
                " string first"
            ),
        ),
        ("INTEGER", pa.array(["5", "5.5"]), "column c, row 2: '5.5' .string. does not fit INTEGER"),
        ("DATE", pa.array(["01/02/2025"]), "row 1: '01/02/2025'"),
        ("BOOLEAN", pa.array([1, 2]), "row 2: 2"),
        ("BLOB", pa.array(["a"]), "the data are string, which is not converted to BLOB"),
        ("DATE[]", pa.array([[5]]), r"column c\[\]: the data are int64, which is not converted to DATE"),
        (
            "STRUCT(a DATE)",
            pa.array([{"b": 1}]),
            r"column c: the data are struct<b: int64>, which is not converted to STRUCT",
        ),
        ("STRUCT(a DATE)", pa.array([{"a": 1}]), r"column c\.a: the data are int64, which is not converted to DATE"),
        (
            "MAP(INTERVAL, INTEGER)",
            pa.array([], MAP),
            "the keys of c: the data are string, which is not converted to INTERVAL",
        ),
        (
            "MAP(VARCHAR, STRUCT(a TINYINT)[])",
            pa.array([], pa.map_(pa.string(), pa.list_(pa.struct([("a", pa.date32())])))),
            r"column the values of c\[\]\.a: the data are date32",
        ),
        (
            "STRUCT(a TINYINT)",
            pa.array([{"a": 1}, {"a": 300}]),
            r"row 2: {'a': 300} .* does not fit STRUCT\(a TINYINT\)",
        ),
        ("STRUCT(a DATE, b INTEGER)", pa.array([{"a": None, "A": None}]), "which is not converted"),
        ("DATE", pa.array([{"a": 1}]), "which is not converted to DATE"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_refuses(type_: str, given: pa.Array, message: str) -> None:
    with pytest.raises(DataError, match=message) as raised:
        cast_column(given, parse_type(type_), name="c")
    assert (raised.value.details["column"], raised.value.details["type"]) == ("c", type_)


def test_what_fits_is_handed_back() -> None:
    column = pa.chunked_array([[1], [2]])
    assert cast_column(column, parse_type("BIGINT"), name="c") is column


def test_the_first_bad_row_is_counted_over_chunks() -> None:
    column = pa.chunked_array([pa.array([1, 2]), pa.array([], pa.int64()), pa.array([3, 400, 500])])
    with pytest.raises(DataError, match="row 4: 400") as raised:
        cast_column(column, parse_type("TINYINT"), name="c")
    assert raised.value.details["row"] == 4


def test_no_chunks() -> None:
    assert cast_column(pa.chunked_array([], pa.int64()), parse_type("TINYINT"), name="c").to_pylist() == []


def test_text_of_values_is_short_and_never_fails() -> None:
    assert scalar_text(pa.scalar("x" * 500)) == "'" + "x" * 79 + "..."
    assert scalar_text(pa.scalar(None, pa.string())) == "None"


@pytest.mark.parametrize(
    "text",
    [
        "DATE 'infinity'",
        "DATE '-infinity'",
        "DATE '10000-01-01'",
        "DATE '0044-03-15 (BC)'",
        "DATE '5877642-06-25 (BC)'",
        "TIMESTAMP 'infinity'",
        "TIMESTAMP '-infinity'",
        "TIMESTAMP '10000-01-01 05:06:07'",
        "TIMESTAMP '0001-12-31 (BC) 23:59:59.000001'",
    ],
)
def test_instants_beyond_python_are_written_as_duckdb_does(text: str) -> None:
    value = duckdb.sql(f"SELECT {text} AS x").to_arrow_table()["x"][0]
    written = duckdb.sql(f"SELECT CAST({text} AS VARCHAR)").fetchall()[0][0]
    assert scalar_text(value) == written
