"""TIMESTAMP_S, TIMESTAMP_MS and TIMESTAMP_NS: each value exactly, or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from secateur.errors import DataError
from secateur.partitioning.types import array_of, cast_column, column_of, parse_type

NOON = 1_704_110_400
"""2024-01-01 12:00:00, in seconds."""


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("TIMESTAMP_S", datetime(2024, 1, 1, 12), NOON),
        ("TIMESTAMP_S", datetime(2024, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))), NOON),
        ("TIMESTAMP_S", "2024-01-01 12:00:00.000000", NOON),
        ("TIMESTAMP_S", date(1969, 12, 31), -86_400),
        ("TIMESTAMP_S", datetime(9999, 12, 31, 23, 59, 59), 253_402_300_799),
        ("TIMESTAMP_S", np.datetime64(NOON * 1000, "ms"), NOON),
        ("TIMESTAMP_MS", datetime(1969, 12, 31, 23, 59, 59, 999_000), -1),
        ("TIMESTAMP_MS", pd.Timestamp(NOON * 10**9 + 5_000_000), NOON * 1000 + 5),
        ("TIMESTAMP_NS", pd.Timestamp(NOON * 10**9 + 1), NOON * 10**9 + 1),
        ("TIMESTAMP_NS", pd.Timestamp(NOON * 10**9 + 1, tz="Europe/Berlin"), NOON * 10**9 + 1),
        ("TIMESTAMP_NS", np.datetime64(-1, "ns"), -1),
        ("TIMESTAMP_NS", np.datetime64("2024-01-01T12"), NOON * 10**9),
        ("TIMESTAMP_NS", datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), -1000),
        ("TIMESTAMP_NS", "2024-01-01T12:00:00.000000001", NOON * 10**9 + 1),
        ("TIMESTAMP_NS", "2024-01-01 14:00:00.1234567+02:00", NOON * 10**9 + 123_456_700),
        ("TIMESTAMP_NS", "2024-01-01 12:00:00.12345678900", NOON * 10**9 + 123_456_789),
        ("TIMESTAMP_NS", "1969-12-31 23:59:59.999999999", -1),
        ("TIMESTAMP_NS", pd.NaT, None),
        ("TIMESTAMP_NS", pd.Timestamp.max - pd.Timedelta(1), 2**63 - 2),
    ],
)
def test_values(text: str, given: Any, expected: int | None) -> None:
    type_ = parse_type(text)
    found = column_of([given, None], type_, name="t")
    assert found.type == type_.arrow
    assert found.cast(pa.int64()).to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("TIMESTAMP_S", datetime(2024, 1, 1, 0, 0, 0, 1), "it is not a whole number of seconds"),
        ("TIMESTAMP_S", "2024-01-01 00:00:00.5", "it is not a whole number of seconds"),
        ("TIMESTAMP_MS", datetime(2024, 1, 1, 0, 0, 0, 1), "it is not a whole number of milliseconds"),
        ("TIMESTAMP_MS", np.datetime64(1, "us"), "it is not a whole number of milliseconds"),
        ("TIMESTAMP_MS", pd.Timestamp(1), "whole number of microseconds"),
        ("TIMESTAMP_NS", np.datetime64(1, "ps"), "it is not a whole number of nanoseconds"),
        ("TIMESTAMP_NS", "2024-01-01 12:00:00.1234567891", "it is not a whole number of nanoseconds"),
        ("TIMESTAMP_NS", datetime(3000, 1, 1), "in the years 1677 to 2262"),
        ("TIMESTAMP_NS", np.datetime64("3000-01-01"), "in the years 1677 to 2262"),
        ("TIMESTAMP_NS", date(1, 1, 1), "in the years 1677 to 2262"),
        ("TIMESTAMP_NS", pd.Timestamp.max, "in the years 1677 to 2262"),
        ("TIMESTAMP_S", 5, "give a datetime"),
        ("TIMESTAMP_NS", 5.0, "give a datetime"),
        ("TIMESTAMP_NS", "infinity", "the text is not such a value"),
    ],
)
def test_values_that_are_refused(text: str, given: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"row 1, column t: .* does not fit {text}: .*{message}"):
        column_of([given], parse_type(text), name="t")


@pytest.mark.parametrize(
    ("column", "text", "expected"),
    [
        (pa.array([5, None], pa.timestamp("s")), "TIMESTAMP_NS", [5 * 10**9, None]),
        (pa.array([-5000], pa.timestamp("ms")), "TIMESTAMP_S", [-5]),
        (pa.array([7], pa.timestamp("ns", "Europe/Berlin")), "TIMESTAMP_NS", [7]),
        (pa.array([1], pa.date32()), "TIMESTAMP_MS", [86_400_000]),
        (pa.array(["1970-01-01 00:00:00.000000007"]), "TIMESTAMP_NS", [7]),
        (pa.array([2**63 - 1], pa.timestamp("ns")), "TIMESTAMP_NS", [2**63 - 1]),
        (pa.array([2**63 - 1, None, 0], pa.timestamp("us")), "TIMESTAMP_NS", [2**63 - 1, None, 0]),
        (pa.array([1 - 2**63, 10**6], pa.timestamp("us")), "TIMESTAMP_S", [1 - 2**63, 1]),
        (pa.array([2**63 - 1, 1], pa.timestamp("s")), "TIMESTAMP", [2**63 - 1, 10**6]),
        (pa.array([None]), "TIMESTAMP_S", [None]),
    ],
    ids=str,
)
def test_columns(column: pa.Array, text: str, expected: list[int | None]) -> None:
    found = cast_column(column, parse_type(text), name="t")
    assert found.type == parse_type(text).arrow
    assert found.cast(pa.int64()).to_pylist() == expected


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        (pa.array([1000, 1], pa.timestamp("ms")), "TIMESTAMP_S", "row 2: .* which holds whole seconds"),
        (pa.array([1], pa.timestamp("us")), "TIMESTAMP_MS", "which holds whole milliseconds"),
        (pa.array([2**40], pa.timestamp("s")), "TIMESTAMP_NS", "of the years 1677 to 2262"),
        (pa.array([2**63 - 1], pa.timestamp("ns")), "TIMESTAMP", "2262-.* which holds whole microseconds"),
        (pa.array([2**63 - 2], pa.timestamp("us")), "TIMESTAMP_S", "which holds whole seconds"),
        (pa.array([1], pa.timestamp("ns")), "TIMESTAMP", "which holds whole microseconds"),
        (pa.array([2_000_000], pa.date32()), "TIMESTAMP_NS", "of the years 1677 to 2262"),
        (pa.array([1]), "TIMESTAMP_S", "is not converted to TIMESTAMP_S"),
    ],
    ids=str,
)
def test_columns_that_are_refused(column: pa.Array, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        cast_column(column, parse_type(text), name="t")


def test_schemas_of_jobs_keep_nanoseconds() -> None:
    found = array_of([np.datetime64(1, "ns"), pd.Timestamp(2), None], pa.timestamp("ns"), name="t")
    assert found.cast(pa.int64()).to_pylist() == [1, 2, None]
