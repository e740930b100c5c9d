"""What reduces the rows of a scan before they move."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.partitioning.tables import ColumnStatistics, StatisticsSnapshot, TableStatistics
from secateur.planner import CostModel, Planner

BY_CUSTOMERS = (
    'SEMI JOIN (SELECT "customer_id" FROM s2 WHERE ("name" = \'a\')) AS s1_0 ON s1."customer_id" = s1_0."customer_id"'
)
BY_AIRLINES = 'SEMI JOIN (SELECT "code" FROM s2 WHERE ("name" = \'a\')) AS s1_0 ON s1."priority" = s1_0."code"'


@pytest.fixture(autouse=True)
def sizes(context: Any) -> None:
    """Metrics are what stays, and every byte is worth to be saved."""
    context.planner = Planner(cost_model=CostModel(semi_join_saved_bytes_min=0))
    rows = {"metrics": 10_000_000, "orders": 10_000, "customers": 1000, "airlines": 100}
    tables = {
        table.table_id: TableStatistics(
            table.table_id,
            rows[name],
            {column.name: ColumnStatistics(8 * rows[name], 0, rows[name] // 10) for column in table.columns},
        )
        for name, table in context.known.items()
    }
    context.statistics_snapshot = StatisticsSnapshot(1, tables)


def moved(context: Any, sql: str, scan: str) -> str:
    (found,) = [stage.fragment.sql for stage in context.select(sql).plan.stages if stage.name == f"scan {scan}"]
    return str(found)


@pytest.mark.parametrize(
    ("source", "reduced"),
    [
        pytest.param(
            "orders o, customers c WHERE o.customer_id = c.customer_id AND c.name = 'a' AND",
            BY_CUSTOMERS,
            id="co-located",
        ),
        pytest.param(
            "orders o, airlines w WHERE o.priority = w.code AND w.name = 'a' AND", BY_AIRLINES, id="replicated"
        ),
        pytest.param("orders o JOIN customers c USING (customer_id) WHERE c.name = 'a' AND", BY_CUSTOMERS, id="USING"),
        pytest.param(
            "orders o JOIN customers c ON o.customer_id = c.customer_id AND c.name = 'a' WHERE", BY_CUSTOMERS, id="ON"
        ),
        pytest.param(
            "orders o, customers c WHERE o.customer_id = c.customer_id AND c.name <> 'a' AND",
            None,
            id="most rows remain",
        ),
        pytest.param("orders o, customers c WHERE o.customer_id = c.customer_id AND", None, id="nothing is ruled out"),
        pytest.param(
            "orders o, customers c WHERE o.priority = c.customer_id AND c.name = 'a' AND",
            None,
            id="other members have the matching rows",
        ),
        pytest.param("orders o, customers c WHERE o.customer_id = c.name AND c.score = 1 AND", None, id="not its key"),
        pytest.param(
            "orders o, customers c WHERE o.customer_id IS NOT DISTINCT FROM c.customer_id AND c.name = 'a' AND",
            None,
            id="NULL would match NULL",
        ),
        pytest.param(
            "orders o LEFT JOIN customers c ON o.customer_id = c.customer_id AND c.name = 'a' WHERE",
            None,
            id="kept without a match",
        ),
        pytest.param(
            "orders o, customers c WHERE (o.customer_id = c.customer_id OR o.amount > 1) AND c.name = 'a' AND",
            None,
            id="OR",
        ),
    ],
)
def test_what_reduces_a_scan(context: Any, source: str, reduced: str | None) -> None:
    sql = moved(context, f"SELECT count(*), sum(o.amount) FROM metrics m, {source} m.host = o.priority", "o")
    assert (reduced is None) is ("SEMI JOIN" not in sql), sql
    assert reduced is None or reduced in sql


def test_what_reduces_is_reduced_itself(context: Any) -> None:
    sql = moved(
        context,
        "SELECT sum(o.amount) FROM metrics m, orders o, customers c, airlines w "
        "WHERE m.host = o.priority AND o.customer_id = c.customer_id AND c.name = w.code AND w.name = 'a'",
        "o",
    )
    assert 'FROM s2 SEMI JOIN (SELECT "code" FROM s3 WHERE ("name" = \'a\')) AS s2_0 ON s2."name" = s2_0."code"' in sql


def test_a_scan_of_two_mentions_is_not_reduced_by_the_partner_of_one(context: Any) -> None:
    sql = moved(
        context,
        "WITH o AS (SELECT * FROM orders) SELECT sum(a.amount) FROM metrics m, o a, o b, customers c "
        "WHERE m.host = a.priority AND m.metric = b.priority AND a.customer_id = c.customer_id AND c.name = 'a'",
        "orders",
    )
    assert "SEMI JOIN" not in sql


def test_few_bytes_are_not_worth_a_kernel_call(context: Any) -> None:
    context.planner = Planner(cost_model=CostModel(semi_join_saved_bytes_min=1e9))
    sql = moved(
        context,
        "SELECT sum(o.amount) FROM metrics m, orders o, customers c WHERE m.host = o.priority AND o.customer_id ="
        " c.customer_id AND c.name = 'a'",
        "o",
    )
    assert "SEMI JOIN" not in sql


@pytest.mark.parametrize(
    ("source", "hinted"),
    [
        pytest.param("metrics m, orders o WHERE m.host = o.priority AND o.priority = 'a'", True, id="a selection"),
        pytest.param("metrics m, orders o WHERE m.host = o.priority", False, id="all rows"),
        pytest.param(
            "metrics m LEFT JOIN orders o ON m.host = o.priority AND o.priority = 'a'",
            False,
            id="a column may become NULL",
        ),
    ],
)
def test_the_kernel_is_told_of_a_selection(context: Any, source: str, hinted: bool) -> None:
    stages = context.select(f"SELECT count(DISTINCT o.id), sum(m.value) FROM {source}").plan.stages
    assert any('NOT "o"."id" IS NULL' in stage.fragment.sql for stage in stages) is hinted
