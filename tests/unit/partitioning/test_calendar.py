"""Units of the calendar against DuckDB's ``date_trunc``."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from secateur.engine.kernels.duckdb import default_kernel
from secateur.partitioning.types import DAYS_OR_LONGER, UNITS, following, start_of

INSTANTS = [
    datetime(2024, 2, 29, 23, 59, 59, 999_999),
    datetime(2024, 1, 1),
    datetime(2023, 12, 31, 12),
    datetime(1969, 12, 31, 23, 59, 59, 1),
    datetime(1900, 3, 1, 0, 0, 1),
    datetime(1, 1, 8, 5),
    datetime(9998, 12, 31, 23),
]


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_units_start_where_date_trunc_says(unit: str) -> None:
    for instant in INSTANTS:
        start, behind = start_of(instant, unit), following(start_of(instant, unit), unit)
        last = behind - timedelta(microseconds=1)
        answer = default_kernel().run(
            f"SELECT date_trunc('{unit}', $1) AS a, date_trunc('{unit}', $2) AS b, date_trunc('{unit}', $3) AS c",
            {},
            [instant, last, behind],
        )
        assert answer.to_pylist() == [{"a": start, "b": start, "c": behind}]


@pytest.mark.parametrize("unit", sorted(DAYS_OR_LONGER))
def test_long_units_start_at_midnight(unit: str) -> None:
    assert all(start_of(instant, unit).time() == datetime.min.time() for instant in INSTANTS)


@pytest.mark.parametrize("unit", ["second", "day", "month", "year"])
def test_nothing_follows_the_last_year(unit: str) -> None:
    with pytest.raises(OverflowError):
        following(start_of(datetime.max, unit), unit)


def test_nothing_comes_before_the_first_week() -> None:
    assert start_of(datetime(1, 1, 1, 3), "week") == datetime(1, 1, 1)
    with pytest.raises(OverflowError):
        start_of(datetime(1, 1, 1), "week") - timedelta(days=1)
