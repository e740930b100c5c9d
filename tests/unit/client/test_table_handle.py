from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from secateur.client import Connection
from secateur.errors import DataError, NullKeyError, ParameterError, UnknownColumnError


def test_what_a_table_is(cluster: Any, conn: Connection) -> None:
    table = conn.table("ORDERS")
    assert (table.name, table.partitions, table.primary_key) == ("Orders", 8, ("customer_id", "id"))
    assert table.schema.equals(cluster.tables[0].arrow_schema)
    assert table.scheme == cluster.tables[0].scheme
    assert table.definition == cluster.tables[0]
    assert repr(table) == "<Table Orders: 3 columns, 8 partitions by customer_id>"
    assert repr(conn.table("countries")) == "<Table countries: 2 columns, replicated>"


def test_the_partition_of_a_key(cluster: Any, conn: Connection) -> None:
    table = conn.table("orders")
    expected = cluster.tables[0].scheme.partition_of({"customer_id": "C2"})
    assert table.partition_of({"customer_id": "C2"}) == expected
    assert table.partition_of({"CUSTOMER_ID": np.str_("C2"), "id": 5}) == expected


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        pytest.param({}, ParameterError, "customer_id missing", id="missing"),
        pytest.param({"id": 1}, ParameterError, "customer_id missing", id="other column"),
        pytest.param({"customer_id": "a", "colour": 1}, UnknownColumnError, "no column 'colour'", id="unknown"),
        pytest.param({"customer_id": 5}, DataError, r"customer_id.*5 .*VARCHAR", id="type"),
        pytest.param({"customer_id": None}, NullKeyError, "customer_id is NOT NULL; no row has NULL there", id="null"),
        pytest.param(
            "C2",
            ParameterError,
            "takes a mapping of column names to values, such as {'customer_id': ...}, not a str",
            id="no mapping",
        ),
    ],
)
def test_a_key_that_has_no_partition(conn: Connection, key: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        conn.table("orders").partition_of(key)


def test_owners(cluster: Any, conn: Connection) -> None:
    table = conn.table("orders")
    assert [table.owner_of(p) for p in range(8)] == [cluster.ownership.primary(p) for p in range(8)]
    assert table.owner_of(np.int32(3)) == cluster.ownership.primary(3)  # type: ignore[arg-type]
    assert conn.table("countries").owner_of(0) == "m1"
    for wrong in (-1, 8):
        with pytest.raises(ParameterError, match=f"has the partitions 0 to 7; there is no {wrong}"):
            table.owner_of(wrong)
    for no_number in ("1", 1.0, None, True):
        with pytest.raises(ParameterError, match="a partition is a number"):
            table.owner_of(no_number)  # type: ignore[arg-type]
