from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.row_effects import Meeting
from secateur.errors import Error, ProgrammingError, SqlSyntaxError, UnknownColumnError
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


@pytest.mark.parametrize(
    ("sql", "params", "tree", "is_narrow"),
    [
        pytest.param("VALUES (?, ?, NULL, 1, NULL) {u}", ["C1", 1], "orders: (CAST(?0 AS VARCHAR))", True, id="a row"),
        pytest.param("VALUES ('C1', 1, NULL, 1, NULL), ('C1', 2, NULL, 1, NULL) {u}", [], "orders: (p9)", True, id="rows of one partition"),
        pytest.param("VALUES (lower(?), 1, NULL, 1, NULL) {u}", ["C1"], "orders: all", False, id="a computed key is computed once"),
        pytest.param("VALUES (?, 1, NULL, 1, NULL) {u} RETURNING id", ["C1"], "orders: (CAST(?0 AS VARCHAR))", False, id="rows to return"),
        pytest.param("VALUES (?, 1, NULL, 1, NULL) ON CONFLICT DO UPDATE SET id = 2", ["C1"], "orders: (CAST(?0 AS VARCHAR))", False, id="another key"),
        pytest.param("SELECT 'C1', 1, NULL, 1, NULL {u}", [], "orders: all", False, id="a query"),
    ],
)
def test_where_it_runs(bench: Any, sql: str, params: list[Any], tree: str, is_narrow: bool) -> None:
    statement = changed(bench, f"INSERT INTO orders {sql.format(u='ON CONFLICT DO UPDATE SET amount = excluded.amount')}", params)
    expected = tree.replace("p9", f"p{bench.partition('orders', customer_id='C1')}")
    assert [str(scan.tree) for scan in statement.select.plan.scans] == [expected]
    assert statement.is_narrow is is_narrow


def test_rows_to_return_of_a_plain_insertion_need_no_look_at_the_table(bench: Any) -> None:
    statement = changed(bench, "INSERT INTO airlines (code) VALUES ('AA') RETURNING code")
    assert statement.select.plan.scans == ()
    assert statement.meeting is Meeting.REFUSED


@pytest.mark.parametrize(
    ("sql", "kind", "message", "column"),
    [
        pytest.param("VALUES ('a', 'b') ON CONFLICT DO UPDATE SET nam = 1", UnknownColumnError, "did you mean name?", 66, id="unknown column"),
        pytest.param("VALUES ('a', 'b') ON CONFLICT DO UPDATE SET name = excluded.nam", Error, "nam", None, id="unknown column of the row"),
        pytest.param("VALUES ('a', 'b') ON CONFLICT DO UPDATE name = 1", SqlSyntaxError, "expected SET", 62, id="no SET"),
        pytest.param("VALUES ('a', 'b') ON CONFLICT (nam) DO NOTHING", UnknownColumnError, "did you mean name?", 53, id="unknown column of the key"),
        pytest.param("VALUES ('a', 'b') ON CONFLICT (code) WHERE true DO NOTHING", Error, "a condition on the conflict itself", 59, id="a partial index"),
        pytest.param("VALUES ('a', 'b') RETURNING sum(1)", ProgrammingError, "of the changed row alone", 50, id="an aggregate"),
    ],
)
def test_mistakes(bench: Any, sql: str, kind: type[Error], message: str, column: int | None) -> None:
    with pytest.raises(kind) as caught:
        bench.prepare(f"INSERT INTO airlines {sql}")
    assert message in str(caught.value)
    if column is not None:
        assert caught.value.details["column"] == column
