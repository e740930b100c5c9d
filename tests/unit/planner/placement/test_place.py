"""The stages of whole statements: what is computed apart, in which order, and where."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.plan import Strategy


def shown(bench: Any, sql: str) -> list[str]:
    plan = bench.select(sql).plan
    assert plan.strategy is Strategy.PLACED, plan.gather_reason
    return [f"{stage.name} at {'the coordinator' if stage.at_coordinator else 'members'}" for stage in plan.stages]


LAST = "final at the coordinator"


@pytest.mark.parametrize(
    ("sql", "stages"),
    [
        pytest.param("SELECT o.id FROM orders o JOIN customers c USING (customer_id)", ["join o at members", LAST], id="co-located tables"),
        pytest.param(
            "SELECT o.id FROM orders o JOIN customers c ON o.priority = c.name", ["scan c at members", "join o at members", LAST], id="one table moves"
        ),
        pytest.param("SELECT id FROM orders UNION ALL SELECT id + 1 FROM orders", ["set operation at members", LAST], id="a union"),
        pytest.param(
            "WITH q AS (SELECT priority, sum(amount) AS a FROM orders GROUP BY 1) "
            "SELECT x.a, o.id FROM q x JOIN q y ON x.a < y.a JOIN orders o ON o.priority = x.priority",
            ["scan orders at members", "q at the coordinator", "join x at members", LAST],
            id="what is mentioned twice is computed once",
        ),
        pytest.param(
            "SELECT c.name FROM customers c JOIN (SELECT priority, max(amount) AS m FROM orders GROUP BY priority) q ON q.priority = c.name",
            ["scan orders at members", "q at the coordinator", "join c at members", LAST],
            id="a query in FROM whose groups are of several members",
        ),
        pytest.param(
            "SELECT c.name FROM customers c JOIN (SELECT customer_id, max(amount) AS m FROM orders GROUP BY customer_id) q USING (customer_id)",
            ["join c at members", LAST],
            id="a query in FROM whose groups are of one member",
        ),
        pytest.param(
            "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.customer_id = o.customer_id)", ["join o at members", LAST], id="EXISTS"
        ),
        pytest.param(
            "SELECT a.name, o.id FROM airlines a JOIN orders o ON o.priority = a.code", ["join a at members", LAST], id="a replicated table is everywhere"
        ),
    ],
)
def test_stages(bench: Any, sql: str, stages: list[str]) -> None:
    assert shown(bench, sql) == stages


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        pytest.param("SELECT o.id FROM orders o JOIN customers c ON o.priority = c.name COLLATE NOCASE", "a collation decides what is equal", id="a collation"),
    ],
)
def test_what_is_gathered_says_why(bench: Any, sql: str, reason: str) -> None:
    plan = bench.select(sql).plan
    assert plan.strategy is Strategy.GATHER
    assert reason in str(plan.gather_reason)
    assert plan.gather_reason
