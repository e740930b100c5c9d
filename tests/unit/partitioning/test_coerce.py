from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from secateur.errors import DataError
from secateur.partitioning.types import parse_type
from secateur.partitioning.types.coerce import coerce, uncertain_finder

TEXT = "7aca8bbb-0b5d-4ee7-aab5-e32ee907368b"
EASTERN = timezone(timedelta(hours=-5))


class Color(str, Enum):  # noqa: UP042 - str() of a member of a StrEnum is its value
    RED = "red"


class Price(Enum):
    LOW = Decimal("0.5")


class Spoken(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


NO_NUMBERS = ("1__0", "_1", "1_", "1_0", "\u0663", "1\u0663", "", " ", ".", "1e", "e1", "0x10", "1 0", "--1")
"""What Python reads as a number, in part, and SQL does not."""


@pytest.mark.parametrize(
    ("type_", "given", "expected"),
    [
        ("INTEGER", 5, 5),
        ("INTEGER", True, 1),
        ("INTEGER", 5.0, 5),
        ("INTEGER", Decimal("5.00"), 5),
        ("INTEGER", " -7 ", -7),
        ("INTEGER", np.int8(5), 5),
        ("INTEGER", np.float32(5), 5),
        ("TINYINT", -128, -128),
        ("UBIGINT", 2**64 - 1, 2**64 - 1),
        ("HUGEINT", 10**38 - 1, 10**38 - 1),
        ("DECIMAL(5,2)", Decimal("1.5"), Decimal("1.50")),
        ("DECIMAL(5,2)", Decimal("1.500"), Decimal("1.50")),
        ("DECIMAL(5,2)", 1.1, Decimal("1.10")),
        ("DECIMAL(5,2)", "1e2", Decimal("100.00")),
        ("DECIMAL(5,2)", 7, Decimal("7.00")),
        ("DECIMAL(5,2)", Decimal("-0.00"), Decimal("0.00")),
        ("DECIMAL(38,0)", 10**38 - 1, Decimal(10**38 - 1)),
        ("DECIMAL(38,38)", Decimal("0." + "9" * 38), Decimal("0." + "9" * 38)),
        ("BOOLEAN", 0, False),
        ("BOOLEAN", "True", True),
        ("BOOLEAN", " f ", False),
        ("BOOLEAN", np.bool_(True), True),
        ("DOUBLE", 1, 1.0),
        ("DOUBLE", "1.5", 1.5),
        ("DOUBLE", Decimal("0.5"), 0.5),
        ("FLOAT", 0.1, 0.10000000149011612),
        ("FLOAT", float("inf"), float("inf")),
        ("VARCHAR", "é", "é"),
        ("VARCHAR", np.str_("a"), "a"),
        ("BLOB", bytearray(b"x"), b"x"),
        ("BLOB", memoryview(b"x"), b"x"),
        ("DATE", date(2024, 2, 29), date(2024, 2, 29)),
        ("DATE", "2024-02-29", date(2024, 2, 29)),
        ("DATE", datetime(2024, 2, 29), date(2024, 2, 29)),
        ("DATE", np.datetime64("2024-02-29"), date(2024, 2, 29)),
        ("TIME", time(1, 2, 3), time(1, 2, 3)),
        ("TIME", "01:02:03", time(1, 2, 3)),
        ("TIMESTAMP", datetime(2024, 1, 1, 1), datetime(2024, 1, 1, 1)),
        ("TIMESTAMP", datetime(2024, 1, 1, 1, tzinfo=EASTERN), datetime(2024, 1, 1, 6)),
        ("TIMESTAMP", date(2024, 1, 1), datetime(2024, 1, 1)),
        ("TIMESTAMP", "2024-01-01 05:00:00+05:00", datetime(2024, 1, 1)),
        ("TIMESTAMP", np.datetime64("2024-01-01T00:00:00.000001"), datetime(2024, 1, 1, 0, 0, 0, 1)),
        ("TIMESTAMP", pd.Timestamp("2024-01-01"), datetime(2024, 1, 1)),
        ("TIMESTAMP WITH TIME ZONE", datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),
        ("TIMESTAMP WITH TIME ZONE", datetime(2024, 1, 1, tzinfo=EASTERN), datetime(2024, 1, 1, 5, tzinfo=UTC)),
        ("TIMESTAMP WITH TIME ZONE", "2024-01-01", datetime(2024, 1, 1, tzinfo=UTC)),
        ("INTERVAL", timedelta(days=1), timedelta(days=1)),
        ("INTERVAL", pa.MonthDayNano([1, -2, 3000]), pa.MonthDayNano([1, -2, 3000])),
        ("INTERVAL", pd.DateOffset(months=1, nanoseconds=5), pd.DateOffset(months=1, nanoseconds=5)),
        ("UUID", UUID(TEXT), UUID(TEXT)),
        ("UUID", TEXT.upper(), UUID(TEXT)),
        ("UUID", UUID(TEXT).bytes, UUID(TEXT)),
        ("INTEGER[]", (1, None, "3"), [1, None, 3]),
        ("FLOAT[]", np.array([1.0, 2.0]), [1.0, 2.0]),
        ("STRUCT(a INTEGER, b DATE[])", {"B": ["2024-02-29"], "a": "1"}, {"a": 1, "b": [date(2024, 2, 29)]}),
        ("STRUCT(a INTEGER, b DATE[])", {}, {"a": None, "b": None}),
        ("MAP(INTEGER, VARCHAR)", {"1": "x", 2: None}, [(1, "x"), (2, None)]),
        ("MAP(INTEGER[], VARCHAR)", [([1, 2], "x"), ((1,), "y")], [([1, 2], "x"), ([1], "y")]),
        ("MAP(INTEGER[], VARCHAR)", {"key": [[1, 2], [1]], "value": ["x", None]}, [([1, 2], "x"), ([1], None)]),
        ("MAP(INTEGER[], VARCHAR)", {"key": [], "value": []}, []),
        ("MAP(VARCHAR, INTEGER[])", {"key": [1], "value": [2]}, [("key", [1]), ("value", [2])]),
        ("DECIMAL(5,2)", " +.5e1 ", Decimal("5.00")),
        ("DOUBLE", "5.", 5.0),
        ("VARCHAR", Spoken("a"), "a"),
        ("VARCHAR", Color.RED, "red"),
        ("DECIMAL(5,2)", Price.LOW, Decimal("0.50")),
        ("VARCHAR[]", [Color.RED, pd.NA], ["red", None]),
        ("TIMESTAMP", pd.NaT, None),
        ("TIMESTAMP", "2024-01-01 00:00:00.1234560", datetime(2024, 1, 1, 0, 0, 0, 123456)),
        ("DOUBLE", "-Infinity", float("-inf")),
        ("DATE", None, None),
    ],
    ids=lambda value: "memoryview" if isinstance(value, memoryview) else repr(value),
)
def test_converts(type_: str, given: Any, expected: Any) -> None:
    found = coerce(given, parse_type(type_))
    assert (found, type(found)) == (expected, type(expected))
    if isinstance(expected, Decimal):
        assert found.as_tuple() == expected.as_tuple()
    if isinstance(expected, datetime):
        assert found.tzinfo == expected.tzinfo


@pytest.mark.parametrize(
    ("type_", "given", "reason"),
    [
        ("INTEGER", 1.5, "it is not a whole number"),
        ("INTEGER", float("nan"), "it is not a whole number"),
        ("INTEGER", float("-inf"), "it is not a whole number"),
        ("INTEGER", Decimal("NaN"), "it is not a whole number"),
        ("INTEGER", Decimal("1.5"), "it is not a whole number"),
        ("INTEGER", "1.0", "the text is not a whole number"),
        ("INTEGER", "٣", "the text is not a whole number"),
        ("INTEGER", b"1", "give an int"),
        ("INTEGER", 2**31, "the type holds -2147483648 to 2147483647"),
        ("UTINYINT", -1, "the type holds 0 to 255"),
        ("BIGINT", "9" * 5000, "the text is not such a value"),
        ("BIGINT", 10**400, "the type holds"),
        ("HUGEINT", 10**38, "the type holds"),
        ("DECIMAL(5,2)", Decimal("1000"), "the type holds 3 digits before the point"),
        ("DECIMAL(5,2)", Decimal("1E+999999"), "the type holds 3 digits before the point"),
        ("DECIMAL(5,2)", Decimal("1.005"), "the type holds 2 digits behind the point"),
        ("DECIMAL(5,2)", Decimal("1E-999999"), "the type holds 2 digits behind the point"),
        ("DECIMAL(5,2)", 1.005, "the type holds 2 digits behind the point"),
        ("DECIMAL(5,2)", float("nan"), "it is not finite"),
        ("DECIMAL(5,2)", Decimal("sNaN"), "it is not finite"),
        ("DECIMAL(5,2)", "abc", "the text is not such a value"),
        ("DECIMAL(5,2)", b"1", "give a Decimal, an int or text"),
        ("BOOLEAN", 2, "give True or False"),
        ("BOOLEAN", "yes", "give True or False"),
        *(
            (kind, text, "the text is not such a value")
            for kind in ("DECIMAL(5,2)", "FLOAT", "DOUBLE")
            for text in NO_NUMBERS
        ),
        ("DOUBLE", "x", "the text is not such a value"),
        ("DOUBLE", 10**400, "the text is not such a value"),
        ("DOUBLE", "1e400", "it is too large for the type"),
        ("DOUBLE", Decimal("-1e400"), "it is too large for the type"),
        ("DOUBLE", b"1", "give a float"),
        ("FLOAT", 1e300, "it is too large for single precision"),
        ("VARCHAR", 5, r"give a str; convert it with str\(\)"),
        ("VARCHAR", b"a", "give a str"),
        ("VARCHAR", "\ud800", "it has surrogates"),
        ("BLOB", "x", "give bytes"),
        ("DATE", datetime(2024, 1, 1, 1), "it has a time of day"),
        ("DATE", "2024-02-30", "the text is not such a value"),
        ("DATE", 5, "give a date or its ISO text"),
        ("TIME", time(1, tzinfo=UTC), "it has a zone"),
        ("TIME", "01:02:03.1234567", "it is not a whole number of microseconds"),
        ("TIMESTAMP", "2024-01-01T00:00:00,1234560001", "it is not a whole number of microseconds"),
        ("TIME", 5, "give a time or its ISO text"),
        ("TIMESTAMP", np.datetime64("2024-01-01T00:00:00.000000001"), "it is not a whole number of microseconds"),
        ("TIMESTAMP", np.datetime64("NaT"), "it is not a whole number of microseconds"),
        ("TIMESTAMP", np.datetime64(2**60, "s"), "in the years 1 to 9999"),
        ("TIMESTAMP", np.datetime64(20000 - 1970, "Y"), "in the years 1 to 9999"),
        ("TIMESTAMP", pd.Timestamp("2024-01-01 00:00:00.000000001"), "it is not a whole number of microseconds"),
        ("TIMESTAMP", datetime.max.replace(tzinfo=EASTERN), "in UTC it is outside of the years 1 to 9999"),
        ("TIMESTAMP", 5, "give a datetime or its ISO text"),
        ("INTERVAL", 5, "give a timedelta"),
        ("INTERVAL", (1, 2, 3), "give a timedelta"),
        ("INTERVAL", pd.DateOffset(months=1, n=2), "give a timedelta"),
        ("INTERVAL", pd.DateOffset(month=1), "give a timedelta"),
        ("UUID", "{" + TEXT + "}", "write it as 8-4-4-4-12"),
        ("UUID", TEXT.replace("-", ""), "write it as 8-4-4-4-12"),
        ("UUID", b"1", "the text is not such a value"),
        ("UUID", 5, "give a uuid.UUID or its text"),
        ("INTEGER[]", [1, "x"], "the text is not a whole number"),
        ("INTEGER[]", 5, "give a list"),
        ("STRUCT(a INTEGER)", 5, "give a dict of its fields"),
        ("STRUCT(a INTEGER)", {1: 5}, "give a dict of its fields"),
        ("STRUCT(a INTEGER)", {"b": 5}, "it has no field b; its fields are a"),
        ("STRUCT(a INTEGER)", {"a": 5, "A": 6}, "a field is given twice; its fields are a"),
        ("STRUCT(a INTEGER)", {"a": "x"}, "the text is not a whole number"),
        ("MAP(INTEGER, INTEGER)", 5, "give a dict, or a list of pairs"),
        ("MAP(INTEGER, INTEGER)", [5], "give a dict, or a list of pairs"),
        ("MAP(INTEGER, INTEGER)", {None: 1}, "a key is NULL"),
        ("MAP(INTEGER, INTEGER)", {pd.NA: 1}, "a key is NULL"),
        ("MAP(INTEGER, INTEGER)", {"1": 1, 1: 2}, "a key is there twice"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_refuses(type_: str, given: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason) as raised:
        coerce(given, parse_type(type_), column="c")
    assert str(raised.value).startswith("column c: ")
    assert raised.value.details == {"column": "c", "type": type_}
    assert len(str(raised.value)) < 300


def test_without_a_column_the_message_still_reads() -> None:
    with pytest.raises(
        DataError, match=r"^the value 'x' \(str\) does not fit INTEGER: the text is not a whole number$"
    ):
        coerce("x", parse_type("INTEGER"))


@pytest.mark.parametrize(
    ("type_", "certain"),
    [
        ("TINYINT", [-128, 127]),
        ("UBIGINT", [0, 2**64 - 1]),
        ("HUGEINT", [10**38 - 1]),
        ("VARCHAR", ["", "a"]),
        ("BLOB", [b""]),
        ("BOOLEAN", [True]),
        ("DOUBLE", [1.5, -0.0]),
        ("FLOAT", []),
        ("DECIMAL(5,2)", []),
        ("DATE", [date(2024, 1, 1)]),
        ("TIMESTAMP", []),
        ("UUID", [UUID(TEXT)]),
        ("INTEGER[]", []),
    ],
)
def test_what_is_certainly_canonical_stays_as_it_is(type_: str, certain: list[Any]) -> None:
    others = [128, -129, 2**64, -1, 1, 10**38, "\ud800", "é", 1.5, True, b"a", date(2024, 1, 1), datetime(2024, 1, 1)]
    kind = parse_type(type_)
    uncertain, uncertain_or_null = uncertain_finder([(kind, False)]), uncertain_finder([(kind, False), (kind, True)])
    assert uncertain([[]], 0) == 1
    assert uncertain([[*certain, None]], 0) == 0
    assert uncertain_or_null([certain, [*certain, None]], 0) == 2
    assert uncertain_or_null([[None], [*certain, None]], 1) == 2
    found = [value for value in [*certain, *others, Decimal("1.5"), [1], np.int8(1)] if uncertain([[value]], 0)]
    assert certain == found[: len(certain)]
    for value in found:
        same = coerce(value, kind)
        assert (same, type(same)) == (value, type(value))
