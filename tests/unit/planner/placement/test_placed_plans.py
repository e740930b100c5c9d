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


@pytest.mark.parametrize(
    ("sql", "passes_on"),
    [
        pytest.param("SELECT c.name, o.amount FROM customers c JOIN orders o USING (customer_id)", True, id="a join"),
        pytest.param("SELECT * FROM (SELECT c.name, o.amount + 1 AS a FROM customers c JOIN orders o USING (customer_id)) q", True, id="a join in FROM"),
        pytest.param("SELECT c.name, o.amount FROM customers c JOIN orders o USING (customer_id) LIMIT 5", False, id="LIMIT"),
        pytest.param("SELECT DISTINCT c.name FROM customers c JOIN orders o USING (customer_id)", False, id="DISTINCT"),
        pytest.param("SELECT o.priority, count(*) FROM customers c JOIN orders o USING (customer_id) GROUP BY ALL", False, id="groups"),
        pytest.param("SELECT o.priority, rank() OVER (ORDER BY o.amount) FROM orders o", False, id="a window"),
    ],
)
def test_what_only_passes_rows_on(bench: Any, sql: str, passes_on: bool) -> None:
    assert bench.select(sql).plan.stages[-1].fragment.row_by_row is passes_on
