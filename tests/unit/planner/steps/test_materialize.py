"""Subqueries that run first: what becomes a step, what the rest looks like, and what stays whole."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.planner import BoundSelect, PlannedSelect, PlannedSteps, query_planner

VIP = (
    "CREATE TABLE vip (customer_id VARCHAR PRIMARY KEY, region VARCHAR, since DATE, best BIGINT, score DOUBLE) "
    "PARTITION BY HASH (customer_id) PARTITIONS 7"
)
DAYS = (
    "CREATE TABLE days (day DATE, n INTEGER, best UINTEGER, PRIMARY KEY (day, n)) "
    "PARTITION BY RANGE (day) SPLIT AT (DATE '2024-01-01', DATE '2024-02-01', DATE '2024-03-01')"
)
NUMBERS = (
    "CREATE TABLE numbers (a BIGINT, b INTEGER, v BIGINT, PRIMARY KEY (a, b)) PARTITION BY HASH (a) PARTITIONS 7, HASH"
    " (b) PARTITIONS 3"
)


@pytest.fixture
def steps(context: Any) -> Any:
    for ddl in (VIP, DAYS, NUMBERS):
        context.create(ddl)
    return context


def materialized(context: Any, sql: str, params: Any = ()) -> PlannedSteps | None:
    found: PlannedSteps | None = context.select(sql, params).materialized
    return found


def test_the_form_in_steps_is_remembered_with_its_plan(steps: Any) -> None:
    sql = "SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region = ?)"
    first: PlannedSelect = steps.select(sql, ["a"])
    second: PlannedSelect = steps.select(sql, ["b"])
    assert first.materialized is second.materialized is not None
    assert second.params == ("b",)


def test_explain_names_the_steps_for_programs(steps: Any) -> None:
    sql = "SELECT count(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region = ?)"
    pruning = steps.explain(sql, ["north"]).json["pruning"]
    assert (pruning["tree"], pruning["execution"], pruning["applicable"]) == ("orders: ($2[])", "distributed", True)
    assert pruning["required_members"] == ["m1", "m2", "m3"]
    assert [(scan["table"], scan["partitions"]) for scan in pruning["scans"]] == [("orders", None), ("vip", None)]
    (step,) = pruning["steps"]
    text = "SELECT customer_id FROM vip WHERE region = $1"
    assert (step["parameter"], step["values"], step["sql"], step["pruning"]["tree"]) == (1, "list", text, "vip: all")


def test_subqueries_in_subqueries_do_not_explode(steps: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them prunes, so that each could be tried alone, and inside of each other."""
    bound = []

    def counted(*args: Any, **options: Any) -> BoundSelect:
        bound.append(args[0])
        return BoundSelect(*args, **options)

    monkeypatch.setattr(query_planner, "BoundSelect", counted)
    nested = "SELECT region FROM vip"
    for _ in range(12):
        nested = f"SELECT region FROM vip WHERE region IN ({nested}) AND region = (SELECT max(region) FROM vip)"
    assert materialized(steps, f"SELECT * FROM orders WHERE priority IN ({nested})") is None
    assert 0 < len(bound) <= 25


CO_LOCATED = "SELECT count(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM customers WHERE name = 'Ada')"


def test_in_over_a_co_located_table_stays_local_unless_an_estimate_shows_that_its_keys_pay(steps: Any) -> None:
    assert materialized(steps, CO_LOCATED) is None
    few = {"customer_id": 1000, "name": 1000, "score": 10}
    steps.fill("orders", 10_000_000, {"customer_id": 1000, "id": 10_000_000, "priority": 3, "amount": 10, "day": 10})
    steps.fill("customers", 1000, few)
    assert materialized(steps, CO_LOCATED + " AND TRUE") is not None


def test_a_co_located_statement_finds_the_keys_of_a_replicated_table_first(steps: Any) -> None:
    sql = (
        "SELECT count(*) FROM orders o JOIN customers c ON o.customer_id = c.customer_id WHERE o.customer_id IN (SELECT"
        " name FROM airlines)"
    )
    assert materialized(steps, sql) is not None
