"""What the members compute of a SELECT over several tables, and what is left to the coordinator: the texts of the stages."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.plan import Strategy

JOIN = "FROM orders o JOIN customers c ON o.customer_id = c.customer_id"
FROM = "FROM s0 AS o JOIN s1 AS c ON o.customer_id = c.customer_id"


@pytest.mark.parametrize(
    ("sql", "members", "coordinator"),
    [
        pytest.param(
            f"SELECT c.name, o.amount {JOIN} WHERE o.amount > 1",
            f"SELECT c.name, o.amount {FROM} WHERE o.amount > 1",
            None,
            id="rows",
        ),
        pytest.param(
            f"SELECT o.priority, sum(o.amount), count(*) {JOIN} GROUP BY o.priority",
            "GROUP BY",
            "GROUP BY",
            id="groups of several members, in two",
        ),
        pytest.param(
            f"SELECT o.customer_id, sum(o.amount) {JOIN} GROUP BY o.customer_id",
            "GROUP BY",
            None,
            id="groups of one member",
        ),
        pytest.param(
            f"SELECT median(o.amount) {JOIN}", 'SELECT "o"."amount" AS v0', "MEDIAN(v0)", id="an aggregate that cannot be cut: the columns that it needs"
        ),
        pytest.param(f"SELECT o.id {JOIN} ORDER BY o.id LIMIT 3", "LIMIT 3", "LIMIT 3", id="the first rows of each member"),
        pytest.param(f"SELECT DISTINCT o.priority {JOIN}", "DISTINCT", "DISTINCT", id="DISTINCT, twice"),
        pytest.param(f"SELECT rank() OVER (ORDER BY o.day) {JOIN}", 'SELECT "o"."day" AS v0', "RANK() OVER (ORDER BY v0", id="a window over rows of all"),
        pytest.param(f"SELECT rank() OVER (PARTITION BY c.customer_id ORDER BY o.day) {JOIN}", "RANK() OVER", None, id="a window over rows of one member"),
    ],
)
def test_in_two(bench: Any, sql: str, members: str, coordinator: str | None) -> None:
    plan = bench.select(sql).plan
    assert plan.strategy is Strategy.PLACED, plan.gather_reason
    first, last = plan.stages
    assert (first.at_coordinator, last.at_coordinator) == (False, True)
    assert members in first.fragment.sql
    if coordinator is None:
        assert not any(word in last.fragment.sql for word in ("GROUP BY", "OVER", "WHERE"))
    else:
        assert coordinator in last.fragment.sql
