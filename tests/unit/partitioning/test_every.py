from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from secateur.partitioning.schemes import IntervalPartitioning, IntervalUnit
from secateur.partitioning.types import parse_type

MONTHS, DAYS, MICROSECONDS, NUMBERS = (
    IntervalUnit.MONTH,
    IntervalUnit.DAY,
    IntervalUnit.MICROSECOND,
    IntervalUnit.NUMBER,
)
HOUR = 3_600_000_000
ZONED = "TIMESTAMP WITH TIME ZONE"


@pytest.mark.parametrize(
    ("every", "type_", "cell", "lower", "upper"),
    [
        pytest.param(IntervalPartitioning(1, DAYS), "DATE", 0, date(1970, 1, 1), date(1970, 1, 2), id="the first day"),
        pytest.param(
            IntervalPartitioning(1, DAYS), "DATE", 19_782, date(2024, 2, 29), date(2024, 3, 1), id="a leap day"
        ),
        pytest.param(
            IntervalPartitioning(7, DAYS, date(2024, 1, 1)),
            "DATE",
            1,
            date(2024, 1, 8),
            date(2024, 1, 15),
            id="weeks from a Monday",
        ),
        pytest.param(
            IntervalPartitioning(1, MONTHS), "DATE", 12 * 54 + 1, date(2024, 2, 1), date(2024, 3, 1), id="February"
        ),
        pytest.param(
            IntervalPartitioning(3, MONTHS, date(2023, 12, 1)),
            "DATE",
            0,
            date(2023, 12, 1),
            date(2024, 3, 1),
            id="a quarter over the year",
        ),
        pytest.param(
            IntervalPartitioning(1, MONTHS),
            "TIMESTAMP",
            -1,
            datetime(1969, 12, 1),
            datetime(1970, 1, 1),
            id="before the epoch",
        ),
        pytest.param(
            IntervalPartitioning(HOUR, MICROSECONDS),
            "TIMESTAMP",
            -1,
            datetime(1969, 12, 31, 23),
            datetime(1970, 1, 1),
            id="the hour before",
        ),
        pytest.param(
            IntervalPartitioning(HOUR, MICROSECONDS),
            ZONED,
            1,
            datetime(1970, 1, 1, 1, tzinfo=UTC),
            datetime(1970, 1, 1, 2, tzinfo=UTC),
            id="with time zone",
        ),
        pytest.param(
            IntervalPartitioning(12, MONTHS),
            ZONED,
            54,
            datetime(2024, 1, 1, tzinfo=UTC),
            datetime(2025, 1, 1, tzinfo=UTC),
            id="years with time zone",
        ),
        pytest.param(IntervalPartitioning(1000, NUMBERS), "BIGINT", -1, -1000, 0, id="below zero"),
        pytest.param(IntervalPartitioning(1000, NUMBERS, 5), "BIGINT", 2, 2005, 3005, id="numbers from 5 on"),
        pytest.param(IntervalPartitioning(100, NUMBERS), "TINYINT", 1, 100, None, id="beyond the largest"),
        pytest.param(IntervalPartitioning(100, NUMBERS), "TINYINT", -2, None, -100, id="beyond the smallest"),
        pytest.param(IntervalPartitioning(1, DAYS), "DATE", 3_000_000, None, None, id="beyond Python's years"),
        pytest.param(
            IntervalPartitioning(1, MONTHS),
            "DATE",
            12 * (9999 - 1970) + 11,
            date(9999, 12, 1),
            None,
            id="the last month",
        ),
        pytest.param(IntervalPartitioning(2**62, NUMBERS), "UBIGINT", 3, 3 * 2**62, None, id="half of everything"),
    ],
)
def test_bounds(every: IntervalPartitioning, type_: str, cell: int, lower: Any, upper: Any) -> None:
    assert every.bounds(cell, parse_type(type_)) == (lower, upper)


CASES: list[Any] = [
    pytest.param(
        IntervalPartitioning(1, DAYS),
        "DATE",
        [date(1969, 12, 31), date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 30)],
        id="days",
    ),
    pytest.param(
        IntervalPartitioning(7, DAYS, date(2024, 1, 1)),
        "DATE",
        [date(2023, 12, 31), date(2024, 1, 1), date(2024, 1, 7), date(2024, 1, 8)],
        id="weeks",
    ),
    pytest.param(
        IntervalPartitioning(2, MONTHS),
        "DATE",
        [date(1969, 12, 31), date(1970, 2, 28), date(1970, 3, 1), date(2024, 2, 29)],
        id="months",
    ),
    pytest.param(
        IntervalPartitioning(5, MONTHS, datetime(2000, 2, 1)),
        "TIMESTAMP",
        [datetime(2000, 1, 31), datetime(2000, 2, 1), datetime(2000, 6, 30, 23)],
        id="five months",
    ),
    pytest.param(
        IntervalPartitioning(HOUR, MICROSECONDS),
        "TIMESTAMP",
        [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2024, 5, 5, 5)],
        id="hours",
    ),
    pytest.param(
        IntervalPartitioning(HOUR, MICROSECONDS, datetime(2024, 1, 1, 0, 30, tzinfo=UTC)),
        ZONED,
        [datetime(2024, 1, 1, 1, 29, tzinfo=UTC)],
        id="half past",
    ),
    pytest.param(IntervalPartitioning(10, NUMBERS), "TINYINT", [-128, -1, 0, 9, 10, 127], id="small numbers"),
    pytest.param(
        IntervalPartitioning(10, NUMBERS, -128),
        "TINYINT",
        [-128, -119, -118, 127],
        id="small numbers from the smallest",
    ),
    pytest.param(
        IntervalPartitioning(2**61, NUMBERS, -(2**63)),
        "BIGINT",
        [-(2**63), -1, 0, 2**63 - 1],
        id="large numbers from the smallest",
    ),
    pytest.param(IntervalPartitioning(2**62, NUMBERS), "UBIGINT", [0, 2**62, 2**63, 2**64 - 1], id="unsigned"),
    pytest.param(
        IntervalPartitioning(7, NUMBERS, 2**63),
        "UBIGINT",
        [0, 2**63 - 1, 2**63, 2**64 - 1],
        id="unsigned from the middle",
    ),
]


@pytest.mark.parametrize(("every", "type_text", "values"), CASES)
def test_a_value_lies_in_its_cell(every: IntervalPartitioning, type_text: str, values: list[Any]) -> None:
    type_ = parse_type(type_text)
    for value in values:
        cells = every.cells_of(pa.array([value], type_.arrow), type_)
        if every.start is not None and value < every.start:
            assert cells == frozenset()
            continue
        (cell,) = cells
        lower, upper = every.bounds(cell, type_)
        assert lower is None or lower <= value
        assert upper is None or value < upper
        assert every.start is None or cell >= 0
    assert every.cells_of(pa.array(values, type_.arrow), type_) == frozenset().union(
        *(every.cells_of(pa.array([v], type_.arrow), type_) for v in values)
    )


def test_cells_follow_one_another_without_gaps() -> None:
    rng = random.Random(1)
    for _ in range(200):
        start = date(2000, rng.randint(1, 12), 1) if rng.random() < 0.5 else None
        every = IntervalPartitioning(rng.randint(1, 30), rng.choice([MONTHS, DAYS]), start)
        cell = rng.randint(0 if start else -50, 50)
        assert every.bounds(cell, parse_type("DATE"))[1] == every.bounds(cell + 1, parse_type("DATE"))[0]
        lower, upper = every.bounds(cell, parse_type("DATE"))
        assert every.cells_of(pa.array([lower, upper - timedelta(days=1)]), parse_type("DATE")) == {cell}
