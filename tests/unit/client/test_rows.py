from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from secateur.client.dbapi import Rows, describe
from secateur.errors import DataError
from secateur.partitioning.types import parse_type
from secateur.protocol import ResultColumn
from secateur.wire import ShortTable

UUID_1 = uuid.UUID(int=1)

VALUES = [
    pytest.param("BOOLEAN", [True, None], id="boolean"),
    pytest.param("UBIGINT", [2**64 - 1, 0], id="ubigint"),
    pytest.param("HUGEINT", [10**37, -1], id="hugeint"),
    pytest.param("DECIMAL(10,2)", [Decimal("1.50"), Decimal("-0.01")], id="decimal"),
    pytest.param("DOUBLE", [1.5, float("inf")], id="double"),
    pytest.param("VARCHAR", ["", "żółć"], id="varchar"),
    pytest.param("BLOB", [b"", b"\x00"], id="blob"),
    pytest.param("DATE", [date(1, 1, 1), None], id="date"),
    pytest.param("TIME", [time(23, 59, 59, 999_999), None], id="time"),
    pytest.param("TIMESTAMP", [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)], id="timestamp"),
    pytest.param("TIMESTAMP WITH TIME ZONE", [datetime(2024, 1, 1, tzinfo=UTC), None], id="timestamptz"),
    pytest.param("UUID", [UUID_1, None], id="uuid"),
    pytest.param("INTEGER[]", [[1, None], []], id="list"),
    pytest.param("HUGEINT[][]", [[[1], None], None], id="list of lists of hugeint"),
]


def arrow(type_text: str, values: list[Any]) -> pa.Array:
    kind = parse_type(type_text).arrow
    if type_text == "UUID":
        return pa.ExtensionArray.from_storage(
            kind, pa.array([value and value.bytes for value in values], pa.binary(16))
        )
    return pa.array(values, kind)


@pytest.mark.parametrize(("type_text", "values"), VALUES)
def test_values_are_plain_python(type_text: str, values: list[Any]) -> None:
    rows = Rows(pa.table({"x": arrow(type_text, values)}), [ResultColumn("x", type_text)])
    got = [value for (value,) in rows.take(10)]
    assert got == values
    assert [type(value) for value in got] == [type(value) for value in values]
    assert [getattr(value, "tzinfo", None) for value in got] == [getattr(value, "tzinfo", None) for value in values]


def test_an_interval_is_a_timedelta_with_months_of_30_days() -> None:
    column = pa.array([(14, -2, 3_000_999), None], pa.month_day_nano_interval())
    rows = Rows(pa.table({"x": column}), [ResultColumn("x", "INTERVAL")])
    assert rows.take(2) == [(timedelta(days=418, microseconds=3000),), (None,)]


PAIR = pa.struct([("element1", pa.int64()), ("element2", pa.string())])


@pytest.mark.parametrize(
    ("type_text", "column", "expected"),
    [
        pytest.param(
            "TUPLE(BIGINT, VARCHAR)",
            pa.array([{"element1": 1, "element2": "a"}, None], PAIR),
            [(1, "a"), None],
            id="a row without names",
        ),
        pytest.param(
            "TUPLE(BIGINT, VARCHAR)[]",
            pa.array([[{"element1": 1, "element2": None}], []], pa.list_(PAIR)),
            [[(1, None)], []],
            id="a list of such",
        ),
        pytest.param(
            "MAP(VARCHAR, BIGINT)",
            pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int64())),
            [{"a": 1, "b": None}, {}, None],
            id="a map",
        ),
        pytest.param(
            "MAP(BIGINT[], BIGINT)",
            pa.array([[([1], 2)]], pa.map_(pa.list_(pa.int64()), pa.int64())),
            [{"key": [[1]], "value": [2]}],
            id="keys of lists",
        ),
        pytest.param(
            "TIMESTAMP_NS",
            pa.array([1_500], pa.timestamp("ns")),
            [datetime(1970, 1, 1, microsecond=1)],
            id="nanoseconds",
        ),
        pytest.param(
            "STRUCT(a HUGEINT, b INTERVAL, c TIMESTAMP WITH TIME ZONE)[]",
            pa.array(
                [[{"a": Decimal(2**100), "b": (1, 2, 3000), "c": datetime(2024, 1, 1, tzinfo=UTC)}, None]],
                pa.list_(
                    pa.struct(
                        [
                            ("a", pa.decimal128(38, 0)),
                            ("b", pa.month_day_nano_interval()),
                            ("c", pa.timestamp("us", "UTC")),
                        ]
                    )
                ),
            ),
            [[{"a": 2**100, "b": timedelta(days=32, microseconds=3), "c": datetime(2024, 1, 1, tzinfo=UTC)}, None]],
            id="a list of structs",
        ),
        pytest.param(
            "STRUCT(a TIMESTAMP_NS, b TIME_NS[2])",
            pa.array(
                [{"a": 1_500, "b": [1_999, None]}],
                pa.struct([("a", pa.timestamp("ns")), ("b", pa.list_(pa.time64("ns"), 2))]),
            ),
            [{"a": datetime(1970, 1, 1, microsecond=1), "b": [time(0, 0, 0, 1), None]}],
            id="nanoseconds inside of a struct",
        ),
        pytest.param("UHUGEINT", pa.array([Decimal(2**100)], pa.decimal128(38, 0)), [2**100], id="a large integer"),
    ],
)
def test_values_inside_of_values_are_plain_python(type_text: str, column: pa.Array, expected: list[Any]) -> None:
    assert [value for (value,) in Rows(pa.table({"x": column}), [ResultColumn("x", type_text)]).take(10)] == expected


def test_a_value_that_python_does_not_have_is_named() -> None:
    rows = Rows(pa.table({"born": pa.array([2**31 - 1], pa.int32()).cast(pa.date32())}), [ResultColumn("born", "DATE")])
    with pytest.raises(DataError, match="column 'born' has a value that Python has no DATE for"):
        rows.take(1)


@pytest.mark.parametrize("nanoseconds", [2**63 - 1, 1 - 2**63])
def test_infinite_nanoseconds_are_no_instant_of_python(nanoseconds: int) -> None:
    column = pa.array([nanoseconds], pa.int64()).view(pa.timestamp("ns"))
    for values, kind in ((column, "TIMESTAMP_NS"), (pa.ListArray.from_arrays([0, 1], column), "TIMESTAMP_NS[]")):
        with pytest.raises(DataError, match="column 'x' has a value that Python has no TIMESTAMP_NS"):
            Rows(pa.table({"x": values}), [ResultColumn("x", kind)]).take(1)


def test_a_type_that_only_results_have_is_given_as_arrow_gives_it() -> None:
    rows = Rows(pa.table({"x": [{"a": 1}]}), [ResultColumn("x", "STRUCT(a BIGINT)")])
    assert rows.take(1) == [({"a": 1},)]
    assert describe(ResultColumn("x", "STRUCT(a BIGINT)")) == ("x", "STRUCT(a BIGINT)", None, None, None, None, None)


def test_two_columns_of_one_name_stay_two() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array(["a"])], names=["x", "x"])
    assert Rows(table, [ResultColumn("x", "BIGINT"), ResultColumn("x", "VARCHAR")]).take(5) == [(1, "a")]


def test_rows_are_handed_out_once() -> None:
    rows = Rows(
        pa.concat_tables([pa.table({"x": range(4000)}), pa.table({"x": range(4000, 5000)})]),
        [ResultColumn("x", "BIGINT")],
    )
    assert rows.take(2) == [(0,), (1,)]
    rest = rows.iterate()
    assert [next(rest) for _ in range(2998)][-1] == (2999,)
    assert rows.position == 3000
    assert rows.take_table().column("x").to_pylist() == list(range(3000, 5000))
    assert rows.take(1) == []
    assert list(rows.iterate()) == []


def test_an_iteration_goes_on_behind_rows_that_were_taken_meanwhile() -> None:
    rows = Rows(pa.table({"x": range(5000)}), [ResultColumn("x", "BIGINT")])
    found = []
    for row in rows.iterate():
        found += [row, *rows.take(2)]
    assert found == [(x,) for x in range(5000)]


def test_a_description_has_seven_items() -> None:
    assert describe(ResultColumn("n", "BIGINT")) == ("n", "BIGINT", None, None, None, None, None)
    assert describe(ResultColumn("d", "DECIMAL(10,2)")) == ("d", "DECIMAL(10,2)", None, None, 10, 2, None)


def test_plain_values_are_rows_as_they_came() -> None:
    columns = [ResultColumn("x", "BIGINT"), ResultColumn("y", "VARCHAR")]
    short = ShortTable([[1, 2, 3, 4], ["a", None, "c", "d"]], 4)
    rows = Rows(short, columns)
    assert (rows.take(1), rows.take(2), rows.position) == ([(1, "a")], [(2, None), (3, "c")], 3)
    assert rows.take_table().to_pylist() == [{"x": 4, "y": "d"}]
    assert rows.take(1) == []
    assert list(Rows(short, columns).iterate()) == [(1, "a"), (2, None), (3, "c"), (4, "d")]
    assert Rows(short, columns).take(9) == [(1, "a"), (2, None), (3, "c"), (4, "d")]
    assert Rows(short, columns).take_table().schema == pa.schema([("x", pa.int64()), ("y", pa.string())])
    assert Rows(ShortTable([[], []], 0), columns).take(1) == []
