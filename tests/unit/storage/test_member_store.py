"""Tables, relations and direct writes of one member. Loads: test_loads.py."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from secateur.errors import (
    DataError,
    DuplicateKeyError,
    TableExistsError,
    TopologyChangedError,
    UnknownColumnError,
    UnknownTableError,
)
from secateur.partitioning.pruning import KeyPrefix
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology.owner_routing import split
from secateur.storage import ChangeOperation, DataVersion, MemberStore, TableStats


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
def rows_of_orders(orders: TableDef) -> pa.Table:
    tuples = [(customer, line, f"{customer}/{line}") for customer in range(20) for line in range(3)]
    return pa.Table.from_arrays([pa.array(column) for column in zip(*tuples, strict=True)], schema=orders.arrow_schema)


@pytest.fixture
def store(orders: TableDef, rows_of_orders: pa.Table) -> MemberStore:
    """A member that hosts partitions 0 to 5 with all their rows."""
    store = MemberStore()
    store.create_table(orders, range(6))
    for partition, rows in split(rows_of_orders, orders).items():
        if partition < 6:
            store.apply(7, partition, ChangeOperation.APPEND, rows)
    return store


def customers_of(orders: TableDef, partition: int) -> list[int]:
    return [customer for customer in range(20) if orders.scheme.partition_of({"customer": customer}) == partition]


def test_relation_of_one_partition_is_the_partition(store: MemberStore, orders: TableDef) -> None:
    relation = store.relation(7, [2])
    assert relation["customer"].to_pylist() == [customer for customer in customers_of(orders, 2) for _ in range(3)]
    assert (
        relation["note"].chunk(0).buffers()[2].address
        == store.partition(7, 2).snapshot().table["note"].chunk(0).buffers()[2].address
    )


def test_relation_of_several_partitions_copies_nothing(store: MemberStore, allocated: Any) -> None:
    store.relation(7, range(6))
    store.stats()  # takes over the merges that the first reader has paid for
    before = allocated()
    relation = store.relation(7, range(6))
    assert allocated() == before
    assert relation.num_rows == sum(store.partition(7, partition).rows for partition in range(6))


def test_a_partition_named_twice_is_read_once(store: MemberStore) -> None:
    assert store.relation(7, [2, 2]).num_rows == store.relation(7, [2]).num_rows


@pytest.mark.parametrize("partitions", [[], [2], [2, 3]], ids=str)
def test_columns_in_the_order_asked_for(store: MemberStore, partitions: list[int]) -> None:
    assert store.relation(7, partitions, ["note", "CUSTOMER"]).column_names == ["note", "customer"]


@pytest.mark.parametrize("partitions", [[], [2], [2, 3]], ids=str)
def test_without_columns_the_number_of_rows_remains(store: MemberStore, partitions: list[int]) -> None:
    relation = store.relation(7, partitions, [])
    assert relation.num_rows == store.relation(7, partitions).num_rows
    assert relation.num_columns == 0


def test_key_prefix_cuts_every_partition(store: MemberStore, orders: TableDef) -> None:
    customer = customers_of(orders, 3)[0]
    everywhere = store.relation(7, range(6), ["note"], KeyPrefix((customer,)))
    assert (
        everywhere.to_pydict()
        == store.relation(7, [3], ["note"], KeyPrefix((customer,))).to_pydict()
        == {"note": [f"{customer}/{line}" for line in range(3)]}
    )
    assert store.relation(7, [3], ["note"], KeyPrefix((customer, 1))).to_pydict() == {"note": [f"{customer}/1"]}


@pytest.mark.parametrize("prefix", [(None,), (-5,), (3, None)], ids=str)
@pytest.mark.parametrize("partitions", [[2], [2, 3]], ids=str)
def test_a_prefix_that_nothing_matches(
    store: MemberStore, orders: TableDef, prefix: tuple[Any, ...], partitions: list[int]
) -> None:
    relation = store.relation(7, partitions, None, KeyPrefix(prefix))
    assert relation.num_rows == 0
    assert relation.schema == orders.arrow_schema


def test_an_empty_prefix_is_no_restriction(store: MemberStore) -> None:
    assert store.relation(7, [2], None, KeyPrefix(())).num_rows == store.relation(7, [2]).num_rows


def test_no_partition_has_no_rows_but_the_schema(store: MemberStore, orders: TableDef) -> None:
    assert store.relation(7, []).schema == orders.arrow_schema
    assert store.relation(7, []).num_rows == 0


def test_relation_sees_one_moment(store: MemberStore, orders: TableDef) -> None:
    relation = store.relation(7, range(6))
    rows = relation.num_rows
    for partition in range(6):
        store.apply(7, partition, ChangeOperation.OVERWRITE, orders.arrow_schema.empty_table())
    assert relation.num_rows == rows
    assert relation.combine_chunks().num_rows == rows
    assert store.relation(7, range(6)).num_rows == 0


def test_a_partition_that_is_elsewhere(store: MemberStore) -> None:
    with pytest.raises(
        TopologyChangedError, match="partition 6 of orders is not on this member; fetch the topology again and retry"
    ) as caught:
        store.relation(7, [2, 6])
    assert caught.value.details == {"table": "orders", "partition": 6}
    assert caught.value.retry_safe


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda store: store.relation(8, [0]), id="relation"),
        pytest.param(lambda store: store.partition(8, 0), id="partition"),
        pytest.param(lambda store: store.data_version(8), id="data_version"),
        pytest.param(lambda store: store.hosted(8), id="hosted"),
        pytest.param(lambda store: store.loads.stage("l", 8, 0, 0, None), id="stage"),
        pytest.param(lambda store: store.loads.prepare("l", 8, "append", {}), id="prepare"),
        pytest.param(lambda store: store.apply(8, 0, ChangeOperation.APPEND, None), id="write"),
    ],
)
def test_an_unknown_table(store: MemberStore, call: Any) -> None:
    with pytest.raises(UnknownTableError, match="no table with id 8; it was dropped or altered, or"):
        call(store)


def test_an_unknown_column(store: MemberStore) -> None:
    with pytest.raises(UnknownColumnError, match="table orders has no column 'price'; it has customer, line, note"):
        store.relation(7, [2], ["price"])


def test_a_key_value_of_another_type(store: MemberStore) -> None:
    with pytest.raises(DataError, match=r"orders\.customer: 'C2' \(str\) is not a value of type BIGINT"):
        store.relation(7, [2], None, KeyPrefix(("C2",)))


def test_direct_writes(store: MemberStore, orders: TableDef) -> None:
    customer = customers_of(orders, 4)[0]
    row = pa.table({"customer": [customer], "line": [9], "note": ["new"]}, schema=orders.arrow_schema)
    assert store.apply(7, 4, ChangeOperation.APPEND, row) == 1
    with pytest.raises(DuplicateKeyError, match=rf"orders: key \(customer={customer}, line=9\) is already there"):
        store.apply(7, 4, ChangeOperation.APPEND, row)
    assert store.apply(7, 4, ChangeOperation.UPSERT, row) == 1
    assert store.relation(7, [4], ["note"], KeyPrefix((customer, 9))).to_pydict() == {"note": ["new"]}
    assert store.apply(7, 4, ChangeOperation.DELETE, row) == 1
    assert store.relation(7, [4], ["note"], KeyPrefix((customer, 9))).num_rows == 0


def test_a_table_is_created_once(store: MemberStore, orders: TableDef) -> None:
    rows = store.relation(7, range(6)).num_rows
    store.create_table(orders, range(6))
    assert store.relation(7, range(6)).num_rows == rows
    with pytest.raises(TableExistsError, match="table id 7 belongs to orders; a new table needs a new id"):
        store.create_table(structs.replace(orders, name="invoices"), range(6))


def test_a_dropped_table_is_gone(store: MemberStore) -> None:
    store.drop_table(7)
    store.drop_table(7)
    with pytest.raises(UnknownTableError):
        store.relation(7, [2])
    assert store.stats() == []
    assert store.tables() == []


def test_stats_count_rows_and_bytes(store: MemberStore, orders: TableDef, make_table: Any) -> None:
    store.create_table(make_table({"k": "BIGINT"}, ["k"], table_id=3, name="empty"), [0])
    empty, filled = store.stats()
    assert empty == TableStats(3, "empty", 1, 0, 0, {}, {})
    expected = {
        partition: 3 * len(customers_of(orders, partition)) for partition in range(6) if customers_of(orders, partition)
    }
    assert (filled.name, filled.partitions, filled.rows, filled.partition_rows) == (
        "orders",
        6,
        sum(expected.values()),
        expected,
    )
    raw = store.relation(7, range(6)).nbytes
    assert raw <= filled.nbytes <= 1.3 * raw
    assert [table.name for table in store.tables()] == ["empty", "orders"]
    assert store.hosted(7) == [0, 1, 2, 3, 4, 5]


def test_data_version_grows_with_every_change(store: MemberStore, orders: TableDef) -> None:
    before = store.data_version(7)
    store.apply(7, 0, ChangeOperation.OVERWRITE, orders.arrow_schema.empty_table())
    after = store.data_version(7)
    assert after == DataVersion(before.published, before.changes + 1)
    store.apply(7, 1, ChangeOperation.DELETE, pa.table({"customer": [customers_of(orders, 1)[0]], "line": [77]}))
    assert store.data_version(7) == after
