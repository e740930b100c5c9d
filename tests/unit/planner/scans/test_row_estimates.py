"""Which share of the rows of a table a scan is thought to have."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from secateur.engine.kernels.duckdb import default_kernel
from secateur.partitioning.tables import ColumnStatistics, TableStatistics
from secateur.planner import CostModel, estimate_of
from secateur.planner.binding import PlanSettings, bind_query, bind_to_plan
from secateur.planner.prune import ScanReading, read_query
from secateur.planner.text import read_parameters, tokenize

COLUMNS = {
    "customer_id": ColumnStatistics(4000, 0, 100, "a", "z"),
    "id": ColumnStatistics(8000, 0, 1000, 1, 1001),
    "priority": ColumnStatistics(4000, 0, 4, "a", "z"),
    "amount": ColumnStatistics(16000, 100, 500, Decimal("-50.00"), Decimal("150.00")),
    "day": ColumnStatistics(4000, 0, 100, date(2024, 1, 1), date(2024, 4, 10)),
}


def scan(context: Any, where: str) -> ScanReading:
    sql = f"SELECT * FROM orders WHERE {where}"
    tokens, parameters = read_parameters(sql, tokenize(sql))
    query = bind_query(sql, tokens, parameters, context.relation)
    types = {scan.relation: {column.name: column.type for column in scan.table.columns} for scan in query.scans}
    plan = bind_to_plan(default_kernel(), query.sql, types, ())
    (found,) = read_query(query, plan, PlanSettings()).scans
    return found


@pytest.mark.parametrize(
    ("where", "share"),
    [
        pytest.param("priority = 'a'", 1 / 4, id="one of four values"),
        pytest.param("priority <> 'a'", 3 / 4, id="three of four"),
        pytest.param("priority IN ('a', 'b')", 1 / 2, id="two of four"),
        pytest.param("day >= DATE '2024-01-11' AND day < DATE '2024-01-21'", 0.1, id="ten days of a hundred"),
        pytest.param("day BETWEEN DATE '2024-01-11' AND DATE '2024-01-21'", 0.1, id="BETWEEN"),
        pytest.param("DATE '2024-01-11' > day", 0.1, id="turned round"),
        pytest.param("day < DATE '2023-01-01'", 0.01, id="before all values"),
        pytest.param("day > DATE '2020-01-01'", 1.0, id="after none"),
        pytest.param("amount > 100", 0.25, id="decimals"),
        pytest.param("amount > -10.5 AND priority = 'a'", 160.5 / 200 / 4, id="a negative bound, and another column"),
        pytest.param("amount > 100 OR priority = 'a'", 0.5, id="OR"),
        pytest.param("NOT amount > 100", 0.75, id="NOT"),
        pytest.param("priority > 'm'", 1 / 3, id="texts have no distance"),
        pytest.param("id > amount", 1 / 3, id="two columns"),
        pytest.param("day > CAST(priority AS DATE)", 1 / 3, id="no moment"),
        pytest.param("amount IS NULL", 1 / 10, id="NULL"),
        pytest.param("amount IS NOT NULL", 9 / 10, id="no NULL"),
    ],
)
def test_shares(context: Any, where: str, share: float) -> None:
    assert estimate_of(scan(context, where), TableStatistics(1, 1000, COLUMNS), CostModel()).share == pytest.approx(
        share
    )


def test_one_value_is_a_share_of_its_own(context: Any) -> None:
    alone = {**COLUMNS, "day": structs.replace(COLUMNS["day"], maximum=date(2024, 1, 1))}
    assert estimate_of(
        scan(context, "day > DATE '2024-01-01'"), TableStatistics(1, 1000, alone), CostModel()
    ).share == pytest.approx(1 / 3)


def test_bytes_are_those_of_the_share(context: Any) -> None:
    assert estimate_of(
        scan(context, "priority = 'a'"), TableStatistics(1, 1000, COLUMNS), CostModel()
    ).bytes == pytest.approx(36000 / 4)


def test_without_statistics_predicates_count_all_the_same(context: Any) -> None:
    known, unknown = (estimate_of(scan(context, where), None, CostModel()) for where in ("priority = 'a'", "TRUE"))
    assert known.share < unknown.share == 1.0
