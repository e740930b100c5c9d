"""The rows of several owners as one answer, merged by the client."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from secateur.client.execution import merge_rows
from secateur.protocol import MergedColumn, MergedOrder, MergeFunction, RowMerge
from secateur.wire import ShortTable

ROWS = RowMerge((MergedColumn(0, None, "BIGINT"), MergedColumn(1, None, "VARCHAR")), False, (1, 0), (), (), None, 0, 64)
TOTALS = RowMerge(
    (
        MergedColumn(0, MergeFunction.SUM, "HUGEINT"),
        MergedColumn(1, MergeFunction.MIN, "VARCHAR"),
        MergedColumn(2, MergeFunction.MAX, "VARCHAR"),
    ),
    True,
    (0, 1, 2),
    (0,),
    (),
    None,
    0,
    64,
)
GROUPS = RowMerge(
    (MergedColumn(0, None, "VARCHAR"), MergedColumn(1, MergeFunction.SUM, "HUGEINT")),
    True,
    (0, 1),
    (),
    (MergedOrder(0, False, False),),
    None,
    0,
    64,
)


def short(*rows: tuple[Any, ...], width: int = 2) -> ShortTable:
    return ShortTable([list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)], len(rows))


def merged(merge: RowMerge, *parts: ShortTable) -> list[tuple[Any, ...]] | None:
    found = merge_rows(merge, parts)
    if found is None:
        return None
    assert isinstance(found, ShortTable)
    rows = list(zip(*found.columns, strict=True))
    assert len(rows) == found.num_rows
    return rows


def test_rows_follow_each_other_in_the_columns_of_the_answer() -> None:
    found = merged(ROWS, short((1, "a"), (2, None)), short(), short((3, "c")))
    assert found == [("a", 1), (None, 2), ("c", 3)]
    assert merged(ROWS, short(), short()) == []


def test_rows_that_came_as_arrow_follow_plain_ones() -> None:
    many = pa.table({"k": pa.array([2, 3], pa.int64()), "s": ["b", None]})
    found = merge_rows(replace(ROWS, limit=3, offset=1), [short((1, "a")), many])
    assert isinstance(found, pa.Table)
    assert [list(column) for column in found.to_pydict().values()] == [["b", None], [2, 3]]


def test_few_rows_that_came_as_arrow_are_grouped_with_plain_ones_and_many_are_not() -> None:
    few = pa.table({"s": ["a", "b"], "n": pa.array([2, 3], pa.decimal128(38, 0))})
    found = merge_rows(GROUPS, [short(("a", 1)), few])
    assert isinstance(found, ShortTable)
    assert list(found.columns) == [["a", "b"], [3, 3]]
    assert [type(total) for total in found.columns[1]] == [int, int]
    assert merge_rows(GROUPS, [short(("a", 1)), pa.concat_tables([few] * 500)]) is None


def test_values_that_python_has_no_object_for_are_left_to_a_member() -> None:
    merge = RowMerge((MergedColumn(0, None, "DATE"),), True, (0,), (), (), None, 0, 64)
    days = pa.table({"d": pa.array([10_000_000], pa.int32()).cast(pa.date32())})
    assert merge_rows(merge, [days, short((None,))]) is None


@pytest.mark.parametrize(
    ("descending", "nulls_first", "expected"),
    [
        (False, False, [1, 2, 3, None]),
        (False, True, [None, 1, 2, 3]),
        (True, False, [3, 2, 1, None]),
        (True, True, [None, 3, 2, 1]),
    ],
)
def test_rows_are_ordered_with_their_nulls(descending: bool, nulls_first: bool, expected: list[int | None]) -> None:
    merge = replace(ROWS, order=(MergedOrder(0, descending, nulls_first),))
    found = merged(merge, short((2, "b"), (None, "n")), short((3, "c"), (1, "a")))
    assert found is not None
    assert [number for _, number in found] == expected
    limited = merged(replace(merge, limit=2, offset=1), short((2, "b"), (None, "n")), short((3, "c"), (1, "a")))
    assert limited is not None
    assert [number for _, number in limited] == expected[1:3]


def test_the_first_term_of_an_order_counts_most() -> None:
    merge = replace(ROWS, order=(MergedOrder(1, False, False), MergedOrder(0, True, False)))
    assert merged(merge, short((1, "b"), (5, "a")), short((2, "b"), (7, "a"))) == [
        ("a", 7),
        ("a", 5),
        ("b", 2),
        ("b", 1),
    ]


def test_totals_skip_nulls_and_counts_are_never_null() -> None:
    assert merged(TOTALS, short((2, "b", "b")), short((0, None, None)), short((1, "a", "a"))) == [(3, "a", "b")]
    assert merged(TOTALS, short((None, None, None)), short((None, None, None))) == [(0, None, None)]


def test_groups_of_all_owners_meet_and_null_is_one_of_them() -> None:
    found = merged(GROUPS, short(("b", 1), (None, 2)), short((None, 3), ("a", None)), short(("b", None)))
    assert found == [("a", None), ("b", 1), (None, 5)]


def test_distinct_rows_come_once() -> None:
    merge = replace(ROWS, is_grouped=True, order=(MergedOrder(0, False, False),))
    assert merged(merge, short((1, "a"), (2, None)), short((2, None), (1, "b"), (1, "a"))) == [
        ("a", 1),
        ("b", 1),
        (None, 2),
    ]


@pytest.mark.parametrize(
    ("type_", "one", "other", "expected"),
    [
        ("HUGEINT", 2**127 - 2, 1, 2**127 - 1),
        ("HUGEINT", 2**127 - 1, 1, None),
        ("HUGEINT", -(2**127) + 1, -2, None),
        ("DECIMAL(38,2)", Decimal(10**36 - 2), Decimal("0.01"), Decimal(f"{10**36 - 2}.01")),
        ("DECIMAL(38,2)", Decimal(10**36 - 1), Decimal(1), None),
        ("DOUBLE", 0.25, 0.5, 0.75),
        ("DOUBLE", float("inf"), 1.0, None),
        ("DOUBLE", 1e308, 1e308, None),
    ],
)
def test_a_sum_is_exact_or_left_to_a_member(type_: str, one: Any, other: Any, expected: Any) -> None:
    merge = RowMerge((MergedColumn(0, MergeFunction.SUM, type_),), True, (0,), (), (), None, 0, 64)
    found = merged(merge, short((one,)), short((other,)))
    assert found == (None if expected is None else [(expected,)])
