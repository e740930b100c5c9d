from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from secateur.planner import typed_parameters
from secateur.protocol import EvaluatedInsert, InsertMode, InsertSelect, InsertTemplate, Literal


def rows(context: Any, sql: str, params: Any = ()) -> list[dict[str, Any]]:
    statement = context.prepare(sql, params)
    assert isinstance(statement, EvaluatedInsert)
    assert statement.rows.schema.equals(statement.insert.table.arrow_schema)
    return statement.rows.to_pylist()


def test_values_in_table_order(context: Any) -> None:
    assert rows(
        context,
        "INSERT INTO orders VALUES ('C1', 1, 'low', 2.5, DATE '2024-01-01'), ('C2', 1 + 1, NULL, '3', '2024-01-02')",
    ) == [
        {"customer_id": "C1", "id": 1, "priority": "low", "amount": Decimal("2.50"), "day": date(2024, 1, 1)},
        {"customer_id": "C2", "id": 2, "priority": None, "amount": Decimal("3.00"), "day": date(2024, 1, 2)},
    ]


def test_columns_that_are_not_named_are_null(context: Any) -> None:
    assert rows(context, "INSERT INTO orders (ID, customer_id) VALUES (7, 'C1')") == [
        {"customer_id": "C1", "id": 7, "priority": None, "amount": None, "day": None}
    ]
    assert rows(context, "INSERT INTO customers VALUES ('C1', DEFAULT, DEFAULT)")[0]["name"] is None


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("INSERT INTO customers VALUES (?, ?, ?)", ["C1", "Ada", 0.5]),
        ("INSERT INTO customers VALUES ($1, $2, $3)", ["C1", "Ada", 0.5]),
        (
            "INSERT INTO customers (score, name, customer_id) VALUES ($score, $name, $id)",
            {"id": "C1", "name": "Ada", "score": 0.5},
        ),
    ],
)
def test_parameters(context: Any, sql: str, params: Any) -> None:
    expected = [{"customer_id": "C1", "name": "Ada", "score": 0.5}]
    assert rows(context, sql, params) == expected
    assert rows(context, sql, params) == expected, "the second time from the cache"


def test_each_value_is_cast_by_itself(context: Any) -> None:
    context.create("CREATE TABLE numbers (n INTEGER PRIMARY KEY, d DOUBLE)")
    assert rows(context, "INSERT INTO numbers VALUES (1, 0.1), ('2', 1), (2.6, 1e0)") == [
        {"n": 1, "d": 0.1},
        {"n": 2, "d": 1.0},
        {"n": 3, "d": 1.0},
    ]


def test_values_with_commas_and_parentheses_of_their_own(context: Any) -> None:
    assert rows(context, "INSERT INTO customers VALUES (concat('a', ',', 'b'), (upper(('x'))), [1, 2][1])") == [
        {"customer_id": "a,b", "name": "X", "score": 1.0}
    ]


def test_or_replace_is_an_upsert(context: Any) -> None:
    assert context.prepare("INSERT OR REPLACE INTO customers VALUES ('a', 'b', 1)").insert.mode is InsertMode.UPSERT
    assert context.prepare("INSERT INTO customers VALUES ('a', 'b', 1)").insert.mode is InsertMode.APPEND


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT OR IGNORE INTO customers VALUES ('a', 'b', 1)",
        "INSERT INTO customers VALUES ('a', 'b', 1) ON CONFLICT DO NOTHING",
        "INSERT INTO customers AS c VALUES ('a', 'b', 1) ON CONFLICT (CUSTOMER_ID) DO NOTHING",
        "INSERT OR IGNORE INTO customers SELECT 'a', 'b', 1",
        (
            "INSERT INTO customers SELECT a.code, b.code, 1 FROM airlines a JOIN airlines b ON a.code = b.code ON"
            " CONFLICT DO NOTHING"
        ),
    ],
)
def test_rows_that_are_there_are_ignored(context: Any, sql: str) -> None:
    statement = context.prepare(sql)
    insert = statement.insert if isinstance(statement, EvaluatedInsert) else statement
    assert insert.mode is InsertMode.IGNORE


def test_of_rows_with_one_key_the_first_replaces(context: Any) -> None:
    statement = context.prepare(
        "INSERT OR REPLACE INTO customers VALUES (?, 'x', 1), ('a', 'y', 2), ('b', 'z', 3)", ["a"]
    )
    assert statement.rows.to_pylist() == [
        {"customer_id": "a", "name": "x", "score": 1.0},
        {"customer_id": "b", "name": "z", "score": 3.0},
    ]
    assert statement.insert.template is None


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO customers SELECT customer_id, priority, amount FROM orders WHERE customer_id = 'C1'",
        "INSERT INTO customers (score, customer_id) SELECT 1, customer_id FROM orders",
        "INSERT INTO customers BY NAME SELECT customer_id, priority AS name FROM orders",
        "INSERT INTO customers (customer_id) (SELECT customer_id FROM orders)",
        "INSERT INTO customers WITH x AS (SELECT 'a' AS k) SELECT k, k, 1 FROM x",
    ],
)
def test_a_query_has_the_types_of_the_columns_it_fills(context: Any, sql: str) -> None:
    statement = context.prepare(sql)
    assert isinstance(statement, InsertSelect)
    assert [text for _, text in statement.select.plan.columns] == [
        str(statement.table.column(name).type) for name in statement.columns
    ]


def test_by_name_takes_the_names_of_the_query(context: Any) -> None:
    assert context.prepare("INSERT INTO customers BY NAME SELECT 1.5 AS Score, 'x' AS customer_id").columns == (
        "score",
        "customer_id",
    )


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        pytest.param("(?, ?, ?)", ((0, 1, 2),), id="parameters"),
        pytest.param("($2, $1, $3)", ((1, 0, 2),), id="numbered"),
        pytest.param(
            "(?, 'x', ?), (?, NULL, DEFAULT)", ((0, Literal("x"), 1), (2, Literal(None), Literal(None))), id="literals"
        ),
        pytest.param("(?, ? || ?, 1)", None, id="an expression"),
        pytest.param("(?, (?), ?)", None, id="brackets"),
        pytest.param("(?, ?, -1), (?, 'a', 1)", None, id="a sign"),
        pytest.param("('a', 'b', 1)", None, id="no parameters"),
    ],
)
def test_what_a_client_can_make_rows_from(context: Any, values: str, cells: Any) -> None:
    count = values.count("?") or values.count("$")
    statement = context.prepare(f"INSERT INTO customers VALUES {values}", [str(index) for index in range(count)])
    assert isinstance(statement, EvaluatedInsert)
    template = statement.insert.template
    assert template == (None if cells is None else InsertTemplate(("customer_id", "name", "score"), cells, count, ()))


@pytest.mark.parametrize(
    ("sql", "is_compiled"),
    [
        ("INSERT INTO numbers VALUES (?, ?, 'a') ON CONFLICT (id) DO UPDATE SET v = v + excluded.v", True),
        ("INSERT INTO numbers VALUES (?, ?, NULL) ON CONFLICT DO UPDATE SET s = excluded.s, v = NULL", True),
        ("INSERT INTO numbers AS n VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET v = 7 WHERE n.v < EXCLUDED.v", True),
        ("INSERT INTO numbers (id, v) VALUES (?, ?) ON CONFLICT DO UPDATE SET (v, s) = (v * 2 - excluded.v, s)", True),
        ("INSERT OR REPLACE INTO numbers (v, id) VALUES (?, ?)", True),
        ("INSERT INTO numbers VALUES (?, ?, 'a') ON CONFLICT DO UPDATE SET v = abs(excluded.v)", False),
        ("INSERT INTO numbers VALUES (?, ?, 'a') ON CONFLICT DO UPDATE SET s = s || excluded.s", True),
        ("INSERT INTO numbers VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET v = excluded.v", False),
        ("INSERT INTO numbers VALUES (?, ? + 1, 'a') ON CONFLICT DO UPDATE SET v = excluded.v", False),
        ("INSERT INTO numbers VALUES (?, ?, 'a'), (3, 4, 'b') ON CONFLICT DO UPDATE SET v = excluded.v", False),
        ("INSERT INTO numbers VALUES (?, 2, 'a') ON CONFLICT DO UPDATE SET v = (SELECT excluded.v)", False),
    ],
)
def test_upserts_of_one_row_that_run_without_duckdb(context: Any, sql: str, is_compiled: bool) -> None:
    context.create("CREATE TABLE numbers (id BIGINT PRIMARY KEY, v BIGINT, s VARCHAR)")
    statement = context.prepare(sql, [1, 2, "x"][: sql.count("?")])
    assert (statement.select.plan.upsert is not None) == is_compiled


def test_of_an_upsert_without_duckdb_the_query_for_its_row_is_planned_later_and_once(context: Any) -> None:
    context.create(
        "CREATE TABLE numbers (id BIGINT PRIMARY KEY, v BIGINT, s VARCHAR) PARTITION BY HASH (id) PARTITIONS 3"
    )
    sql = "INSERT INTO numbers VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET v = v + ?, s = excluded.s WHERE s < ?"
    statement = context.prepare(sql, [1, 2, "x", 3, "y"])
    key, whole = statement.select, statement.select.whole()
    assert key.plan.is_upsert_only
    assert key.plan.columns == (("id", "BIGINT"),)
    assert not whole.plan.is_upsert_only
    assert whole.plan.columns[0] == ("action", "VARCHAR")
    assert key.whole().plan is whole.whole().plan
    assert (whole.params, whole.plan.upsert) == (key.params, key.plan.upsert)
    assert [scan.tree for scan in whole.plan.scans] == [scan.tree for scan in key.plan.scans]
    changed = statement.with_queries(lambda query: query.whole())
    assert typed_parameters(changed) == typed_parameters(statement)


@pytest.mark.parametrize(
    ("returning", "value", "settings"),
    [
        pytest.param("", "x", {"pruning": "verify"}, id="compared with the whole text"),
        pytest.param("", "x" * 1001, {}, id="a value that is not to be kept"),
        pytest.param("", ["x"], {}, id="a nested value"),
        pytest.param("RETURNING v", "x", {}, id="with its row returned"),
    ],
)
def test_upserts_that_are_planned_at_once(context: Any, returning: str, value: Any, settings: Any) -> None:
    context.create("CREATE TABLE numbers (id BIGINT PRIMARY KEY, v BIGINT, s VARCHAR)")
    sql = f"INSERT INTO numbers VALUES (1, 2, ?) ON CONFLICT DO UPDATE SET v = excluded.v {returning}"
    select = context.planner.prepare(sql, [value], context, settings).select
    assert not select.plan.is_upsert_only
    assert select.whole() is select
