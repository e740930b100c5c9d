from __future__ import annotations

from typing import Any

from secateur.engine.row_effects import Meeting
from secateur.planner.statement import WholeChange


def changed(bench: Any, sql: str, params: Any = ()) -> WholeChange:
    statement = bench.prepare(sql, params)
    assert isinstance(statement, WholeChange)
    return statement


def test_the_row_that_is_there_is_looked_for_by_its_key(bench: Any) -> None:
    statement = changed(
        bench, "INSERT INTO airlines AS a VALUES (?, 'x') ON CONFLICT DO UPDATE SET name = a.name || excluded.name WHERE name <> ?", ["AA", "y"]
    )
    assert statement.select.plan.local.sql == (
        'SELECT CAST(CASE WHEN "a"."code" IS NULL THEN \'INSERT\' ELSE \'UPDATE\' END AS VARCHAR) AS "action", "a"."code" AS "old 0", '
        'CAST((CASE WHEN "a"."code" IS NULL THEN excluded."code" ELSE "a"."code" END) AS VARCHAR) AS "code", '
        'CAST((CASE WHEN "a"."code" IS NULL THEN excluded."name" ELSE CAST((a.name || excluded.name) AS VARCHAR) END) AS VARCHAR) AS "name" '
        'FROM (SELECT {\'code\': "code", \'name\': "name"} AS excluded FROM (VALUES (CAST($1 AS VARCHAR), CAST(\'x\' AS VARCHAR))) AS v("code", "name")) '
        'AS "source row" LEFT JOIN (SELECT * FROM s0 AS "airlines" WHERE ("code" = CAST($1 AS VARCHAR))) AS "a" ON "a"."code" = excluded."code" '
        'WHERE "a"."code" IS NULL OR (name <> $2)'
    )
    assert statement.meeting is Meeting.FIRST


def test_rows_to_return_of_a_plain_insertion_need_no_look_at_the_table(bench: Any) -> None:
    statement = changed(bench, "INSERT INTO airlines (code) VALUES ('AA') RETURNING code")
    assert statement.select.plan.scans == ()
    assert statement.meeting is Meeting.REFUSED
