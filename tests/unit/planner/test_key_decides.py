"""When a search in the sorted partition leaves nothing for WHERE to do."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.sql import SelectPlan
from secateur.wire import pack, unpack


def plan_of(context: Any, where: str, params: list[Any]) -> SelectPlan:
    """A plan as a member reads it."""
    return SelectPlan.from_wire(
        unpack(pack(context.select(f"SELECT priority FROM orders WHERE {where}", params).plan.to_wire()))
    )


@pytest.mark.parametrize(
    ("where", "params"),
    [
        ("customer_id = ?", ["C2"]),
        ("customer_id = ? AND id = ?", ["C2", 7]),
        ("id = 7 AND 'C2' = customer_id", []),
        ("(customer_id = $1) AND id = $2", ["C2", 7]),
        ("customer_id = ? AND id > 3", ["C2"]),
        ("customer_id = ? AND id BETWEEN ? AND ?", ["C2", 3, 5]),
        ("customer_id = ? AND id >= ? AND 5 > id", ["C2", 3]),
        ("customer_id > ?", ["C2"]),
        ("customer_id >= 'C2' AND customer_id < 'C3'", []),
    ],
)
def test_equalities_on_a_prefix_and_one_span_decide(context: Any, where: str, params: list[Any]) -> None:
    plan = plan_of(context, where, params)
    assert plan.scans[0].keys.decides_for(params)
    assert plan.scans[0].keys.decides
    assert plan.searched is not None
    assert plan.searched.arrow is not None
    assert plan.searched.arrow.where is None
    assert plan.local.arrow is not None
    assert plan.local.arrow.where is not None


@pytest.mark.parametrize(
    ("where", "params"),
    [
        ("customer_id = ? AND priority = 'high'", ["C2"]),
        ("customer_id = ? AND customer_id = ?", ["C2", "C3"]),
        ("customer_id = ? AND id > ? AND id > 3", ["C2", 3]),
        ("customer_id = ? AND id > ? AND id BETWEEN 1 AND 9", ["C2", 3]),
        ("customer_id = ? AND NOT id > 3", ["C2"]),
        ("customer_id = ? AND id > 3 AND amount > 3", ["C2"]),
        ("customer_id = ? AND id > amount", ["C2"]),
        ("customer_id > ? AND id > 3", ["C2"]),
        ("customer_id IN (?, 'C1')", ["C2"]),
        ("customer_id = ? AND id + 1 > 3", ["C2"]),
        ("customer_id = ? OR id = 3", ["C2"]),
        ("NOT customer_id = ?", ["C2"]),
        ("id = 3", []),
        ("customer_id = ? AND true", ["C2"]),
        ("customer_id = priority AND id = 3", []),
        ("true", []),
    ],
)
def test_anything_more_is_left_to_where(context: Any, where: str, params: list[Any]) -> None:
    plan = plan_of(context, where, params)
    assert not plan.scans[0].keys.decides
    assert plan.searched is None


@pytest.mark.parametrize(
    "params",
    [["C2", 7.0], ["C2", None], [b"C2", 7], ["C2", 2**70], ["C2", True]],
    ids=["float", "null", "bytes", "huge", "bool"],
)
def test_a_value_that_is_no_key_as_it_stands_is_left_to_where(context: Any, params: list[Any]) -> None:
    assert not plan_of(context, "customer_id = ? AND id = ?", params).scans[0].keys.decides_for(params)


def test_a_column_behind_a_gap_in_the_key_is_not_left_out(context: Any) -> None:
    context.create(
        "CREATE TABLE sparse (a INTEGER, b INTEGER, c INTEGER, PRIMARY KEY (a, b, c)) PARTITION BY HASH (a)"
        " PARTITIONS 4"
    )
    search = context.select("SELECT b FROM sparse WHERE c = ? AND a = ?", [1, 2]).plan.scans[0].keys
    assert search.direct is None
    assert not search.decides
