from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import Error, ParameterError, ProgrammingError, SqlSyntaxError, UnknownColumnError
from secateur.planner.statement import ChangeKind, ChangeStatement, WholeChange


def updated(bench: Any, sql: str, params: Any = ()) -> ChangeStatement:
    statement = bench.prepare(sql, params)
    assert isinstance(statement, ChangeStatement)
    assert statement.kind is ChangeKind.UPDATE
    return statement


@pytest.mark.parametrize(
    ("sql", "params", "query"),
    [
        pytest.param(
            "UPDATE customers SET score = score + 1 WHERE customer_id = 'C1'",
            (),
            'FROM s0 AS "customers" SELECT CAST((score + 1) AS DOUBLE) AS "score", "customers"."customer_id", "customers"."name" WHERE customer_id = \'C1\'',
            id="one column",
        ),
        pytest.param(
            "UPDATE customers AS c SET name = ?, score=c.score*? WHERE c.customer_id = ?",
            ("Ada", 2, "C1"),
            'FROM s0 AS "c" SELECT CAST(($1) AS VARCHAR) AS "name", CAST((c.score*$2) AS DOUBLE) AS "score", "c"."customer_id" WHERE c.customer_id = $3',
            id="parameters and an alias",
        ),
        pytest.param(
            "UPDATE airlines SET NAME = DEFAULT",
            (),
            'FROM s0 AS "airlines" SELECT CAST((NULL) AS VARCHAR) AS "name", "airlines"."code"',
            id="default",
        ),
        pytest.param(
            "UPDATE airlines SET name = concat(name, ',', code) WHERE name IS DISTINCT FROM code",
            (),
            'FROM s0 AS "airlines" SELECT CAST((concat(name, \',\', code)) AS VARCHAR) AS "name", "airlines"."code" WHERE name IS DISTINCT FROM code',
            id="a call",
        ),
        pytest.param(
            "UPDATE airlines SET name = code IS DISTINCT FROM 'x' /* , */",
            (),
            'FROM s0 AS "airlines" SELECT CAST((code IS DISTINCT FROM \'x\') AS VARCHAR) AS "name", "airlines"."code"',
            id="from inside a value",
        ),
        pytest.param(
            "UPDATE airlines SET name=(SELECT max(name) FROM airlines b WHERE b.code > airlines.code)",
            (),
            'FROM s0 AS "airlines" SELECT CAST(((SELECT max(name) FROM s1 b WHERE b.code > airlines.code)) AS VARCHAR) AS "name", "airlines"."code"',
            id="a subquery over a replicated table",
        ),
    ],
)
def test_an_update_is_a_query_for_rows(bench: Any, sql: str, params: Any, query: str) -> None:
    statement = updated(bench, sql, params)
    assert statement.select.plan.local.sql == query
    types = {column.name: str(column.type) for column in statement.table.columns}
    assert dict(statement.select.plan.columns) == types


@pytest.mark.parametrize(
    ("sql", "query"),
    [
        pytest.param(
            "UPDATE airlines AS a SET name = c.name FROM customers c WHERE c.customer_id = a.code",
            'SELECT CAST(\'UPDATE\' AS VARCHAR) AS "action", "a"."code" AS "old 0", CAST(("a"."code") AS VARCHAR) AS "code", '
            'CAST((c.name) AS VARCHAR) AS "name" '
            'FROM s0 c, s1 AS "a" WHERE c.customer_id = a.code',
            id="from",
        ),
        pytest.param(
            "UPDATE airlines SET (code, name) = (lower(code), DEFAULT)",
            'SELECT CAST(\'UPDATE\' AS VARCHAR) AS "action", "airlines"."code" AS "old 0", CAST((lower(code)) AS VARCHAR) AS "code", '
            'CAST((NULL) AS VARCHAR) AS "name" FROM s0 AS "airlines"',
            id="a key column",
        ),
    ],
)
def test_an_update_that_looks_beyond_its_partition_is_a_query_for_effects(bench: Any, sql: str, query: str) -> None:
    statement = bench.prepare(sql)
    assert isinstance(statement, WholeChange)
    assert statement.select.plan.local.sql == query


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE orders SET amount = 1 RETURNING id",
        "UPDATE orders SET id = 1",
        "UPDATE orders SET amount = (SELECT 1 FROM customers)",
        "WITH x AS (SELECT 1 AS one) UPDATE orders SET amount = (SELECT one FROM x)",
        "UPDATE orders SET amount = 1 FROM airlines",
    ],
)
def test_one_member_works_out(bench: Any, sql: str) -> None:
    assert isinstance(bench.prepare(sql), WholeChange)


def test_its_condition_prunes_as_that_of_a_query(bench: Any) -> None:
    statement = updated(bench, "UPDATE orders SET amount = amount + ? WHERE customer_id = ? AND id = ?", (1, "C1", 7))
    (scan,) = statement.select.plan.scans
    assert str(scan.tree) == "orders: (?1)"
    assert scan.keys.decides
    assert statement.select.params == (1, "C1", 7)


def test_without_parameters_it_can_be_explained_but_needs_all_of_them_to_run(bench: Any) -> None:
    assert updated(bench, "UPDATE orders SET amount = ? WHERE customer_id = ?").select.params is None
    with pytest.raises(ParameterError, match="has 2 parameters, 1 given"):
        bench.prepare("UPDATE orders SET amount = ? WHERE customer_id = ?", [1])


@pytest.mark.parametrize(
    ("sql", "kind", "message", "column"),
    [
        pytest.param("UPDATE orders WHERE id = 1", SqlSyntaxError, "expected SET", 15, id="no SET"),
        pytest.param("UPDATE orders SET", SqlSyntaxError, "expected a column", 18, id="no assignment"),
        pytest.param("UPDATE orders SET amount = ", SqlSyntaxError, "expected a value", 27, id="no value"),
        pytest.param("UPDATE orders SET amount = , day = NULL", SqlSyntaxError, "expected a value", 28, id="no value before a comma"),
        pytest.param("UPDATE orders SET amount 1", SqlSyntaxError, "expected =", 26, id="no equals sign"),
        pytest.param("UPDATE orders SET orders.amount = 1", SqlSyntaxError, "bare names", 25, id="a qualified column"),
        pytest.param("UPDATE orders SET (amount, day) = ROW(1)", ProgrammingError, "one value for each of the 2 columns", 35, id="too few values"),
        pytest.param("UPDATE orders SET (amount, day) = (1, NULL, 2)", ProgrammingError, "one value for each of the 2 columns", 35, id="too many values"),
        pytest.param("UPDATE orders SET (amount, day) = (SELECT 1, NULL)", ProgrammingError, "returns 2 columns - expected 1", 35, id="a query of two columns"),
        pytest.param("UPDATE orders SET (amount, amount) = (1, 2)", ProgrammingError, "assigned twice", 28, id="twice in a list"),
        pytest.param("UPDATE orders SET amount = 1 FROM", SqlSyntaxError, "expected a table", 34, id="from nothing"),
        pytest.param("UPDATE orders SET amount = c.scor FROM customers c", UnknownColumnError, "did you mean score?", 30, id="an unknown column of another"),
        pytest.param("UPDATE orders SET amount = unnest([1, 2]) FROM customers", ProgrammingError, "unnest() is not allowed", None, id="unnest with from"),
        pytest.param("UPDATE orders SET amount = 1 FROM customers GROUP BY ALL", SqlSyntaxError, 'at or near "GROUP"', 45, id="group by with from"),
        pytest.param("UPDATE orders SET amout = 1", UnknownColumnError, "did you mean amount?", 19, id="an unknown column"),
        pytest.param("UPDATE orders SET amount = amout", UnknownColumnError, "did you mean amount?", 28, id="an unknown column in a value"),
        pytest.param("UPDATE orders SET amount = 1, AMOUNT = 2", ProgrammingError, "'amount' is assigned twice", 31, id="twice"),
        pytest.param("UPDATE orders SET amount = 1 LIMIT 1", SqlSyntaxError, "does not parse", None, id="limit"),
        pytest.param("UPDATE orders SET amount = 1 WHERE id = 1 LIMIT 1", SqlSyntaxError, "nothing behind it", None, id="limit behind the condition"),
        pytest.param("UPDATE orders SET amount = 1) AS x, (2", SqlSyntaxError, "closes nothing", 29, id="a bracket too many"),
        pytest.param("UPDATE orders SET amount = row_number() OVER ()", ProgrammingError, "window functions", None, id="a window"),
        pytest.param("UPDATE orders SET amount = unnest([1, 2])", ProgrammingError, "unnest() is not allowed", None, id="unnest"),
        pytest.param("UPDATE orders SET amount = COLUMNS(*)", ProgrammingError, "COLUMNS(...) is not allowed", None, id="columns"),
        pytest.param("UPDATE orders SET amount = sum(id)", ProgrammingError, "sum() is not allowed in SET", 14, id="an aggregate"),
    ],
)
def test_mistakes(bench: Any, sql: str, kind: type[Error], message: str, column: int | None) -> None:
    with pytest.raises(kind) as caught:
        bench.prepare(sql)
    assert type(caught.value) is kind
    assert message in str(caught.value)
    if column is not None:
        assert caught.value.details["column"] == column
