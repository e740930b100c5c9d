"""Each partition is searched for the ranges that can be in it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from secateur.engine_limits import EngineLimits
from secateur.partitioning.pruning import KeyBoundary, KeyRange, KeyRanges, unite_ranges
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology.owner_routing import split
from secateur.storage import ChangeOperation, KeyWindows, MemberStore, TableLayout


@pytest.fixture
def orders(make_table: Any) -> TableDef:
    """``orders(customer BIGINT, line BIGINT)`` over eight partitions by customer."""
    described: TableDef = make_table(
        {"customer": "BIGINT", "line": "BIGINT"}, ["customer", "line"], partitions=8, table_id=7, name="orders"
    )
    return described


def keys(*prefixes: tuple[Any, ...]) -> KeyRanges:
    return unite_ranges(map(KeyRange.of_prefix, prefixes))


def test_a_range_of_one_customer_goes_to_its_partition(orders: TableDef) -> None:
    windows = KeyWindows.of(TableLayout.of(orders), keys((1,), (2, 5), (3,)))
    partition_of = {customer: orders.scheme.partition_of({"customer": customer}) for customer in (1, 2, 3)}
    for number in range(8):
        expected = [
            (customer, 5) if customer == 2 else (customer,)
            for customer, partition in partition_of.items()
            if partition == number
        ]
        assert [window.lower for window in windows.of_partition(number)] == expected


def test_a_range_of_several_customers_goes_everywhere(orders: TableDef) -> None:
    wide = KeyRange(KeyBoundary((5,), after=True), KeyBoundary((9, 1), after=False))
    windows = KeyWindows.of(TableLayout.of(orders), unite_ranges([KeyRange.of_prefix((1,)), wide]))
    home = orders.scheme.partition_of({"customer": 1})
    assert [window.lower for window in windows.of_partition(home)] == [(1,), (5,)]
    assert [window.lower for window in windows.of_partition((home + 1) % 8)] == [(5,)]


@pytest.mark.parametrize("found", [keys((1,)), keys()], ids=["one", "none"])
def test_one_range_is_not_dealt(orders: TableDef, found: KeyRanges) -> None:
    windows = KeyWindows.of(TableLayout.of(orders), found)
    assert [len(windows.of_partition(number)) for number in range(8)] == [len(found.ranges)] * 8


@pytest.fixture
def store(orders: TableDef) -> MemberStore:
    """All partitions, 40 customers with 3 lines."""
    store = MemberStore(limits=EngineLimits(rows_per_search=0))
    store.create_table(orders, range(8))
    rows = pa.Table.from_arrays(
        [pa.array([n // 3 for n in range(120)]), pa.array([n % 3 for n in range(120)])], schema=orders.arrow_schema
    )
    for partition, part in split(rows, orders).items():
        store.apply(7, partition, ChangeOperation.APPEND, part)
    return store


def test_every_partition_gives_the_rows_of_its_keys(store: MemberStore) -> None:
    found = store.relation(7, range(8), None, keys(*((customer, 1) for customer in (3, 7, 11, 12, 30, 99))))
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [(3, 1), (7, 1), (11, 1), (12, 1), (30, 1)]


@pytest.mark.parametrize(
    ("rows_per_search", "expected"), [(1, [3, 7]), (512, [3, 4, 5, 6, 7])], ids=["searches pay", "one search pays"]
)
def test_where_searches_do_not_pay_one_is_made(make_table: Any, rows_per_search: int, expected: list[int]) -> None:
    table = make_table({"a": "BIGINT"}, ["a"])
    store = MemberStore(limits=EngineLimits(rows_per_search=rows_per_search))
    store.create_table(table, [0])
    store.apply(1, 0, ChangeOperation.APPEND, pa.Table.from_arrays([pa.array(range(100))], schema=table.arrow_schema))
    assert store.relation(1, [0], None, keys((3,), (7,), (-5,)))["a"].to_pylist()[-len(expected) :] == expected


def test_no_range_is_no_row(store: MemberStore, orders: TableDef) -> None:
    assert store.relation(7, range(8), None, keys()).schema == orders.arrow_schema
    assert store.relation(7, range(8), ["line"], keys()).num_rows == 0
    assert store.relation(7, range(8), [], keys((3,))).num_rows == 3
