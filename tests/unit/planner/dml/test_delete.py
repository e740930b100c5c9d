from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.row_effects import Meeting
from secateur.errors import Error, NotSupportedError, ProgrammingError, SqlSyntaxError, UnknownColumnError, UnknownTableError
from secateur.planner.statement import ChangeKind, ChangeStatement, WholeChange


def deleted(bench: Any, sql: str, params: Any = ()) -> ChangeStatement:
    statement = bench.prepare(sql, params)
    assert isinstance(statement, ChangeStatement)
    assert statement.kind is ChangeKind.DELETE
    return statement


@pytest.mark.parametrize(
    ("sql", "query"),
    [
        pytest.param(
            "DELETE FROM airlines USING customers AS c WHERE c.name = airlines.code",
            'SELECT CAST(\'DELETE\' AS VARCHAR) AS "action", "airlines"."code" AS "old 0", CAST((NULL) AS VARCHAR) AS "code", '
            'CAST((NULL) AS VARCHAR) AS "name" '
            'FROM s0 AS c, s1 AS "airlines" WHERE c.name = airlines.code',
            id="using",
        ),
        pytest.param(
            "WITH x AS (SELECT 'a' AS k) DELETE FROM airlines WHERE code IN (SELECT k FROM x) RETURNING name",
            "WITH x AS (SELECT 'a' AS k) "
            'SELECT CAST(\'DELETE\' AS VARCHAR) AS "action", "airlines"."code" AS "old 0", CAST(("airlines"."code") AS VARCHAR) AS "code", '
            'CAST(("airlines"."name") AS VARCHAR) AS "name" FROM s0 AS "airlines" WHERE code IN (SELECT k FROM x)',
            id="a common table expression, and rows to return",
        ),
    ],
)
def test_a_deletion_that_looks_beyond_its_partition_is_a_query_for_effects(bench: Any, sql: str, query: str) -> None:
    statement = bench.prepare(sql)
    assert isinstance(statement, WholeChange)
    assert statement.select.plan.local.sql == query
    assert statement.meeting is Meeting.FIRST
    assert not statement.is_narrow


def test_a_subquery_over_partitions_is_for_one_member(bench: Any) -> None:
    assert isinstance(bench.prepare("DELETE FROM orders WHERE id IN (SELECT id FROM orders)"), WholeChange)


def test_what_is_returned_is_a_query_over_the_table(bench: Any) -> None:
    returning = bench.prepare("DELETE FROM orders o WHERE id = ? RETURNING o.id + ? AS more", [1, 2]).returning
    assert returning.plan.columns == (("more", "BIGINT"),)
    assert returning.plan.local.sql == 'SELECT o.id + $2 AS more FROM s0 AS "o"'


@pytest.mark.parametrize(
    ("sql", "query"),
    [
        pytest.param("DELETE FROM airlines", 'FROM s0 AS "airlines" SELECT "airlines"."code"', id="everything"),
        pytest.param("delete from Airlines where name = 'x'", 'FROM s0 AS "Airlines" SELECT "Airlines"."code" where name = \'x\'', id="case"),
        pytest.param("DELETE FROM airlines a WHERE a.name = ?", 'FROM s0 AS "a" SELECT "a"."code" WHERE a.name = $1', id="an alias"),
        pytest.param('DELETE FROM airlines AS "where" WHERE true', 'FROM s0 AS "where" SELECT "where"."code" WHERE true', id="a quoted alias"),
        pytest.param("DELETE FROM airlines -- all\n;", 'FROM s0 AS "airlines" SELECT "airlines"."code"', id="a comment"),
        pytest.param("TRUNCATE airlines", 'FROM s0 AS "airlines" SELECT "airlines"."code"', id="truncate"),
        pytest.param("TRUNCATE TABLE airlines;", 'FROM s0 AS "airlines" SELECT "airlines"."code"', id="truncate table"),
    ],
)
def test_a_deletion_is_a_query_for_keys(bench: Any, sql: str, query: str) -> None:
    statement = deleted(bench, sql, ["x"] if "?" in sql else ())
    assert statement.table.name == "airlines"
    assert statement.select.plan.local.sql == query
    assert statement.select.plan.columns == (("code", "VARCHAR"),)


@pytest.mark.parametrize(
    ("where", "tree"),
    [
        ("customer_id = $1", "orders: (?0)"),
        ("customer_id = $1 AND id = $2 AND amount > 1", "orders: (?0)"),
        ("NOT customer_id = $1", "orders: all"),
        ("amount = 1 OR customer_id = $1", "orders: all"),
    ],
)
def test_its_condition_prunes_as_that_of_a_query(bench: Any, where: str, tree: str) -> None:
    statement = deleted(bench, f"DELETE FROM orders WHERE {where}", ["C1", 2] if "$2" in where else ["C1"])
    assert str(statement.select.plan.scans[0].tree) == tree
    assert bench.trees(f"SELECT customer_id, id FROM orders WHERE {where}", ["C1", 2] if "$2" in where else ["C1"]) == [tree]


def test_a_subquery_may_read_a_replicated_table(bench: Any) -> None:
    statement = deleted(bench, "DELETE FROM orders WHERE priority IN (SELECT code FROM airlines)")
    assert [scan.replicated for scan in statement.select.plan.scans] == [False, True]


@pytest.mark.parametrize(
    ("sql", "kind", "message", "column"),
    [
        pytest.param("DELETE orders", SqlSyntaxError, "expected FROM", 8, id="no FROM"),
        pytest.param("DELETE FROM", SqlSyntaxError, "expected the name of a table", 12, id="no table"),
        pytest.param("DELETE FROM ordrs", UnknownTableError, "'ordrs' does not exist", 13, id="an unknown table"),
        pytest.param("DELETE FROM other.orders", NotSupportedError, "a schema in front", 13, id="a schema"),
        pytest.param("DELETE FROM orders WHERE amout = 1", UnknownColumnError, "did you mean amount?", 26, id="an unknown column"),
        pytest.param("DELETE FROM orders AS o(a) WHERE a = 1", NotSupportedError, "a list of columns behind the table", 24, id="renamed columns"),
        pytest.param("DELETE FROM orders, customers", SqlSyntaxError, "expected USING, WHERE", 19, id="two tables"),
        pytest.param("DELETE FROM orders WHERE id = 1 ORDER BY id", SqlSyntaxError, "nothing behind it", None, id="order by"),
        pytest.param("DELETE FROM orders WHERE id = 1 LIMIT 1", SqlSyntaxError, "nothing behind it", None, id="limit"),
        pytest.param("DELETE FROM orders WHERE id = 1 GROUP BY ALL", SqlSyntaxError, "nothing behind it", None, id="group by"),
        pytest.param("DELETE FROM orders WHERE true UNION SELECT 'a', 1", SqlSyntaxError, "nothing behind it", None, id="a set operation"),
        pytest.param("DELETE FROM orders WHERE", SqlSyntaxError, "does not parse", None, id="no condition"),
        pytest.param("DELETE FROM orders RETURNING amout", UnknownColumnError, "did you mean amount?", 30, id="an unknown column to return"),
        pytest.param("DELETE FROM orders RETURNING count(*)", ProgrammingError, "of the changed row alone", 30, id="an aggregate to return"),
        pytest.param("DELETE FROM orders RETURNING (SELECT 1)", ProgrammingError, "of the changed row alone", 30, id="a subquery to return"),
        pytest.param("DELETE FROM orders RETURNING", SqlSyntaxError, "expected a value", 29, id="nothing to return"),
        pytest.param("DELETE FROM orders USING WHERE true", SqlSyntaxError, "expected a table", 26, id="no table to use"),
        pytest.param("DELETE FROM orders USING nowhere WHERE true", UnknownTableError, "'nowhere' does not exist", 26, id="an unknown table to use"),
        pytest.param("DELETE FROM orders USING customers c WHERE c.nam = 'x'", UnknownColumnError, "did you mean name?", 46, id="an unknown column there"),
        pytest.param("DELETE FROM orders USING customers LIMIT 1", SqlSyntaxError, 'at or near "LIMIT"', 36, id="limit behind the tables"),
        pytest.param("DELETE FROM orders WHERE sum(id) > 1", ProgrammingError, "cannot contain aggregates", None, id="an aggregate"),
        pytest.param("TRUNCATE orders WHERE id = 1", SqlSyntaxError, "expected the end", 17, id="truncate with a condition"),
    ],
)
def test_mistakes(bench: Any, sql: str, kind: type[Error], message: str, column: int | None) -> None:
    with pytest.raises(kind) as caught:
        bench.prepare(sql)
    assert type(caught.value) is kind
    assert message in str(caught.value)
    if column is not None:
        assert caught.value.details["column"] == column
