from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.row_effects import Meeting
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
