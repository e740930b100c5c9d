"""Few rows by the leading values of their keys are those that the relation has."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from secateur.errors import DataError, TopologyChangedError
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology.owner_routing import split
from secateur.storage import ChangeOperation, MemberStore

NAMES = ("note", "line")


@pytest.fixture
def orders(make_table: Any) -> TableDef:
    """``orders(customer BIGINT, line BIGINT, note VARCHAR)`` over eight partitions by customer."""
    return make_table(
        {"customer": "BIGINT", "line": "BIGINT", "note": "VARCHAR"},
        ["customer", "line"],
        partitions=8,
        table_id=7,
        name="orders",
    )


@pytest.fixture
def store(orders: TableDef) -> MemberStore:
    tuples = [(customer, line, f"{customer}/{line}") for customer in range(20) for line in range(3)]
    rows = pa.Table.from_arrays([pa.array(column) for column in zip(*tuples, strict=True)], schema=orders.arrow_schema)
    store = MemberStore()
    store.create_table(orders, range(8))
    for partition, some in split(rows, orders).items():
        store.apply(7, partition, ChangeOperation.APPEND, some)
        store.partition(7, partition).snapshot().fold()
    return store


def found(store: MemberStore, *prefixes: tuple[Any, ...], rows_max: int = 99, partitions: Any = range(8)) -> Any:
    few = store.few_finder(7, NAMES)(list(partitions), prefixes, rows_max)
    return None if few is None else sorted(zip(*few.columns, strict=True)) if few.num_rows else few.columns


def write(store: MemberStore, orders: TableDef, customer: int, line: int, note: str) -> None:
    row = pa.Table.from_arrays([pa.array([value]) for value in (customer, line, note)], schema=orders.arrow_schema)
    store.apply(7, orders.scheme.partition_of({"customer": customer}), ChangeOperation.UPSERT, row)


@pytest.mark.parametrize(
    ("prefixes", "expected"),
    [
        pytest.param([(4,)], [("4/0", 0), ("4/1", 1), ("4/2", 2)], id="prefix"),
        pytest.param([(4, 1)], [("4/1", 1)], id="whole key"),
        pytest.param([(4, 9)], [[], []], id="no such key"),
        pytest.param([(99,)], [[], []], id="no such prefix"),
        pytest.param([(4, 1), (5, 2), (6, 9)], [("4/1", 1), ("5/2", 2)], id="several keys"),
        pytest.param([(4,), (99,), (5,)], [(f"{c}/{n}", n) for c in (4, 5) for n in range(3)], id="several prefixes"),
        pytest.param([(None,)], [[], []], id="NULL"),
        pytest.param([(4, None)], [[], []], id="NULL in a whole key"),
    ],
)
def test_rows_are_found(store: MemberStore, prefixes: list[tuple[Any, ...]], expected: Any) -> None:
    assert found(store, *prefixes) == expected


def test_recent_changes_are_seen(store: MemberStore, orders: TableDef) -> None:
    write(store, orders, 4, 1, "new")
    write(store, orders, 4, 7, "more")
    assert found(store, (4,)) == [("4/0", 0), ("4/2", 2), ("more", 7), ("new", 1)]
    assert found(store, (4, 1)) == [("new", 1)]
    assert found(store, (4, 0)) == [("4/0", 0)]
    assert found(store, (4, 7), (5, 0)) == [("5/0", 0), ("more", 7)]


@pytest.mark.parametrize("is_changed", [False, True])
def test_more_rows_than_asked_for_are_left_to_arrow(store: MemberStore, orders: TableDef, is_changed: bool) -> None:
    if is_changed:
        write(store, orders, 4, 1, "new")
    assert found(store, (4,), rows_max=3) is not None
    assert found(store, (4,), rows_max=2) is None
    assert found(store, (4, 1), (5, 1), rows_max=1) is None
    assert found(store, (4, 1), rows_max=0) is None


def test_only_the_partitions_that_are_named_are_searched(store: MemberStore, orders: TableDef) -> None:
    of_four, of_five = (orders.scheme.partition_of({"customer": customer}) for customer in (4, 5))
    assert of_four != of_five
    others = sorted(set(range(8)) - {of_four})
    assert found(store, (4,), (5, 1), partitions=others) == [("5/1", 1)]
    assert found(store, (4,), partitions=[of_five]) == [[], []]


def test_a_partition_that_is_elsewhere_is_an_error(store: MemberStore, orders: TableDef) -> None:
    partition = orders.scheme.partition_of({"customer": 4})
    store.drop_partition(7, partition)
    with pytest.raises(TopologyChangedError, match=f"partition {partition} of orders is not on this member"):
        found(store, (4,), partitions=[partition])


def test_a_value_of_another_type_is_an_error(store: MemberStore) -> None:
    with pytest.raises(DataError, match=r"orders\.customer: 'x'"):
        found(store, ("x",), partitions=[0])
