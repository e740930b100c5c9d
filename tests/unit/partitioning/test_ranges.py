from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from secateur.partitioning.schemes import RangeComponent, RangeIndex, RangePartition
from secateur.partitioning.types import parse_type

# Per type: values in ascending order, of which those at odd positions serve as bounds.
ASCENDING: dict[str, list[Any]] = {
    "TINYINT": [-128, -1, 0, 5, 6, 126, 127],
    "UTINYINT": [0, 1, 127, 128, 200, 254, 255],
    "BIGINT": [-(2**63), -(2**62), -1, 0, 1, 2**62, 2**63 - 1],
    "UBIGINT": [0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1],
    "BOOLEAN": [False, True],
    "VARCHAR": ["", "\0", "a", "a\0", "ab", "b", "é", "日", "🌍"],
    "BLOB": [b"", b"\x00", b"\x00\x00", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\x00", b"\xff\xff"],
    "DATE": [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31)],
    "TIMESTAMP": [
        datetime(1, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999_999),
        datetime(1970, 1, 1),
        datetime(1970, 1, 1, 0, 0, 0, 1),
        datetime(9999, 1, 1),
    ],
    "TIMESTAMP WITH TIME ZONE": [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 1, 1, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(9999, 1, 1, tzinfo=UTC),
    ],
    "DECIMAL(10,2)": [
        Decimal("-99999999.99"),
        Decimal("-0.01"),
        Decimal("0.00"),
        Decimal("0.01"),
        Decimal("99999999.99"),
    ],
    "DECIMAL(38,2)": [
        Decimal(f"-{'9' * 36}.99"),
        Decimal("-184467440737095516.16"),
        Decimal("-0.01"),
        Decimal("0.00"),
        Decimal("0.01"),
        Decimal("92233720368547758.07"),
        Decimal("92233720368547758.08"),
        Decimal("184467440737095516.15"),
        Decimal("184467440737095516.16"),
        Decimal(f"{'9' * 36}.99"),
    ],
    "UUID": [
        UUID(int=0),
        UUID(int=1),
        UUID(int=2**64 - 1),
        UUID(int=2**64),
        UUID(int=2**127 - 1),
        UUID(int=2**127),
        UUID(int=2**128 - 1),
    ],
}


def component(
    columns: tuple[str, ...], bounds: list[tuple[tuple[Any, ...] | None, tuple[Any, ...] | None]]
) -> RangeComponent:
    return RangeComponent(
        columns, tuple(RangePartition(ordinal, lower, upper) for ordinal, (lower, upper) in enumerate(bounds))
    )


def brute_force(ranges: RangeComponent, key: tuple[Any, ...]) -> int:
    for position, r in enumerate(ranges.ranges):
        if (r.lower is None or r.lower <= key) and (r.upper is None or key < r.upper):
            return position
    return -1


@pytest.mark.parametrize("shape", ["covering", "closed", "gaps", "open below", "open above"])
@pytest.mark.parametrize("text", ASCENDING)
def test_one_column_of_every_type(text: str, shape: str) -> None:
    type_ = parse_type(text)
    values = ASCENDING[text]
    points: list[tuple[Any, ...]] = [(value,) for value in values[1::2]]
    match shape:
        case "covering":
            bounds = list(pairwise([None, *points, None]))
        case "closed":
            bounds = list(pairwise(points))
        case "gaps":
            bounds = list(pairwise([(values[0],), *points]))[::2]
        case "open below":
            bounds = [(None, points[0])]
        case _:
            bounds = [(points[-1], None)]
    ranges = component(("k",), bounds)
    index = RangeIndex(ranges.ranges, [type_])
    expected = [brute_force(ranges, (value,)) for value in values]
    assert [index.locate((value,)) for value in values] == expected
    assert index.locate_rows([pa.array(values, type_.arrow)]).tolist() == expected
    assert index.locate_rows([pa.array([values[0], *values], type_.arrow).slice(1)]).tolist() == expected


def test_no_ranges_hold_nothing() -> None:
    index = RangeIndex((), [parse_type("BIGINT")])
    assert index.locate((1,)) == -1
    assert index.locate_rows([pa.array([1, 2])]).tolist() == [-1, -1]


def test_one_unbounded_range_holds_everything() -> None:
    index = RangeIndex((RangePartition(0, None, None),), [parse_type("VARCHAR")])
    assert index.locate(("",)) == 0
    assert index.locate_rows([pa.array(["", "x"])]).tolist() == [0, 0]


def test_no_rows() -> None:
    for text in ASCENDING:
        type_ = parse_type(text)
        assert (
            RangeIndex((RangePartition(0, None, (ASCENDING[text][1],)),), [type_])
            .locate_rows([pa.array([], type_.arrow)])
            .tolist()
            == []
        )


def test_several_columns_compare_lexicographically() -> None:
    # The user_clicks table of the Kudu design: RANGE (user_id, target_id) SPLIT ROWS [(1000, 1000)].
    ranges = component(("user_id", "target_id"), [(None, (1000, 1000)), ((1000, 1000), None)])
    index = RangeIndex(ranges.ranges, [parse_type("BIGINT")] * 2)
    keys = [(999, 2000), (1000, 999), (1000, 1000), (1000, 1001), (1001, 0), (-1, -1)]
    assert [index.locate(key) for key in keys] == [0, 0, 1, 1, 1, 0]
    assert index.locate_rows([pa.array([k[0] for k in keys]), pa.array([k[1] for k in keys])]).tolist() == [
        0,
        0,
        1,
        1,
        1,
        0,
    ]


@pytest.mark.parametrize("seed", range(20))
def test_random_ranges_over_three_columns(seed: int) -> None:
    rng = random.Random(seed)
    names = rng.sample(list(ASCENDING), 3)
    types = [parse_type(name) for name in names]

    def key() -> tuple[Any, ...]:
        return tuple(rng.choice(ASCENDING[name]) for name in names)

    points: list[tuple[Any, ...] | None] = [*sorted({key() for _ in range(rng.randint(2, 40))})]
    if rng.random() < 0.5:
        points = [None, *points, None]
    bounds = [pair for pair in pairwise(points) if rng.random() < 0.7]
    ranges = component(tuple(names), bounds)
    index = RangeIndex(ranges.ranges, types)
    keys = [key() for _ in range(300)]
    expected = [brute_force(ranges, k) for k in keys]
    assert [index.locate(k) for k in keys] == expected
    assert (
        index.locate_rows([pa.array([k[i] for k in keys], type_.arrow) for i, type_ in enumerate(types)]).tolist()
        == expected
    )
