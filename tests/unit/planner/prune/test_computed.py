"""Expressions of parameters in predicates: folded when the parameters are bound."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.partitioning.pruning import PartitionTree
from secateur.protocol import decode, encode


@pytest.fixture
def keyed(context: Any) -> Any:
    context.create(
        "CREATE TABLE days (day DATE, n INTEGER, PRIMARY KEY (day, n)) PARTITION BY HASH (day) PARTITIONS 97"
    )
    context.create("CREATE TABLE numbers (n BIGINT PRIMARY KEY) PARTITION BY HASH (n) PARTITIONS 97")
    return context


def tree_of(context: Any, sql: str, params: list[Any]) -> PartitionTree:
    """As a thin client has it: from plain data."""
    return decode(encode(context.select(sql, params).plan.scans[0].tree), PartitionTree)


def test_null_matches_nothing(keyed: Any) -> None:
    assert tree_of(keyed, "SELECT * FROM numbers WHERE n = ? + 1", [4]).bind([None]).is_empty
    assert tree_of(keyed, "SELECT * FROM numbers WHERE n = nullif(?, 0)", [4]).bind([0]).is_empty


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        pytest.param("SELECT * FROM orders WHERE customer_id = upper(?)", "straße", id="not ASCII"),
        pytest.param("SELECT * FROM orders WHERE customer_id = CAST(? AS VARCHAR)", 1.5, id="a DOUBLE as text"),
        pytest.param("SELECT * FROM days WHERE day = CAST(? AS DATE)", "2024-2-9", id="a date in another spelling"),
        pytest.param("SELECT * FROM numbers WHERE n = ? * 3", 2**31 - 1, id="an overflow"),
        pytest.param("SELECT * FROM numbers WHERE n = ? + (random() * 5)::INTEGER", 5, id="volatile"),
        pytest.param(
            "SELECT * FROM numbers WHERE n = CAST(? AS SMALLINT) * 32767",
            2,
            id="a width of its own, in which the product overflows",
        ),
        pytest.param(
            "SELECT * FROM numbers WHERE n = coalesce(CAST(? AS UINTEGER), 1) - 7",
            5,
            id="a difference below an unsigned type",
        ),
    ],
)
def test_what_is_not_certain_keeps_everything(keyed: Any, sql: str, value: Any) -> None:
    usable = {str: "C2", int: 5, float: 5}[type(value)]
    tree = tree_of(keyed, sql, [usable] if "day" not in sql else ["2024-01"])
    assert tree.bind([value]).is_all


def test_the_text_form(keyed: Any) -> None:
    (tree,) = keyed.trees(
        "SELECT * FROM days WHERE day IN (CAST(? AS DATE) - INTERVAL 1 DAY, make_date(?, 2, 1))", ["2024-01-01", 2024]
    )
    assert tree == "days: (CAST($1 AS DATE) - INTERVAL '1 day' | make_date($2, 2, 1))"
    (tree,) = keyed.trees("SELECT * FROM orders WHERE customer_id = upper(?) || -CAST(? AS INTEGER)", ["c", 1])
    assert tree == "orders: (upper($1) || CAST(-$2 AS VARCHAR))"
