from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import ParameterError
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
