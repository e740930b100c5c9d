"""POST /plan: plans as parts of a page, and that nothing but a query is executed for them."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

import secateur

TABLE = "planned_orders"


@pytest.fixture(scope="module")
def orders(http: httpx.Client) -> Iterator[str]:
    columns = "customer VARCHAR, id INTEGER, PRIMARY KEY (customer, id)"
    for sql in (
        f"CREATE TABLE {TABLE} ({columns}) PARTITION BY HASH (customer) PARTITIONS 8",
        f"INSERT INTO {TABLE} VALUES ('C1', 1), ('C2', 2), ('C3', 3)",
    ):
        assert http.post("/api/v1/statements", json={"sql": sql}).status_code == 200
    yield TABLE
    http.post("/api/v1/statements", json={"sql": f"DROP TABLE {TABLE}"})


def plan(http: httpx.Client, sql: str, mode: str, *params: object) -> httpx.Response:
    return http.post("/plan", json={"sql": sql, "params": list(params), "mode": mode})


def test_a_plan_is_explained_without_its_parameters_and_measured_with_them(http: httpx.Client, orders: str) -> None:
    sql = f"SELECT count(*) FROM {orders} WHERE customer = ?"
    explained = plan(http, sql, "explain")
    assert explained.status_code == 200
    assert "the parameters are not bound" in explained.text
    assert '<svg class="dag"' in explained.text
    measured = plan(http, sql, "analyze", "C1").text
    assert measured.count('class="skipped"') == 2
    assert 'id="plan-partitions">1 of 8<' in measured
    compared = plan(http, sql, "compare", "C1").text
    assert 'id="on-partitions">1 of 8<' in compared
    assert 'id="off-partitions">8 of 8<' in compared
    assert 'id="rows-equal">yes<' in compared
    assert "alert" not in compared


@pytest.mark.parametrize("mode", ["analyze", "compare"])
@pytest.mark.parametrize("sql", [f"DELETE FROM {TABLE}", f"WITH x AS (SELECT 1) DELETE FROM {TABLE}"])
def test_a_change_is_not_measured(
    http: httpx.Client, conn: secateur.Connection, orders: str, sql: str, mode: str
) -> None:
    answer = plan(http, sql, mode)
    assert (answer.status_code, 'role="alert"' in answer.text) == (400, True)
    assert "only queries" in answer.text
    assert conn.execute(f"SELECT count(*) FROM {orders}").fetchone() == (3,)


@pytest.mark.parametrize("mode", ["explain", "analyze", "compare"])
def test_a_mistake_is_a_part_of_the_page(http: httpx.Client, orders: str, mode: str) -> None:
    answer = plan(http, f"SELECT '<b>', amuont FROM {orders}", mode)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "UnknownColumnError" in answer.text
    assert "<b>" not in answer.text
