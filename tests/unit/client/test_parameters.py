from __future__ import annotations

import collections
import enum
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from secateur.client.dbapi import ordered_values, plain_values
from secateur.errors import ParameterError


class Colour(enum.StrEnum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()


class Spoken(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        2**100,
        1.5,
        "x",
        b"x",
        Decimal("1.50"),
        date(2024, 1, 1),
        time(1),
        datetime(2024, 1, 1),
        timedelta(1),
        uuid.UUID(int=1),
    ],
    ids=repr,
)
def test_plain_values_stay(value: Any) -> None:
    assert plain_values([value])[0] is value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(np.int64(5), 5, id="numpy int"),
        pytest.param(np.float32(0.5), 0.5, id="numpy float"),
        pytest.param(np.bool_(True), True, id="numpy bool"),
        pytest.param(np.str_("x"), "x", id="numpy str"),
        pytest.param(np.float64(0.5), 0.5, id="numpy float64, which is a float"),
        pytest.param(
            np.datetime64("2024-01-01T00:00:00.000001000", "ns"), datetime(2024, 1, 1, 0, 0, 0, 1), id="numpy datetime"
        ),
        pytest.param(np.timedelta64(5000, "ns"), timedelta(microseconds=5), id="numpy nanoseconds"),
        pytest.param(np.longdouble(1.5), 1.5, id="numpy long double"),
        pytest.param(np.array(5), 5, id="array without dimensions"),
        pytest.param(np.array("2024-01-01", "M8[D]"), date(2024, 1, 1), id="day without dimensions"),
        pytest.param(pd.NA, None, id="pandas NA"),
        pytest.param([1, pd.NA], [1, None], id="pandas NA in a list"),
        pytest.param(np.datetime64("NaT", "us"), None, id="numpy NaT"),
        pytest.param(np.timedelta64(1, "s"), timedelta(seconds=1), id="numpy timedelta"),
        pytest.param(pa.scalar(5), 5, id="arrow scalar"),
        pytest.param(pa.scalar(None), None, id="arrow null"),
        pytest.param(
            pd.Timestamp("2024-01-01 10:00", tz="UTC"), datetime(2024, 1, 1, 10, tzinfo=UTC), id="pandas timestamp"
        ),
        pytest.param(pd.Timedelta("1s"), timedelta(seconds=1), id="pandas timedelta"),
        pytest.param(pd.NaT, None, id="pandas NaT"),
        pytest.param(Colour.RED, "red", id="text enum"),
        pytest.param(Number.ONE, 1, id="int enum"),
        pytest.param(Text("x"), "x", id="subclass of str"),
        pytest.param(Spoken("x"), "x", id="text with words of its own"),
        pytest.param(bytearray(b"x"), b"x", id="bytearray"),
        pytest.param(pa.MonthDayNano([0, 1, -5000]), timedelta(days=1, microseconds=-5), id="arrow interval"),
        pytest.param((1, np.int8(2)), [1, 2], id="tuple"),
        pytest.param(np.array([1.5]), [1.5], id="array"),
    ],
)
def test_values_become_plain(value: Any, expected: Any) -> None:
    (got,) = plain_values([value])
    assert got == expected
    assert type(got) is type(expected)
    assert plain_values({"x": value}) == {"x": expected}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        pytest.param([1, object()], "parameter 2 is a builtins.object", id="object"),
        pytest.param([[1, {2}]], "parameter 1 is a builtins.set", id="inside a list"),
        pytest.param({"day": object()}, r"parameter \$day is a builtins.object", id="by name"),
        pytest.param([np.datetime64("20000-01-01")], "parameter 1 .* is outside of the calendar", id="year 20000"),
        pytest.param([pa.scalar(2**31 - 1, pa.int32()).cast(pa.date32())], "parameter 1 has no value", id="infinity"),
        pytest.param([pd.Timestamp(1)], "parameter 1 .* has a fraction of a microsecond", id="timestamp of ns"),
        pytest.param([pd.Timedelta(1)], "parameter 1 .* has a fraction of a microsecond", id="timedelta of ns"),
        pytest.param([np.datetime64(1, "ns")], "parameter 1 .* has a fraction of a microsecond", id="numpy ns"),
        pytest.param(
            [np.timedelta64(1, "ns")], "parameter 1 .* has a fraction of a microsecond", id="numpy span of ns"
        ),
        pytest.param([np.timedelta64(1, "M")], "parameter 1 .* has no fixed length", id="numpy month"),
        pytest.param([np.timedelta64(1, "Y")], "parameter 1 .* has no fixed length", id="numpy year"),
        pytest.param([pa.MonthDayNano([1, 0, 0])], "parameter 1 .* has months or nanoseconds", id="arrow months"),
        pytest.param([np.complex128(1)], "parameter 1 is a builtins.complex", id="complex"),
        pytest.param([np.clongdouble(1)], "parameter 1 is a numpy.clongdouble", id="long complex"),
        pytest.param([np.longdouble(1) / 3], "parameter 1 .* has more digits", id="digits of a long double"),
        pytest.param("abc", "not a str", id="text for a sequence"),
        pytest.param(5, "not a int", id="a bare value"),
        pytest.param({1, 2}, "not a set", id="set"),
        pytest.param({1: 2}, "parameter names have to be text, not 1", id="number for a name"),
    ],
)
def test_what_no_column_holds_is_named(params: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        plain_values(params)


def test_what_is_inside_of_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append({"a": endless})
    for params in ([endless], {"a": endless}):
        with pytest.raises(ParameterError, match="inside of itself"):
            plain_values(params)


@pytest.mark.parametrize("params", [None, [], (), {}], ids=repr)
def test_nothing_is_no_parameters(params: Any) -> None:
    assert not plain_values(params)


def test_sequences_of_any_kind() -> None:
    assert plain_values(np.array([1, 2])) == [1, 2]
    assert plain_values(collections.UserList([1])) == [1]
    assert plain_values({"$a": 1}) == {"a": 1}


def test_named_values_are_put_in_order() -> None:
    assert ordered_values({"b": 2, "A": 1}, 2, ("a", "B")) == [1, 2]
    assert ordered_values({}, 0, ()) == []
    assert ordered_values([], 0, ()) == []


@pytest.mark.parametrize(
    ("params", "count", "names", "message"),
    [
        pytest.param([1], 0, (), "has 0 parameters, 1 were given", id="none wanted"),
        pytest.param([1], 2, (), "has 2 parameters, 1 were given", id="too few"),
        pytest.param([1], 1, ("a",), r"named parameters \(\$a\): pass a mapping", id="by position"),
        pytest.param([], 1, ("a",), r"named parameters \(\$a\): pass a mapping", id="nothing for a name"),
        pytest.param({"a": 1}, 1, (), "1 parameter without names: pass a sequence", id="by name"),
        pytest.param({"a": 1}, 0, (), "0 parameters without names", id="by name, none wanted"),
        pytest.param({"a": 1, "x": 1}, 2, ("a", "b"), r"missing \$b; not in the statement: \$x", id="other names"),
    ],
)
def test_parameters_that_are_not_those_of_the_statement(
    params: Any, count: int, names: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        ordered_values(params, count, names)
