"""What of a correlated subquery becomes rows by key, and what statements of several tables are gathered for."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.sql import ExchangeKind
from secateur.planner import CostModel, Planner


@pytest.mark.parametrize(
    ("sql", "passes_on"),
    [
        pytest.param("SELECT c.name, o.amount FROM customers c JOIN orders o USING (customer_id)", True, id="a join"),
        pytest.param(
            "SELECT * FROM (SELECT c.name, o.amount + 1 AS a FROM customers c JOIN orders o USING (customer_id)) q",
            True,
            id="a join in FROM",
        ),
        pytest.param(
            "SELECT c.name, o.amount FROM customers c JOIN orders o USING (customer_id) LIMIT 5", True, id="LIMIT"
        ),
        pytest.param(
            "SELECT c.name FROM customers c JOIN orders o USING (customer_id) ORDER BY 1 LIMIT 5",
            False,
            id="the first of an order",
        ),
        pytest.param("SELECT DISTINCT c.name FROM customers c JOIN orders o USING (customer_id)", False, id="DISTINCT"),
        pytest.param(
            "SELECT o.priority, count(*) FROM customers c JOIN orders o USING (customer_id) GROUP BY ALL",
            False,
            id="groups",
        ),
        pytest.param("SELECT o.priority, rank() OVER (ORDER BY o.amount) FROM orders o", False, id="a window"),
    ],
)
def test_what_only_passes_rows_on(context: Any, sql: str, passes_on: bool) -> None:
    assert context.select(sql).plan.stages[-1].fragment.is_pipelineable is passes_on


def test_a_key_by_which_rows_go_goes_along(context: Any) -> None:
    """Of two equal columns of a scan the one names the other; what makes them equal is applied where the rows are, and
    leaves one of them unread.
    """
    context.planner = Planner(cost_model=CostModel(shuffled_bytes_min=0, shuffle_share=1e-6))
    plan = context.select(
        "SELECT p.amount FROM orders o JOIN orders p ON o.priority = p.priority WHERE p.customer_id = p.priority"
    ).plan
    shuffled = [stage for stage in plan.stages if stage.exchange is ExchangeKind.SHUFFLE]
    assert shuffled
    assert all({*stage.columns} <= {*stage.fragment.schema.names} for stage in shuffled)


@pytest.mark.parametrize(
    ("sql", "stages"),
    [
        pytest.param(
            "SELECT priority, median(amount) FROM orders GROUP BY 1 ORDER BY 2 LIMIT 3",
            ["scan orders: shuffle", "scan x0: gather", "final: gather"],
            id="an aggregate without parts",
        ),
        pytest.param(
            "SELECT id, rank() OVER (PARTITION BY priority ORDER BY id) FROM orders",
            ["scan orders: shuffle", "groups x0: gather", "final: gather"],
            id="a window",
        ),
        pytest.param(
            "SELECT DISTINCT day, count(*) OVER (PARTITION BY priority) FROM orders",
            ["scan orders: shuffle", "scan x0: gather", "final: gather"],
            id="DISTINCT of windows, which several members may have alike",
        ),
        pytest.param(
            "SELECT id, rank() OVER (PARTITION BY priority ORDER BY id), sum(id) OVER (PARTITION BY day) FROM orders",
            ["scan orders: gather", "final: gather"],
            id="windows that agree in nothing",
        ),
        pytest.param(
            "SELECT sum(id), median(amount) FROM orders GROUP BY amount",
            ["scan orders: gather", "final: gather"],
            id="a decimal",
        ),
        pytest.param(
            "SELECT priority, median(amount) FROM orders GROUP BY ROLLUP (priority)",
            ["scan orders: gather", "final: gather"],
            id="sets",
        ),
    ],
)
def test_many_rows_are_dealt_by_what_groups_and_windows_have_in_common(
    context: Any, sql: str, stages: list[str]
) -> None:
    context.planner = Planner(cost_model=CostModel(shuffled_bytes_min=0))
    assert [f"{stage.name}: {stage.exchange.value}" for stage in context.select(sql).plan.stages] == stages
