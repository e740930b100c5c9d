"""Data frames of what pandas and polars hold, and errors of ours for what they do not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, Final
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from secateur.client.dbapi import pandas_frame, polars_frame
from secateur.errors import DataError

ID: Final = UUID("7aca8bbb-0b5d-4ee7-aab5-e32ee907368b")


def rows(sql: str) -> Callable[[], pa.Table]:
    """The rows of a query of DuckDB, as Arrow."""
    return lambda: duckdb.sql(sql).to_arrow_table()


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame])
def test_columns_of_one_name_are_told_apart(frame: Callable[[Any], Any]) -> None:
    assert list(frame(rows("SELECT 1 AS v, 2 AS v, 3 AS V, 4 AS v_1")).columns) == ["v", "v_1", "V_2", "v_1_1"]


DAY, MONTH = timedelta(days=1), timedelta(days=30)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("INTERVAL 1 DAY", DAY),
        ("INTERVAL '1 month 2 days -3 seconds'", timedelta(days=32, seconds=-3)),
        ("NULL::INTERVAL", None),
        ("[INTERVAL 1 DAY, NULL]", [DAY, None]),
        ("[[INTERVAL 1 MONTH]]", [[MONTH]]),
        ("{'a': INTERVAL 1 DAY}", {"a": DAY}),
        ("{'a': [{'b': INTERVAL 1 DAY}]}", {"a": [{"b": DAY}]}),
        ("MAP {'k': INTERVAL 1 DAY}", {"k": DAY}),
        ("[INTERVAL 1 DAY, INTERVAL 1 MONTH]::INTERVAL[2]", [DAY, MONTH]),
    ],
)
def test_an_interval_is_a_duration_in_polars(expression: str, expected: Any) -> None:
    sql = f"SELECT * FROM (VALUES (1, {expression}), (2, NULL), (3, {expression})) AS t(k, x) ORDER BY k"
    frame = polars_frame(rows(sql))
    found = frame["x"].to_list()
    if isinstance(expected, dict) and expected.keys() == {"k"}:
        found = [None if one is None else dict(one) for one in found]
    assert found == [expected, None, expected]
    sliced = polars_frame(lambda: rows(sql)().slice(2))
    assert sliced["x"].to_list() == frame["x"].to_list()[2:]
    assert len(polars_frame(rows(f"{sql} LIMIT 0"))) == 0


@pytest.mark.parametrize("value", ["'infinity'", "'-infinity'", "'5877642-06-25 (BC)'"])
@pytest.mark.parametrize("form", ["{}", "[{}]", "{{'a': {}}}", "MAP {{1: {}}}", "MAP {{{}: 1}}", "[{}]::DATE[1]"])
@pytest.mark.parametrize(("frame", "library"), [(pandas_frame, "pandas"), (polars_frame, "polars")])
def test_a_day_that_a_frame_cannot_hold_is_named(
    frame: Callable[[Any], Any], library: str, form: str, value: str
) -> None:
    if library == "pandas" and "BC" in value and ":" not in form.replace("::", ""):
        return  # pandas holds it in a column or list of datetime64
    with pytest.raises(DataError, match=rf"column 'born' has a day or an instant that {library} cannot hold: read it"):
        frame(rows(f"SELECT 1 AS k, {form.format('DATE ' + value)} AS born"))


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS"])
@pytest.mark.parametrize("form", ["{}", "[{}]", "{{'a': {}}}"])
def test_an_instant_beyond_the_calendar_of_polars_is_named(kind: str, form: str) -> None:
    with pytest.raises(DataError, match="column 'at' has a day or an instant that polars cannot hold"):
        polars_frame(rows(f"SELECT {form.format(f'{kind} ' + chr(39) + 'infinity' + chr(39))} AS at"))


def test_an_interval_of_millions_of_years_is_named() -> None:
    with pytest.raises(DataError, match="column 'i' has an INTERVAL that polars cannot hold"):
        polars_frame(rows("SELECT INTERVAL 10000000 YEAR AS i"))


def test_a_column_of_days_beyond_python_is_datetime64_in_pandas() -> None:
    sql = (
        "SELECT * FROM (VALUES (DATE '10000-01-01', DATE '2024-01-02', [DATE '0044-03-15 (BC)']), (NULL, NULL, NULL))"
        " AS t(far, near, l)"
    )
    frame = pandas_frame(rows(sql))
    assert frame["near"].tolist() == [date(2024, 1, 2), None]
    assert frame["far"].isna().tolist() == [False, True]
    assert str(frame["far"][0]) == str(duckdb.sql(sql).df()["far"][0]) == "10000-01-01 00:00:00"
    assert str(frame["l"][0][0]) == str(np.datetime64("-0043-03-15", "ms"))


@pytest.mark.parametrize("form", ["{{'a': {}}}", "MAP {{1: {}}}", "[{{'a': {}}}]"])
@pytest.mark.parametrize("value", ["TIMESTAMP '10000-01-01'", "TIMESTAMPTZ 'infinity'", "DATE '10000-01-01'"])
def test_an_instant_that_pandas_would_make_a_number_is_named(form: str, value: str) -> None:
    with pytest.raises(DataError, match="column 'x' has a day or an instant that pandas cannot hold"):
        pandas_frame(rows(f"SELECT {form.format(value)} AS x"))


LARGE: Final = 2**53 + 1


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"{LARGE}", LARGE),
        ("(-9223372036854775808)::BIGINT", -(2**63)),
        ("18446744073709551615::UBIGINT", 2**64 - 1),
        (f"[{LARGE}, NULL]", [LARGE, None]),
        (f"[[{LARGE}, NULL]]", [[LARGE, None]]),
        (f"{{'a': {LARGE}}}", {"a": LARGE}),
        (f"MAP {{'a': {LARGE}, 'b': NULL}}", [("a", LARGE), ("b", None)]),
        ("[gen, NULL]", [ID, None]),
        ("[[gen]]", [[ID]]),
        ("{'a': gen, 'b': [gen]}", {"a": ID, "b": [ID]}),
        ("MAP {gen: [gen]}", [(ID, [ID])]),
    ],
)
def test_pandas_is_given_each_value_as_it_is(expression: str, expected: Any) -> None:
    sql = f"SELECT unnest([{expression}, NULL]) AS x, 1 AS k, NULL::BIGINT AS n FROM (SELECT '{ID}'::UUID AS gen)"
    with duckdb.connect() as connection:
        connection.execute("SET arrow_lossless_conversion = true")
        frame = pandas_frame(connection.sql(sql).to_arrow_table)
    found = frame["x"][0]
    while isinstance(found, np.ndarray):
        found = [part.tolist() if isinstance(part, np.ndarray) else part for part in found]
    assert found == expected
    assert pd.isna(frame["x"][1])
    assert frame["n"].isna().all()


def test_a_time_that_pandas_cannot_hold_is_named() -> None:
    with pytest.raises(DataError, match="column 'x' has a value that pandas cannot hold"):
        pandas_frame(rows("SELECT 1 AS k, '01:02:03.123456789'::TIME_NS AS x"))


def test_what_frames_hold_is_as_arrow_gives_it() -> None:
    sql = (
        "SELECT DATE '2024-01-02' AS d, TIMESTAMP '10000-01-01' AS t, TIME '12:00' AS s, {'a': DATE '9999-12-31'} AS n,"
        " MAP {1: TIMESTAMPTZ '2024-01-01 00:00:00+00'} AS m"
    )
    pd.testing.assert_frame_equal(pandas_frame(rows(sql)), rows(sql)().to_pandas())
    assert polars_frame(rows(sql)).equals(pl.from_arrow(rows(sql)()))
