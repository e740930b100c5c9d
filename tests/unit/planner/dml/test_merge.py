from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.row_effects import Meeting
from secateur.planner.statement import WholeChange

MERGE = "MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id"


def merged(bench: Any, sql: str, params: Any = ()) -> WholeChange:
    statement = bench.prepare(sql, params)
    assert isinstance(statement, WholeChange)
    assert statement.meeting is Meeting.REFUSED
    return statement


def test_a_merge_has_a_part_for_each_kind_of_rows(bench: Any) -> None:
    sql = (
        f"{MERGE} WHEN MATCHED THEN UPDATE SET name = c.name WHEN NOT MATCHED THEN INSERT (code) VALUES (c.customer_id) WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert merged(bench, sql).select.plan.local.sql == (
        'WITH "source rows" AS MATERIALIZED (SELECT * FROM s0 AS c) '
        'SELECT CAST(\'UPDATE\' AS VARCHAR) AS "action", "a"."code" AS "old 0", CAST(("a"."code") AS VARCHAR) AS "code", '
        'CAST((CAST((c.name) AS VARCHAR)) AS VARCHAR) AS "name" FROM s1 AS "a" JOIN "source rows" AS "c" ON (a.code = c.customer_id) '
        'UNION ALL SELECT CAST(\'INSERT\' AS VARCHAR) AS "action", CAST(NULL AS VARCHAR) AS "old 0", '
        'CAST((CAST((c.customer_id) AS VARCHAR)) AS VARCHAR) AS "code", CAST((NULL) AS VARCHAR) AS "name" '
        'FROM (SELECT "c".* FROM "source rows" AS "c" LEFT JOIN s2 AS "a" ON (a.code = c.customer_id) WHERE "a"."code" IS NULL) AS "c" '
        'UNION ALL SELECT CAST(\'DELETE\' AS VARCHAR) AS "action", "a"."code" AS "old 0", CAST(("a"."code") AS VARCHAR) AS "code", '
        'CAST(("a"."name") AS VARCHAR) AS "name" FROM (SELECT "a".* FROM s3 AS "a" LEFT JOIN (SELECT *, TRUE AS "is source" FROM "source rows") AS "c" '
        'ON (a.code = c.customer_id) WHERE "c"."is source" IS NULL) AS "a"'
    )


def test_of_the_clauses_of_one_kind_the_first_decides(bench: Any) -> None:
    sql = f"{MERGE} WHEN MATCHED AND score > ? THEN DELETE WHEN MATCHED AND score > ? THEN DO NOTHING WHEN MATCHED THEN UPDATE SET name = 'x'"
    assert (
        "SELECT CAST(CASE WHEN (score > $1) THEN 'DELETE' WHEN (score > $2) THEN NULL ELSE 'UPDATE' END AS VARCHAR) AS \"action\""
        in merged(bench, sql, [5, 2]).select.plan.local.sql
    )


@pytest.mark.parametrize(
    ("source", "alias"),
    [("customers", "customers"), ("customers x", "x"), ("(SELECT * FROM customers) x", "x"), ("(VALUES ('a', 'b')) AS x(customer_id, name)", "x")],
)
def test_sources(bench: Any, source: str, alias: str) -> None:
    text = merged(bench, f"MERGE INTO airlines USING {source} ON code = customer_id WHEN MATCHED THEN DELETE").select.plan.local.sql
    assert f'JOIN "source rows" AS "{alias}" ON (code = customer_id)' in text
