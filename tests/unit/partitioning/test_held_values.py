"""Values that no column can hold, wherever they are in an Arrow column; the conditions about long intervals are
DuckDB's to answer.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from secateur.errors import DataError
from secateur.partitioning.types import check_held, long_intervals_sql, parse_result_type

TIME = pa.time64("us")
END = pa.array([0, 86_400_000_000], pa.int64()).view(TIME)
FINE = pa.array([0, 86_399_999_999, None], pa.int64()).view(TIME)


def nested(times: pa.Array) -> list[pa.Array]:
    count = len(times)
    one_each = pa.array(range(count + 1), pa.int32())
    return [
        times,
        pa.ListArray.from_arrays(one_each, times),
        pa.FixedSizeListArray.from_arrays(times, 1),
        pa.StructArray.from_arrays([pa.array([1] * count), times], names=["a", "b"]),
        pa.MapArray.from_arrays(one_each, pa.array(list("abc"[:count])), times),
        pa.ListArray.from_arrays(one_each, pa.StructArray.from_arrays([times], names=["a"])),
    ]


@pytest.mark.parametrize("array", nested(END), ids=lambda array: str(array.type))
def test_the_end_of_a_day_is_refused(array: pa.Array) -> None:
    with pytest.raises(DataError, match="column 'c' has TIME '24:00:00'"):
        check_held(pa.chunked_array([array]), "c")


@pytest.mark.parametrize("array", nested(FINE), ids=lambda array: str(array.type))
def test_times_of_a_day_are_held(array: pa.Array) -> None:
    check_held(pa.chunked_array([array, array.slice(1)]), "c")


def test_what_a_null_list_has_underneath_is_nobodys_value() -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), END, mask=pa.array([False, True]))
    check_held(pa.chunked_array([lists]), "c")


def test_an_interval_has_whole_microseconds() -> None:
    kind = pa.month_day_nano_interval()
    check_held(pa.chunked_array([pa.array([(1, 2, 3000), None, (0, 0, -1000)], kind)]), "c")
    with pytest.raises(DataError, match="fraction of a microsecond"):
        check_held(pa.chunked_array([pa.array([(1, 2, 3000), (0, 0, 1)], kind)]), "c")


@pytest.mark.parametrize(
    ("value", "is_long"),
    [
        ("INTERVAL '2562047 hours'", False),
        ("INTERVAL '2562048 hours'", True),
        ("INTERVAL '-2562048 hours'", True),
        ("INTERVAL '2562047788 hours'", True),
        ("'2562047:47:16.854775'::INTERVAL", False),
        ("'2562047:47:16.854776'::INTERVAL", True),
        ("'-2562047:47:16.854775'::INTERVAL", False),
        ("'-2562047:47:16.854776'::INTERVAL", True),
        ("INTERVAL '2000000000 days'", False),
        ("INTERVAL '2000000000 months'", False),
        ("NULL::INTERVAL", False),
    ],
)
def test_long_intervals(value: str, is_long: bool) -> None:
    for type_, wrapped in (("INTERVAL", "{}"), ("INTERVAL[]", "[NULL, {}]"), ("INTERVAL[][]", "[NULL, [], [{}]]")):
        condition = long_intervals_sql("c", parse_result_type(type_))
        with duckdb.connect() as duck:
            assert duck.execute(f"SELECT {condition} FROM (SELECT {wrapped.format(value)}) t(c)").fetchall() == [
                (is_long,)
            ]


def test_other_types_have_no_condition() -> None:
    assert [long_intervals_sql("c", parse_result_type(text)) for text in ("INTEGER", "TIME[]", "VARCHAR")] == [
        None,
        None,
        None,
    ]
