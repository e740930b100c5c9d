"""From WHERE to the part of each partition that is searched."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.partitioning.pruning import KeyPrefix, KeyRanges
from secateur.planner.prune import bounds

EVENTS = (
    "CREATE TABLE events (device BIGINT, t TIMESTAMP, kind VARCHAR, v DOUBLE, PRIMARY KEY (device, t, kind)) PARTITION"
    " BY HASH (device) PARTITIONS 16"
)


def searched(context: Any, where: str, params: Any = (), table: str = "orders") -> str:
    """The part of a partition as text."""
    statement = context.select(f"SELECT * FROM {table} WHERE {where}", params)
    match statement.plan.scans[0].keys.bind(statement.params or ()):
        case None:
            return "all"
        case KeyPrefix(values):
            return f"key = {values}"
        case KeyRanges(ranges):
            return (
                " or ".join(
                    f"{span.lower.values} {'<' if span.lower.after else '<='} key {'<=' if span.upper.after else '<'}"
                    f" {span.upper.values}"
                    for span in ranges
                )
                or "none"
            )


@pytest.mark.parametrize(
    ("where", "params", "expected"),
    [
        ("customer_id = 'C2'", (), "key = ('C2',)"),
        ("id = 3 AND customer_id = ?", ["C2"], "key = ('C2', 3)"),
        ("customer_id = 'C2' AND id = '3'", (), "key = ('C2', 3)"),
        ("customer_id = 'C2' AND id = 3 AND priority = 'high'", (), "key = ('C2', 3)"),
        ("customer_id = ? AND id = ?", ["C2", 1.5], "none"),
        ("customer_id = ?", [7], "all"),
        ("id = 3", (), "all"),
        ("customer_id = 'C2' OR id = 3", (), "all"),
        ("NOT customer_id = priority", (), "all"),
        ("customer_id = 'C2' AND id > 3", (), "('C2', 3) < key <= ('C2',)"),
        ("customer_id = ? AND id BETWEEN ? AND ?", ["C2", 3, 5], "('C2', 3) <= key <= ('C2', 5)"),
        ("customer_id = ? AND id >= 3 AND id < 5", ["C2"], "('C2', 3) <= key < ('C2', 5)"),
        ("customer_id > 'C2'", (), "('C2',) < key <= ()"),
        ("customer_id < 'C2' AND id = 3", (), "() <= key < ('C2',)"),
        (
            "customer_id IN ('C3', 'C2') AND id = 3",
            (),
            "('C2', 3) <= key <= ('C2', 3) or ('C3', 3) <= key <= ('C3', 3)",
        ),
        (
            "(customer_id = ? AND id = 1) OR (customer_id = 'C1' AND id < 2)",
            ["C9"],
            "('C1',) <= key < ('C1', 2) or ('C9', 1) <= key <= ('C9', 1)",
        ),
        ("customer_id = 'C2' AND (priority = 'x' OR id = 3)", (), "key = ('C2',)"),
        ("customer_id = ? AND customer_id = ?", ["C1", "C1"], "key = ('C1',)"),
        ("customer_id = ? AND customer_id = ?", ["C1", "C2"], "key = ('C1',)"),  # the filter finds no row
        ("customer_id = ? AND customer_id = 'C2' AND id = ? AND id > 3", ["C2", 5], "key = ('C2', 5)"),
    ],
    ids=str,
)
def test_predicates(context: Any, where: str, params: Any, expected: str) -> None:
    assert searched(context, where, params) == expected


def test_few_days_of_one_device(context: Any) -> None:
    context.create(EVENTS)
    where = "device = ? AND t >= TIMESTAMP '2024-01-01 00:00:00' AND t < TIMESTAMP '2024-01-02 00:00:00'"
    found = searched(context, where, [5], "events")
    assert found == "(5, datetime.datetime(2024, 1, 1, 0, 0)) <= key < (5, datetime.datetime(2024, 1, 2, 0, 0))"


def test_a_contradiction_behind_the_partitioning_key_needs_no_partition(context: Any) -> None:
    assert context.trees("SELECT * FROM orders WHERE id > 5 AND id < 3") == ["orders: none"]
    assert context.trees("SELECT * FROM orders WHERE customer_id = 'C2' AND id = 1.5") == ["orders: none"]


def test_the_further_columns_do_not_make_the_tree_less_exact(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "UNION_MAX", 16)
    branches = " OR ".join(f"(customer_id = 'C{n % 3}' AND id = {n})" for n in range(50))
    (scan,) = context.select(f"SELECT * FROM orders WHERE {branches}").plan.scans
    expected = sorted({context.partition("orders", customer_id=f"C{n}", id=0) for n in range(3)})
    assert list(scan.tree.bind(()).ids) == expected


def test_what_does_not_apply_to_every_row_of_the_scan_bounds_nothing(context: Any) -> None:
    orders, customers = context.select(
        "SELECT * FROM orders o LEFT JOIN customers c ON o.customer_id = c.customer_id AND o.id < 3"
    ).plan.scans
    assert orders.keys.bind(()) is None
    assert customers.keys.bind(()) is None
