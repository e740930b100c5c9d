"""A bound plan is printed as the query that it is the plan of."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from bound_statements import FILES, bound, queries, rows_of

from secateur.engine.kernels.duckdb import default_kernel
from secateur.planner.binding import BoundPlan, bind_to_plan
from secateur.planner.tree import BoundText, Unprintable, column_types, sql_of
from secateur.planner.tree.columns import expressions_of, relations_in
from secateur.planner.tree.expression_sql import value_sql
from secateur.planner.tree.expressions import BoundValue
from secateur.planner.tree.types import LogicalType

# Of a query whose rows differ each time nothing can be compared.
_VOLATILE = ("random()", "uuid", "now()", "current_", "localtime", "TABLESAMPLE", "USING SAMPLE")


def whole_name(scan: Any) -> str:
    return ".".join(f'"{part}"' for part in scan.function_data["qualified_name"]["path"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_printed_plan_has_the_rows_and_types_of_the_query(path: Path) -> None:
    compared = 0
    for duck, sql in queries(path):
        plan = bound(duck, sql)
        if plan is None or any(word in sql for word in _VOLATILE):
            continue
        try:
            written = (one for relation in relations_in(plan) for one in expressions_of(relation))
            text = sql_of(plan, whole_name, BoundText.of(sql, frozenset(), written))
        except Unprintable:
            continue
        rows, types = rows_of(duck, sql)
        try:
            answer = rows_of(duck, text)
        except duckdb.InternalException:  # of DuckDB 2.0.0, for unnest(range(k)) behind a join
            return
        assert answer == (rows, types), f"{sql}\n{text}"
        assert len(column_types(plan)) == len(types)
        compared += 1
    assert compared


TABLES = {"s0": {"k": "INTEGER", "b": "BIGINT", "m": "DECIMAL(10,2)", "s": "VARCHAR", "l": "INTEGER[]"}}


def printed(sql: str, *values: object) -> str:
    plan = bind_to_plan(default_kernel(), sql, TABLES, values)
    assert isinstance(plan, BoundPlan)
    return sql_of(plan.root, lambda scan: str(scan.table), plan.text)


@pytest.mark.parametrize(
    ("sql", "values", "text"),
    [
        pytest.param(
            "SELECT k FROM s0 WHERE b = 3", (), 'SELECT t1."k" FROM s0 AS t1 WHERE (t1."b" = 3)', id="literal"
        ),
        pytest.param(
            "SELECT k FROM s0 WHERE m = $1", (5,), 'SELECT t1."k" FROM s0 AS t1 WHERE (t1."m" = $1)', id="bare"
        ),
        pytest.param(
            "SELECT k FROM s0 WHERE m = $1::DECIMAL(4,1) + 0.1",
            (5,),
            'SELECT t1."k" FROM s0 AS t1 WHERE (t1."m" = (CAST($1 AS DECIMAL(4,1)) + 0.1))',
            id="a cast of the user's",
        ),
        pytest.param(
            "SELECT k FROM s0 WHERE k = CAST($1 AS INTEGER)",
            (5,),
            'SELECT t1."k" FROM s0 AS t1 WHERE (t1."k" = CAST($1 AS INTEGER))',
            id="a cast of the user's to the type that the value has",
        ),
        pytest.param(
            "SELECT k FROM s0 WHERE k = TRY_CAST($1 AS INTEGER)",
            (5,),
            'SELECT t1."k" FROM s0 AS t1 WHERE (t1."k" = TRY_CAST($1 AS INTEGER))',
            id="TRY_CAST to the type that the value has",
        ),
        pytest.param(
            "SELECT (m + $1)::DECIMAL(11,2) * 2 AS twice, CAST(b * 3 + $2 AS BIGINT) AS much, b + 1 AS next FROM s0",
            (Decimal("1.50"), 5),
            'SELECT (CAST((t1."m" + $1) AS DECIMAL(11,2)) * 2) AS "twice",'
            ' CAST(((t1."b" * 3) + $2) AS BIGINT) AS "much", (t1."b" + 1) AS "next" FROM s0 AS t1',
            id="a cast that does nothing to the type of this value, and something to those of others",
        ),
        pytest.param(
            "SELECT k::BIGINT AS big FROM s0 WHERE b = k",
            (),
            'SELECT CAST(t1."k" AS BIGINT) AS "big" FROM s0 AS t1 WHERE (t1."b" = t1."k")',
            id="only the user's casts of columns",
        ),
        pytest.param(
            "SELECT m::BIGINT AS c FROM s0 WHERE c = b AND m = k",
            (),
            'SELECT CAST(t1."m" AS BIGINT) AS "c" FROM s0 AS t1'
            ' WHERE (CAST(t1."m" AS BIGINT) = t1."b") AND (t1."m" = t1."k")',
            id="the user's cast behind an alias",
        ),
        pytest.param(
            "SELECT m::BIGINT AS m, alias.m = k AS same FROM s0 WHERE m = k",
            (),
            'SELECT CAST(t1."m" AS BIGINT) AS "m", (CAST(t1."m" AS BIGINT) = t1."k") AS "same" FROM s0 AS t1'
            ' WHERE (t1."m" = t1."k")',
            id="an alias with the name of its column",
        ),
        pytest.param(
            "SELECT k FROM s0 WHERE date(s) = s::DATE",
            (),
            'SELECT t1."k" FROM s0 AS t1 WHERE (CAST(t1."s" AS DATE) = CAST(t1."s" AS DATE))',
            id="a cast that looks like a call",
        ),
        pytest.param(
            "SELECT sum(m)::BIGINT AS c, SUM(m) + 0.5 AS d FROM s0 HAVING c > 3 AND sum(m) > 4.25",
            (),
            'SELECT CAST(sum(t1."m") AS BIGINT) AS "c", (sum(t1."m") + 0.5) AS "d" FROM s0 AS t1'
            ' HAVING (CAST(sum(t1."m") AS BIGINT) > 3) AND (sum(t1."m") > 4.25)',
            id="casts of an aggregate",
        ),
        pytest.param(
            "SELECT list_filter(l, lambda e, i: e > k + i) FROM s0",
            (),
            'SELECT list_filter(t1."l", lambda p2, p3: (p2 > (t1."k" + p3))) AS "c0" FROM s0 AS t1',
            id="a lambda with two parameters and a column",
        ),
        pytest.param(
            "SELECT 1 AS one, count(*) FROM s0 GROUP BY one ORDER BY one",
            (),
            'SELECT CAST(1 AS INTEGER) AS "one", count(*) AS "count_star" FROM s0 AS t1 GROUP BY CAST(1 AS INTEGER)'
            " ORDER BY CAST(1 AS INTEGER) NULLS LAST",
            id="a constant is no position",
        ),
        pytest.param(
            "SELECT DISTINCT ON (c) list(k ORDER BY c), c FROM (SELECT k, 'x' AS c FROM s0) GROUP BY c",
            (),
            "SELECT DISTINCT ON (CAST('x' AS VARCHAR)) list(t1.\"k\" ORDER BY CAST('x' AS VARCHAR) NULLS LAST) AS"
            " \"list\", CAST('x' AS VARCHAR) AS \"c\" FROM s0 AS t1 GROUP BY CAST('x' AS VARCHAR)",
            id="a constant in the place of a column is no position either",
        ),
        pytest.param(
            "SELECT list(k ORDER BY c) FROM (SELECT k, -1::DOUBLE AS c FROM s0)",
            (),
            'SELECT list(t1."k" ORDER BY CAST((- 1.0e0) AS DOUBLE) NULLS LAST) AS "list" FROM s0 AS t1',
            id="nor is a constant with a sign",
        ),
        pytest.param(
            "SELECT DISTINCT ON (k, p) k, p FROM (SELECT k, $1 AS p FROM s0)",
            ("x",),
            'SELECT DISTINCT ON (t1."k", CAST($1 AS VARCHAR)) t1."k", $1 AS "p" FROM s0 AS t1',
            id="nor is a parameter",
        ),
        pytest.param(
            "SELECT '?' FROM (SELECT count(*), sum(k) FROM s0)",
            (),
            "SELECT '?' AS \"c0\" FROM s0 AS t1 GROUP BY ()",
            id="one row of which nothing is read",
        ),
    ],
)
def test_texts(sql: str, values: tuple[object, ...], text: str) -> None:
    assert printed(sql, *values) == text


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize(("type_", "number"), [("DATE", 2**31 - 1), ("TIMESTAMP", 2**63 - 1)])
def test_the_ends_of_time_are_constants(type_: str, number: int, sign: str) -> None:
    """DuckDB makes constants of some lists when it binds them."""
    value = BoundValue(type=LogicalType(type_), value=int(f"{sign}{number}"))
    text = value_sql(value, LogicalType(type_))
    assert duckdb.sql(f"SELECT {text} = '{sign}infinity'::{type_}").fetchall() == [(True,)]


def test_a_text_that_is_compared_with_a_number_has_a_plan() -> None:
    assert printed("SELECT k FROM s0 WHERE k = $1 AND s = $2", "5", "x").endswith('(t1."k" = $1) AND (t1."s" = $2)')


def test_rows_of_unnest_stay_where_nothing_reads_them() -> None:
    text = printed("SELECT count(*) FROM s0, (SELECT unnest([1, 2]))")
    duck = duckdb.connect()
    duck.execute("CREATE TABLE s0 AS SELECT 1 AS k FROM range(3)")
    assert duck.execute(text).fetchall() == [(6,)]


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT k FROM s0 TABLESAMPLE 10 ROWS", id="sample"),
        pytest.param("SELECT sum(k) OVER (ORDER BY b RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM s0", id="range"),
        pytest.param("SELECT k FROM s0 LIMIT (SELECT max(k) FROM s0)", id="limit"),
    ],
)
def test_what_has_no_text_of_its_own(sql: str) -> None:
    plan = bind_to_plan(default_kernel(), sql, TABLES, ())
    if isinstance(plan, BoundPlan):
        with pytest.raises(Unprintable):
            sql_of(plan.root, lambda scan: str(scan.table), plan.text)
    else:
        assert plan.reason


def test_no_stages_are_made_of_a_collation() -> None:
    plan = bind_to_plan(default_kernel(), "SELECT k FROM s0 WHERE s COLLATE NOCASE = 'a'", TABLES, ())
    assert isinstance(plan, BoundPlan)
    assert plan.whole is not None
    assert "COLLATE" in plan.whole
