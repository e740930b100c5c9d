"""Keys of joins that are found first: where they are, what they prune, and when they are not worth it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from secateur.partitioning.tables import ColumnStatistics, TableStatistics
from secateur.planner import PlannedSteps
from secateur.protocol import SubqueryUse

CLIENTS = (
    "CREATE TABLE clients (id BIGINT PRIMARY KEY, region VARCHAR, nation INTEGER, rank INTEGER) PARTITION BY HASH (id)"
    " PARTITIONS 64"
)
SALES = (
    "CREATE TABLE sales (client BIGINT, n BIGINT, day DATE, place INTEGER, PRIMARY KEY (client, n)) PARTITION BY HASH"
    " (client) PARTITIONS 64"
)
VISITS = (
    "CREATE TABLE visits (client BIGINT, place INTEGER, n BIGINT, PRIMARY KEY (client, place, n)) PARTITION BY HASH"
    " (client, place) PARTITIONS 64"
)
NATIONS = "CREATE TABLE nations (id INTEGER PRIMARY KEY, name VARCHAR) REPLICATED"
LOG = "CREATE TABLE log (id BIGINT PRIMARY KEY, client BIGINT) PARTITION BY HASH (id) PARTITIONS 64"

KNOWN: dict[str, tuple[int, dict[str, int]]] = {
    "clients": (20_000, {"id": 20_000, "region": 2_000, "nation": 2_000, "rank": 20_000}),
    "sales": (4_000_000, {"client": 20_000, "n": 4_000_000, "day": 300, "place": 900}),
    "visits": (4_000_000, {"client": 20_000, "place": 100, "n": 4_000_000}),
    "nations": (2_000, {"id": 2_000, "name": 2_000}),
    "log": (4_000_000, {"id": 4_000_000, "client": 20_000}),
}


@pytest.fixture
def shop(context: Any) -> Any:
    for ddl in (CLIENTS, SALES, VISITS, NATIONS, LOG):
        context.create(ddl)
    for name, (rows, distinct) in KNOWN.items():
        context.statistics_snapshot = context.statistics_snapshot.with_table(
            statistics(context.table(name), rows, distinct)
        )
    return context


def statistics(table: Any, rows: int, distinct: dict[str, int]) -> TableStatistics:
    columns = {
        column.name: ColumnStatistics(
            8 * rows, 0, distinct[column.name], None if column.type.kind.name == "VARCHAR" else 1
        )
        for column in table.columns
    }
    return TableStatistics(table.table_id, rows, MappingProxyType(columns))


def shown(found: PlannedSteps | None) -> list[str]:
    """The text of each step, then the trees of the rest."""
    assert found is not None
    assert all(step.use is SubqueryUse.KEYS for step in found.steps)
    return [*(step.text for step in found.steps), *(str(scan.tree) for scan in found.outer.plan.scans)]


NORTH = 'SELECT DISTINCT "id" FROM "clients" WHERE ("region" = \'north\')'


def test_without_statistics_nothing_is_tried(shop: Any) -> None:
    shop.statistics_snapshot = type(shop.statistics_snapshot)()
    assert (
        shop.select("SELECT * FROM clients c JOIN sales s ON s.client = c.id WHERE c.region = 'north'").materialized
        is None
    )


def test_parameters_are_those_of_the_statement(shop: Any) -> None:
    found = shop.select(
        "SELECT * FROM clients c JOIN sales s ON s.client = c.id WHERE s.day > ? AND c.region = ?", [None, "north"]
    ).materialized
    assert shown(found) == [
        'SELECT DISTINCT "id" FROM "clients" WHERE ("region" = $2)',
        "clients: ($3[])",
        "sales: ($3[])",
    ]
    (step,) = found.steps
    assert (step.query.plan.parameter_count, found.outer.plan.parameter_count, found.watched) == (2, 3, (0,))
    assert (step.estimate, step.values_max) == (10, 256)


def test_a_subquery_that_runs_first_and_keys_behind_it(shop: Any) -> None:
    sql = (
        "SELECT * FROM clients c JOIN sales s ON s.client = c.id JOIN visits v ON v.client = s.n AND v.place = 4 "
        "WHERE c.region = 'north' AND s.n IN (SELECT id FROM log WHERE client = 5)"
    )
    whole = shop.select(sql)
    assert [step.use for step in whole.materialized.steps] == [SubqueryUse.LIST]
    inner = whole.materialized.outer.materialized
    assert shown(inner)[:3] == [NORTH, "clients: ($2[])", "sales: ($2[])"]
    assert inner.outer.plan.parameter_count == 2


def test_lists_that_are_there_need_no_keys(shop: Any) -> None:
    sql = (
        "SELECT * FROM clients c JOIN sales s ON s.client = c.id WHERE c.region = 'north' AND c.id IN (SELECT client"
        " FROM log WHERE id < 5)"
    )
    found = shop.select(sql).materialized
    assert [step.use for step in found.steps] == [SubqueryUse.LIST]
    assert found.outer.materialized is None


def test_what_runs_is_the_same_text(shop: Any) -> None:
    whole = shop.select("SELECT * FROM clients c JOIN sales s ON s.client = c.id WHERE c.region = 'north'")
    outer = whole.materialized.outer.plan
    assert (outer.local, outer.stages) == (whole.plan.local, whole.plan.stages)
    assert outer.plan_id != whole.plan.plan_id


def test_explain_says_what_is_found_first(shop: Any) -> None:
    explained = shop.explain("SELECT * FROM clients c JOIN sales s ON s.client = c.id WHERE c.region = 'north'")
    lines = explained.text.splitlines()
    assert "rewrites: join_keys_first" in lines
    assert f"runs first, for $1[]: {NORTH}" in lines
    assert "  join keys: about 10 expected; with more than 256, the statement runs without them" in lines
    (step,) = explained.json["pruning"]["steps"]
    assert (step["parameters"], step["values"], step["estimate"], step["values_max"]) == ([0], "keys", 10, 256)
