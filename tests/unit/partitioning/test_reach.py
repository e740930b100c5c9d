from __future__ import annotations

import itertools
from datetime import date
from typing import Any

import pytest

from secateur.partitioning.pruning import NOTHING, Domain, Span, combination_limit, points
from secateur.partitioning.pruning.select_partitions import select_partitions
from secateur.partitioning.schemes import (
    HashComponent,
    PartitionScheme,
    RangeSpec,
    build_scheme,
    catch_all,
    single_value,
    split_at,
)
from secateur.partitioning.types import parse_type

TYPES = {"a": parse_type("INTEGER"), "b": parse_type("INTEGER"), "c": parse_type("INTEGER")}


def scheme(
    hashes: list[HashComponent] | None = None, columns: tuple[str, ...] = (), ranges: tuple[RangeSpec, ...] = ()
) -> PartitionScheme:
    return build_scheme(
        hashes=hashes or [], range_columns=columns, ranges=ranges, types=TYPES, primary_key=("a", "b", "c"), table="t"
    )


def ids(of: PartitionScheme, **domains: Domain) -> list[int]:
    return list(select_partitions(of, domains, combination_limit(of)).ids)


HASHED = scheme([HashComponent(("a", "b"), 5), HashComponent(("c",), 3)])
METRICS = scheme([HashComponent(("a", "b"), 2)], ("c",), split_at([(100,)]))
CLICKS = scheme([], ("a", "b"), split_at([(1000, 1000)]))


def test_a_component_prunes_by_itself() -> None:
    bucket = HASHED.partition_of({"a": 1, "b": 2, "c": 7}) % 3
    assert ids(HASHED, c=points([7])) == [first * 3 + bucket for first in range(5)]


def test_half_of_a_component_prunes_nothing() -> None:
    assert ids(HASHED, a=points([1])) == list(range(15))


def test_all_components_bound_keep_one_partition() -> None:
    assert ids(HASHED, a=points([1]), b=points([2]), c=points([3])) == [HASHED.partition_of({"a": 1, "b": 2, "c": 3})]


def test_a_list_is_the_product_of_its_columns() -> None:
    expected = {HASHED.partition_of({"a": a, "b": b, "c": c}) for a, b, c in itertools.product([1, 2], [3, 4, 5], [6])}
    assert ids(HASHED, a=points([1, 2]), b=points([3, 4, 5]), c=points([6])) == sorted(expected)


def test_a_closed_range_of_integers_is_a_list() -> None:
    assert ids(HASHED, c=Domain(spans=(Span(3, 5, upper_closed=False),))) == ids(HASHED, c=points([3, 4]))


def test_nothing_reaches_nothing() -> None:
    assert ids(HASHED, a=NOTHING) == []


class TestKuduDesignDocument:
    """The sample schemas of "Scan Optimization & Partition Pruning"."""

    def test_range_pruning_drops_the_later_tablets(self) -> None:
        # time < 500 of the document, here below the only split: tablets B and D go
        assert ids(METRICS, c=Domain(spans=(Span(upper=50, upper_closed=False),))) == [0, 1]

    def test_hash_bucket_pruning_needs_all_columns_of_the_component(self) -> None:
        bucket = METRICS.partition_of({"a": 1, "b": 2, "c": 0})
        assert ids(METRICS, a=points([1]), b=points([2])) == [bucket, 2 + bucket]
        assert ids(METRICS, a=points([1])) == [0, 1, 2, 3]

    def test_a_prefix_of_the_range_columns_prunes(self) -> None:
        assert ids(CLICKS, a=points([500])) == [0]
        assert ids(CLICKS, a=points([1001])) == [1]

    def test_the_column_behind_an_equal_prefix_decides(self) -> None:
        assert ids(CLICKS, a=points([1000])) == [0, 1]
        assert ids(CLICKS, a=points([1000]), b=Domain(spans=(Span(upper=1000, upper_closed=False),))) == [0]
        assert ids(CLICKS, a=points([1000]), b=Domain(spans=(Span(lower=1000),))) == [1]


def test_kudu_2173_a_prefix_equal_to_the_upper_bound_may_lie_inside() -> None:
    assert ids(CLICKS, a=Domain(spans=(Span(lower=1000),))) == [0, 1]
    assert ids(CLICKS, a=Domain(spans=(Span(lower=1000, lower_closed=False),))) == [1]


def test_kudu_3564_a_range_is_pruned_with_its_own_hash_components() -> None:
    own = RangeSpec((10,), (20,), hashes=(HashComponent(("a",), 7),))
    table = scheme([HashComponent(("a",), 3)], ("c",), (RangeSpec((0,), (10,)), own))
    values = [1, 2, 3, 4]
    expected = {table.partition_of({"a": a, "b": 0, "c": c}) for a in values for c in (5, 15)}
    assert ids(table, a=points(values), c=points([5, 15])) == sorted(expected)


@pytest.mark.parametrize("largest", [2**31 - 1], ids=["INTEGER"])
def test_kudu_1766_equality_at_the_largest_value_does_not_overflow(largest: int) -> None:
    table = scheme([], ("a",), split_at([(0,), (largest,)]))
    assert ids(table, a=points([largest])) == [2]
    assert ids(table, a=Domain(spans=(Span(lower=largest),))) == [2]
    assert ids(table, a=Domain(spans=(Span(lower=largest, lower_closed=False),))) == []


def test_gaps_are_skipped_inside_a_list_and_a_range() -> None:
    table = scheme([], ("a",), (RangeSpec((0,), (10,)), single_value((15,)), RangeSpec((20,), None)))
    assert ids(table, a=points([5, 12, 25])) == [0, 2]
    assert ids(table, a=Domain(spans=(Span(10, 19),))) == [1]
    assert ids(table, a=Domain(spans=(Span(16, 19),))) == []


def test_two_spans_that_only_touch_a_range_from_outside_do_not_reach_it() -> None:
    table = scheme([], ("a",), (RangeSpec((10,), (20,)),))
    assert ids(table, a=Domain(spans=(Span(upper=10, upper_closed=False), Span(lower=20)))) == []


def test_a_column_of_both_components_pairs_its_values() -> None:
    table = scheme([HashComponent(("c",), 4)], ("c",), split_at([(10,)]))
    values = [1, 2, 11, 12]
    assert ids(table, c=points(values)) == sorted({table.partition_of({"a": 0, "b": 0, "c": c}) for c in values})


def test_values_behind_the_first_range_column_are_told_apart_in_a_hash() -> None:
    table = scheme([HashComponent(("b",), 5)], ("a", "b"), split_at([(3, 10), (3, 20), (7, 0)]))
    for a_values, b_values in (([3], [5, 12, 15, 22]), ([3, 4, 7], [-1, 9, 30]), ([2, 9], [4, 11])):
        expected = {table.partition_of({"a": a, "b": b, "c": 0}) for a in a_values for b in b_values}
        assert ids(table, a=points(a_values), b=points(b_values)) == sorted(expected)
    some = Domain(spans=(Span(3, 3 + 2),))
    expected = {table.partition_of({"a": a, "b": b, "c": 0}) for a in (3, 4, 5) for b in (11, 12, 13)}
    assert ids(table, a=some, b=Domain(spans=(Span(11, 13),))) == sorted(expected)


def test_a_range_limits_a_hashed_column_that_no_predicate_names() -> None:
    types: dict[str, Any] = {"f": parse_type("BOOLEAN"), "a": parse_type("INTEGER")}
    table = build_scheme(
        hashes=[HashComponent(("f",), 4)],
        range_columns=("f", "a"),
        ranges=split_at([(False, 5)]),
        types=types,
        primary_key=("f", "a"),
        table="t",
    )
    expected = {table.partition_of({"f": flag, "a": 4}) for flag in (False, True)}
    below = Domain(spans=(Span(upper=5, upper_closed=False),))
    assert list(select_partitions(table, {"a": below}, 64).ids) == sorted(expected)


def test_no_value_between_two_bounds_is_no_partition() -> None:
    assert ids(HASHED, a=Domain(spans=(Span(1, 2, lower_closed=False, upper_closed=False),))) == []


def test_too_many_combinations_keep_everything_and_say_so() -> None:
    limit = combination_limit(HASHED)
    reached = select_partitions(HASHED, {"c": points(range(limit + 1))}, limit)
    assert list(reached.ids) == list(range(15))
    assert [(overflow.component.columns, overflow.combinations, overflow.limit) for overflow in reached.overflows] == [
        (("c",), limit + 1, limit)
    ]


def test_kudu_3455_a_product_is_not_built_beyond_its_limit() -> None:
    many = points(range(100_000))
    assert list(select_partitions(HASHED, {"a": many, "b": many, "c": many}, combination_limit(HASHED)).ids) == list(
        range(15)
    )


def test_texts_of_a_range_column_compare_by_bytes() -> None:
    types: dict[str, Any] = {"k": parse_type("VARCHAR")}
    table = build_scheme(
        range_columns=("k",), ranges=split_at([("b",), ("é",)]), types=types, primary_key=("k",), table="t"
    )
    assert list(select_partitions(table, {"k": points(["B"])}, 10).ids) == [0]
    assert list(select_partitions(table, {"k": Domain(spans=(Span(lower="c", upper="z"),))}, 10).ids) == [1]
    assert list(select_partitions(table, {"k": points(["日本"])}, 10).ids) == [2]


def test_dates_of_a_hash_column_are_enumerated() -> None:
    types: dict[str, Any] = {"d": parse_type("DATE")}
    table = build_scheme(hashes=[HashComponent(("d",), 50)], types=types, primary_key=("d",), table="t")
    days = [date(2024, 1, 1), date(2024, 1, 2)]
    assert list(select_partitions(table, {"d": Domain(spans=(Span(*days),))}, 400).ids) == sorted(
        {table.partition_of({"d": day}) for day in days}
    )


def test_a_catch_all_is_reached_through_any_gap_and_only_there() -> None:
    of = scheme(
        [],
        ("a",),
        (
            RangeSpec((0,), (10,)),
            RangeSpec((10,), (20,)),
            RangeSpec((30,), (40,)),
            catch_all(hashes=(HashComponent(("b",), 2),)),
        ),
    )
    assert ids(of, a=points([5, 35])) == [0, 2]
    assert ids(of, a=points([25, 99, -1])) == [3, 4]
    assert ids(of, a=Domain(spans=(Span(5, 19),))) == [0, 1]
    assert ids(of, a=Domain(spans=(Span(5, 20),))) == [0, 1, 3, 4]
    assert ids(of, a=Domain(spans=(Span(None, 0, upper_closed=False),))) == [3, 4]
    assert len(ids(of, a=Domain(spans=(Span(15, None),)), b=points([7]))) == 3
