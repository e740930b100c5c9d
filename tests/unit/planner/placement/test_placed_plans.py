"""What of a correlated subquery becomes rows by key, and what statements of several tables are gathered for."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.plan import Strategy


@pytest.mark.parametrize(
    ("where", "is_lookup"),
    [
        pytest.param("score > (SELECT sum(amount) FROM orders o WHERE o.priority = c.name)", True, id="a value"),
        pytest.param("score > (SELECT count(*) FROM orders o WHERE o.priority = c.name)", False, id="a count, which is 0 of no rows"),
        pytest.param("EXISTS (SELECT 1 FROM orders o WHERE o.priority = c.name)", True, id="EXISTS"),
        pytest.param("EXISTS (SELECT max(id) FROM orders o WHERE o.priority = c.name)", False, id="EXISTS of one row"),
        pytest.param("EXISTS ((SELECT max(id) FROM orders o WHERE o.priority = c.name))", False, id="EXISTS of one row, in parentheses"),
        pytest.param("name NOT IN (SELECT max(priority) FROM orders o WHERE o.priority = c.name)", False, id="NOT IN"),
        pytest.param("name <> ALL (SELECT max(priority) FROM orders o WHERE o.priority = c.name)", False, id="ALL"),
    ],
)
def test_lookups(bench: Any, where: str, is_lookup: bool) -> None:
    plan = bench.select(f"SELECT c.name FROM customers c WHERE {where}").plan
    assert any(stage.name == "keys" for stage in plan.stages) is is_lookup


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        pytest.param("t1", Strategy.PLACED, id="a letter and a number"),
        pytest.param("orders", Strategy.PLACED, id="the name of a table"),
        pytest.param("s1", Strategy.GATHER, id="the name of a scan"),
        pytest.param("x0", Strategy.GATHER, id="the name of a stage"),
    ],
)
def test_names_of_common_table_expressions(bench: Any, name: str, strategy: Strategy) -> None:
    sql = f"WITH {name} AS (SELECT customer_id FROM orders WHERE amount > 1) SELECT c.name FROM {name} x JOIN customers c ON c.customer_id = x.customer_id"
    assert bench.select(sql).plan.strategy is strategy
