from __future__ import annotations

from typing import Any

import pytest

ORDERS = ("customer_id", "id", "priority", "amount", "day")


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        pytest.param("SELECT amount FROM orders", ("amount",), id="one"),
        pytest.param('SELECT "AMOUNT" FROM orders WHERE "Id" > 3', ("id", "amount"), id="quoted, another case"),
        pytest.param("SELECT count(*) FROM orders", ("customer_id",), id="none but rows"),
        pytest.param("SELECT 1 FROM orders", ("customer_id",), id="none at all"),
        pytest.param("SELECT * FROM orders", ORDERS, id="star"),
        pytest.param("SELECT o.* FROM orders o", ORDERS, id="qualified star"),
        pytest.param("FROM orders", ORDERS, id="no select list"),
        pytest.param("SELECT COLUMNS('a') FROM orders", ORDERS, id="columns by pattern"),
        pytest.param("SELECT orders FROM orders", ORDERS, id="a row as a value"),
        pytest.param("SELECT b FROM orders AS o(a, b)", ORDERS, id="renamed columns"),
        pytest.param("SELECT b FROM (orders) AS o(a, b)", ORDERS, id="renamed columns of a table in parentheses"),
        pytest.param("SELECT b FROM ((orders)) AS o(a, b)", ORDERS, id="renamed columns of a table in two pairs of parentheses"),
        pytest.param("SELECT priority FROM orders ORDER BY day, sum(amount) OVER (PARTITION BY id)", ("id", "priority", "amount", "day"), id="other clauses"),
        pytest.param("SELECT 'amount' AS x FROM orders WHERE priority = 'day'", ("priority",), id="not inside strings"),
    ],
)
def test_a_scan_reads_the_columns_that_the_statement_names(bench: Any, sql: str, columns: tuple[str, ...]) -> None:
    assert bench.select(sql).plan.scans[0].columns == columns


OTHER = "metrics m"
METRICS = ("host", "metric", "time", "value")


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        pytest.param(f"SELECT * FROM orders, {OTHER}", [ORDERS, METRICS], id="of every table in FROM"),
        pytest.param(f"SELECT * FROM (orders JOIN {OTHER} ON host = priority)", [ORDERS, METRICS], id="in parentheses too"),
        pytest.param(f"SELECT * FROM (SELECT id FROM orders), {OTHER}", [("id",), METRICS], id="not inside a subquery"),
        pytest.param("WITH c AS (FROM orders) SELECT id FROM c, metrics", [ORDERS, ("host",)], id="no select list is a star"),
        pytest.param(f"SELECT * FROM orders UNION ALL BY NAME SELECT value FROM {OTHER}", [ORDERS, ("value",)], id="of its side of a set operation"),
        pytest.param(
            f"SELECT id FROM orders WHERE EXISTS (SELECT * FROM {OTHER} WHERE host = priority)", [("id", "priority"), ("host",)], id="of EXISTS for none"
        ),
        pytest.param(f"SELECT id FROM orders WHERE EXISTS (SELECT DISTINCT * FROM {OTHER} OFFSET 1)", [("id",), METRICS], id="unless rows are told apart"),
        pytest.param(f"SELECT id FROM orders WHERE EXISTS (SELECT * FROM {OTHER} GROUP BY ALL HAVING count(*) > 1)", [("id",), METRICS], id="or grouped"),
        pytest.param(f"SELECT id FROM orders WHERE EXISTS (FROM {OTHER} UNION FROM {OTHER})", [("id",), METRICS, METRICS], id="or put together"),
        pytest.param(
            "SELECT id FROM orders WHERE (priority, priority) IN (SELECT * FROM airlines)", [("id", "priority"), ("code", "name")], id="IN counts columns"
        ),
        pytest.param(
            "SELECT id FROM orders WHERE EXISTS (SELECT * FROM customers NATURAL JOIN orders)",
            [ORDERS, ("customer_id", "name", "score"), ORDERS],
            id="NATURAL looks at all",
        ),
        pytest.param(f"SELECT hash(*COLUMNS(*)) FROM orders, {OTHER}", [ORDERS, METRICS], id="in an expression"),
        pytest.param(f"SELECT b FROM (orders JOIN {OTHER} ON host = priority) AS x(a, b)", [ORDERS, METRICS], id="as many as an alias of a join renames"),
        pytest.param(
            f"SELECT q FROM ((orders JOIN {OTHER} ON host = priority) AS x(a, b) JOIN airlines ON code = a) AS y(p, q)",
            [ORDERS, METRICS, ("code", "name")],
            id="and one of a join inside of another",
        ),
        pytest.param(
            f"SELECT c FROM ((SELECT code FROM airlines) AS y JOIN {OTHER} ON host = code) AS x(a, b, c)",
            [("code",), METRICS],
            id="a join with a query in front",
        ),
        pytest.param("SELECT b FROM ((VALUES ('x')) AS v(y) JOIN airlines ON code = y) AS x(a, b)", [("code", "name")], id="or with VALUES"),
        pytest.param(f"SELECT x.* FROM (orders JOIN {OTHER} ON host = priority) AS x", [ORDERS, METRICS], id="of an alias of a join in parentheses"),
        pytest.param(f"SELECT id FROM (orders JOIN {OTHER} ON host = priority) AS x", [ORDERS, METRICS], id="which is a query of all columns anyway"),
        pytest.param(f"SELECT id FROM (orders JOIN {OTHER} ON host = priority)", [("id", "priority"), ("host",)], id="parentheses alone are none"),
    ],
)
def test_a_star_stands_for_the_columns_of_its_own_from_clause(bench: Any, sql: str, columns: list[tuple[str, ...]]) -> None:
    assert [scan.columns for scan in bench.select(sql).plan.scans] == columns


@pytest.mark.parametrize(
    ("sql", "local"),
    [
        pytest.param("SELECT id FROM orders", 'SELECT id FROM s0 AS "orders"', id="an alias keeps the name"),
        pytest.param("select O.Id from Orders as O -- done", "select O.Id from s0 as O", id="an alias of the user's"),
        pytest.param('SELECT id FROM "orders" WHERE id = ? AND amount < ?', 'SELECT id FROM s0 AS "orders" WHERE id = $1 AND amount < $2', id="parameters"),
        pytest.param(
            "SELECT id FROM orders\n  WHERE priority = 'from orders ?'",
            "SELECT id FROM s0 AS \"orders\"\n  WHERE priority = 'from orders ?'",
            id="strings stay",
        ),
        pytest.param("SELECT 1 FROM orders, orders b", 'SELECT 1 FROM s0 AS "orders", s1 b', id="two mentions"),
        pytest.param(
            "WITH orders AS (SELECT 1 AS id) SELECT id FROM orders",
            "WITH orders AS (SELECT 1 AS id) SELECT id FROM orders",
            id="a common table expression hides a table",
        ),
        pytest.param(
            "WITH orders AS (SELECT id FROM orders) SELECT id FROM orders",
            'WITH orders AS (SELECT id FROM s0 AS "orders") SELECT id FROM orders',
            id="but not from itself",
        ),
    ],
)
def test_the_text_that_runs_is_the_users_with_other_table_names(bench: Any, sql: str, local: str) -> None:
    params = ["x"] * sql.replace("orders ?", "").count("?")
    assert bench.select(sql, params).plan.local.sql == local


def test_scans_are_in_the_order_of_the_text(bench: Any) -> None:
    sql = "SELECT (SELECT max(score) FROM customers), id FROM orders WHERE id IN (SELECT 1 FROM airlines) UNION ALL SELECT 1, 2 FROM metrics"
    assert [scan.table for scan in bench.select(sql).plan.scans] == ["customers", "orders", "airlines", "metrics"]


@pytest.mark.parametrize(
    ("sql", "params", "names"),
    [
        ("SELECT EXISTS (SELECT 1 FROM orders WHERE id = 1)", (), ["EXISTS(SELECT 1 FROM orders WHERE (id = 1))"]),
        ("SELECT (SELECT max(score) FROM customers c), 1 AS s0", (), ["(SELECT max(score) FROM customers AS c)", "s0"]),
        ("SELECT $who, $what", {"who": 1, "what": 2}, ["$who", "$what"]),
        ("SELECT count(*), sum(amount) + 1 FROM orders", (), ["count_star()", "(sum(amount) + 1)"]),
    ],
)
def test_columns_without_a_name_are_called_as_in_duckdb(bench: Any, sql: str, params: Any, names: list[str]) -> None:
    assert [name for name, _ in bench.select(sql, params).plan.columns] == names
