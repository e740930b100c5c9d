from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from secateur.errors import LimitExceededError, NoRangeError, ProgrammingError, SchemeError
from secateur.partitioning.schemes import (
    AddRange,
    DropRange,
    HashComponent,
    IntervalPartitioning,
    IntervalUnit,
    PartitionScheme,
    RangeSpec,
    alter_ranges,
    build_scheme,
    catch_all,
    with_cells,
)
from secateur.partitioning.types import parse_type
from secateur.protocol import decode, encode

TYPES = {
    name: parse_type(text)
    for name, text in {"n": "INTEGER", "day": "DATE", "at": "TIMESTAMP", "name": "VARCHAR"}.items()
}
TENS = IntervalPartitioning(10, IntervalUnit.NUMBER)


def build(
    every: IntervalPartitioning | None, *ranges: RangeSpec, column: str = "n", hashes: tuple[HashComponent, ...] = ()
) -> PartitionScheme:
    return build_scheme(
        hashes=hashes,
        range_columns=[column],
        ranges=ranges,
        every=every,
        types=TYPES,
        primary_key=list(TYPES),
        table="t",
    )


def bounds(scheme: PartitionScheme) -> list[tuple[int, Any, Any]]:
    return [(r.ordinal, r.lower and r.lower[0], r.upper and r.upper[0]) for r in scheme.ranges()]


def missing(scheme: PartitionScheme, *values: int) -> frozenset[int]:
    return scheme.missing_cells(pa.table({"n": pa.array(values, pa.int32())}))


def test_a_table_may_begin_without_a_range() -> None:
    scheme = build(TENS)
    assert (scheme.partition_count, scheme.ranges(), scheme.has_gaps) == (0, (), True)
    assert missing(scheme, 5, 7, 12, -1) == {0, 1, -1}
    made = with_cells(scheme, missing(scheme, 5, 12, -1), table="t")
    assert bounds(made) == [(0, -10, 0), (1, 0, 10), (2, 10, 20)]
    assert missing(made, 5, 7, 12, -1) == frozenset()
    assert missing(made, 5, 20) == {2}


def test_more_ranges_make_another_scheme_than_the_one_that_the_reference_names() -> None:
    scheme = with_cells(build(TENS), [0, 1], table="t").referred("test_ranges_on_demand/1")
    more = with_cells(scheme, [2], table="t")
    assert more.reference is None
    assert bounds(more) == [(0, 0, 10), (1, 10, 20), (2, 20, 30)]


def test_what_is_there_is_not_made_again_and_nothing_moves() -> None:
    scheme = with_cells(build(TENS, hashes=(HashComponent(("name",), 4),)), [3], table="t")
    assert with_cells(scheme, [3], table="t") is scheme
    more = with_cells(scheme, [5, 3, 4], table="t")
    assert bounds(more) == [(0, 30, 40), (1, 40, 50), (2, 50, 60)]
    assert more.block(0) == scheme.block(0)


def test_a_cell_leaves_to_other_ranges_what_they_hold() -> None:
    scheme = build(TENS, RangeSpec((3,), (5,)), RangeSpec((8,), (23,)), RangeSpec((25,), (26,)))
    assert bounds(with_cells(scheme, [0, 1, 2], table="t")) == [
        (3, 0, 3),
        (0, 3, 5),
        (4, 5, 8),
        (1, 8, 23),
        (5, 23, 25),
        (2, 25, 26),
        (6, 26, 30),
    ]
    assert with_cells(build(TENS, RangeSpec(None, None)), [0, 1], table="t").partition_count == 1


def test_a_dropped_range_is_made_again_under_a_new_id() -> None:
    scheme = with_cells(build(TENS), [0, 1], table="t")
    dropped = alter_ranges(scheme, [DropRange(RangeSpec((0,), (10,)))], types=TYPES, primary_key=list(TYPES), table="t")
    assert missing(dropped, 5) == {0}
    assert bounds(with_cells(dropped, [0], table="t")) == [(2, 0, 10), (1, 10, 20)]


def test_the_catch_all_has_what_is_before_the_start_and_nothing_else() -> None:
    scheme = build(IntervalPartitioning(10, IntervalUnit.NUMBER, 100), RangeSpec((50,), (60,)), catch_all("old"))
    assert bounds(scheme) == [(1, None, 50), (0, 50, 60), (1, 60, 100)]
    assert scheme.has_gaps
    assert missing(scheme, 0, 55, 99, 100, 119) == {0, 1}
    with pytest.raises(NoRangeError, match="EVERY makes one when a row of 100 or later is written"):
        scheme.partition_of({"n": 100})
    made = with_cells(scheme, [0], table="t")
    assert bounds(made) == [(1, None, 50), (0, 50, 60), (1, 60, 100), (2, 100, 110)]
    assert with_cells(scheme, [-1], table="t") is scheme


def test_rows_before_the_start_are_refused_without_a_catch_all() -> None:
    scheme = build(IntervalPartitioning(10, IntervalUnit.NUMBER, 100))
    assert missing(scheme, 99) == frozenset()
    with pytest.raises(NoRangeError):
        scheme.partition_of({"n": 99})


def test_nothing_is_missing_without_every() -> None:
    assert missing(build(None, RangeSpec((0,), (10,))), 99) == frozenset()
    with pytest.raises(ProgrammingError, match="makes no ranges on demand"):
        with_cells(build(None, RangeSpec((0,), (10,))), [1], table="t")


def test_nulls_and_many_chunks() -> None:
    chunks = pa.chunked_array([pa.array([1, None], pa.int32()), pa.array([], pa.int32()), pa.array([25], pa.int32())])
    assert build(TENS).missing_cells(pa.table({"N": chunks})) == {0, 2}


def test_bounds_on_how_much_is_made() -> None:
    with pytest.raises(LimitExceededError, match="the rows need 10,001 new ranges at once, at most 10,000"):
        with_cells(build(TENS), range(10_001), table="t")
    with pytest.raises(LimitExceededError, match="would have 1,200,000 partitions, dropped ranges included"):
        with_cells(build(TENS, hashes=(HashComponent(("name",), 600_000),)), [0, 1], table="t")


def test_a_grid_survives_the_wire_and_tells_structures_apart_where_it_counts() -> None:
    for every in (TENS, IntervalPartitioning(1, IntervalUnit.MONTH, date(2024, 1, 1))):
        scheme = build(every, column="n" if every is TENS else "day")
        assert decode(encode(scheme), PartitionScheme) == scheme
    early, late = (build(IntervalPartitioning(10, IntervalUnit.NUMBER, start), catch_all()) for start in (0, 100))
    assert early.structure() != late.structure()


@pytest.mark.parametrize(
    ("every", "column", "ranges", "message"),
    [
        pytest.param(
            IntervalPartitioning(1, IntervalUnit.DAY),
            "n",
            [],
            "does not fit column n of type INTEGER: write a number",
            id="days of a number",
        ),
        pytest.param(
            IntervalPartitioning(1, IntervalUnit.NUMBER),
            "day",
            [],
            "does not fit column day of type DATE: write days or months",
            id="a number of days",
        ),
        pytest.param(
            IntervalPartitioning(1, IntervalUnit.MICROSECOND),
            "day",
            [],
            "does not fit column day",
            id="hours of a date",
        ),
        pytest.param(
            IntervalPartitioning(1, IntervalUnit.NUMBER),
            "at",
            [],
            "of type TIMESTAMP: write an interval",
            id="a number of a timestamp",
        ),
        pytest.param(
            IntervalPartitioning(1, IntervalUnit.NUMBER),
            "name",
            [],
            "ranges are made of integers, dates and timestamps",
            id="text",
        ),
        pytest.param(
            IntervalPartitioning(0, IntervalUnit.NUMBER), "n", [], "a range has to have a width of 1 to", id="no width"
        ),
        pytest.param(
            IntervalPartitioning(10**9, IntervalUnit.DAY),
            "at",
            [],
            "a range has to have a width of 1 to 53375995",
            id="too wide",
        ),
        pytest.param(
            IntervalPartitioning(1, IntervalUnit.MONTH, date(2024, 1, 31)),
            "day",
            [],
            "STARTING has to be the beginning of a month, not 2024-01-31",
            id="31 January",
        ),
        pytest.param(
            IntervalPartitioning(1, IntervalUnit.MONTH, "2024-01-01 01:00"),
            "at",
            [],
            "the beginning of a month",
            id="an hour into January",
        ),
        pytest.param(
            IntervalPartitioning(1, IntervalUnit.NUMBER, "x"),
            "n",
            [],
            "'x' .* does not fit INTEGER",
            id="start of another type",
        ),
        pytest.param(
            IntervalPartitioning(1, IntervalUnit.NUMBER),
            "n",
            [catch_all()],
            "a DEFAULT PARTITION would stay empty; write STARTING",
            id="nothing left",
        ),
    ],
)
def test_refused(every: IntervalPartitioning, column: str, ranges: list[RangeSpec], message: str) -> None:
    with pytest.raises(SchemeError, match=message):
        build(every, *ranges, column=column)


def test_refused_on_several_columns_and_later() -> None:
    with pytest.raises(SchemeError, match="EVERY makes ranges of one column; the range component has n, day"):
        build_scheme(range_columns=["n", "day"], every=TENS, types=TYPES, primary_key=list(TYPES), table="t")
    with pytest.raises(SchemeError, match="a DEFAULT PARTITION would stay empty"):
        alter_ranges(build(TENS), [AddRange(catch_all())], types=TYPES, primary_key=list(TYPES), table="t")
