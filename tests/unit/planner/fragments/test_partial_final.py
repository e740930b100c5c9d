"""Statements cut in two: each is answered whole by DuckDB and in two stages over split data, and the answers are equal,
types included.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from secateur.engine.kernels import run
from secateur.engine.kernels.duckdb import default_kernel
from secateur.engine.sql import SelectPlan, Strategy
from secateur.planner.binding import bind_query
from secateur.planner.fragments import NotDistributable, split_select
from secateur.planner.text import read_parameters, read_statement, tokenize

TABLE = (
    "CREATE TABLE facts (k INTEGER, g VARCHAR, i BIGINT, s SMALLINT, h HUGEINT, d DOUBLE, f FLOAT, p DECIMAL(12,3), b"
    " BOOLEAN, day DATE, t TIMESTAMP, PRIMARY KEY (k)) PARTITION BY HASH (k) PARTITIONS 8"
)
ROWS = """
    SELECT k::INTEGER AS k,
           CASE WHEN k % 11 = 0 THEN NULL ELSE chr(97 + (k * 7 % 5)::INTEGER) END AS g,
           CASE WHEN k % 7 = 0 THEN NULL ELSE k * 37 % 101 - 50 END AS i,
           (k % 9)::SMALLINT AS s,
           (k * 1000000007)::HUGEINT AS h,
           (k % 13) / 4.0 AS d,
           ((k % 5) / 2.0)::FLOAT AS f,
           (k % 17 / 8.0)::DECIMAL(12,3) AS p,
           CASE WHEN k % 3 = 0 THEN NULL ELSE k % 2 = 0 END AS b,
           DATE '2024-01-01' + (k % 40)::INTEGER AS day,
           TIMESTAMP '2024-01-01 00:00:00' + to_hours(k) AS t
    FROM range(1, 301) AS r(k)
"""


@functools.cache
def rows() -> pa.Table:
    return default_kernel().run(ROWS, {})


def facts(context: Any) -> pa.Table:
    table = rows()
    return pa.Table.from_arrays(
        table.columns, schema=pa.schema([field.with_nullable(True) for field in context.table("facts").arrow_schema])
    )


def two_stage(plan: SelectPlan, table: pa.Table, params: Any, stages: int) -> pa.Table:
    """As if row k were at member k modulo ``stages``; 0 stages: nobody has anything."""
    scan, (partial, final) = plan.scans[0], (stage.fragment for stage in plan.stages)
    parts = []
    for member in range(stages):
        rows = (
            table.take(pa.array([row for row in range(table.num_rows) if row % stages == member], pa.int64()))
            if stages > 1
            else table
        )
        parts.append(run(partial, {scan.relation: rows.select(list(scan.columns))}, params))
    gathered = pa.concat_tables(parts) if parts else partial.schema.empty_table()
    return run(final, {"x0": gathered}, params)


CUT = [
    "SELECT * FROM facts",
    "SELECT k, i + 1 AS j, upper(g) FROM facts WHERE i > 0 AND g <> 'a'",
    "SELECT count(*) FROM facts",
    "SELECT count(*), count(i), count(g), sum(i), sum(s), sum(h), sum(p), min(g), max(day), min(t) FROM facts",
    "SELECT bool_and(b), bool_or(b), bit_and(s), bit_or(s), bit_xor(s) FROM facts",
    "SELECT g, count_star(), count_star() FILTER (WHERE i > 0) FROM facts GROUP BY g ORDER BY count_star(), g",
    "SELECT avg(i), avg(s), avg(p), avg(d), avg(f), sum(d), sum(f), avg(h) FROM facts",
    "SELECT g, count(*), sum(i), avg(p) FROM facts GROUP BY g ORDER BY g",
    "SELECT g AS x, b, count(*) AS n FROM facts GROUP BY ALL ORDER BY ALL",
    "SELECT count(*) AS n, g FROM facts GROUP BY 2 HAVING n > 40 ORDER BY n DESC, g LIMIT 3",
    "SELECT g || '!' AS shout, sum(i) / count(*) AS ratio FROM facts GROUP BY g ORDER BY shout",
    "SELECT upper(g) AS u, max(k) - min(k) AS spread FROM facts GROUP BY upper(g) ORDER BY spread DESC, u",
    "SELECT date_trunc('month', day) AS m, count(*) FROM facts GROUP BY date_trunc('month', day) ORDER BY m",
    (
        "SELECT CASE WHEN k % 2 = 0 THEN 'even' ELSE 'odd' END AS parity, count(*) FROM facts GROUP BY parity ORDER BY"
        " parity"
    ),
    "SELECT count(*) FILTER (WHERE i > 0), sum(i) FILTER (WHERE b), count(*) FILTER (WHERE FALSE) FROM facts",
    "SELECT g FROM facts GROUP BY g ORDER BY sum(k)",
    "SELECT g, s FROM facts GROUP BY g, s HAVING count(*) > 5 ORDER BY g, s",
    "SELECT sum(i) + 1, coalesce(sum(i), 0) FROM facts WHERE FALSE",
    "SELECT g, count(*) FROM facts WHERE k < 0 GROUP BY g",
    "SELECT DISTINCT g, s FROM facts ORDER BY s DESC, g",
    "SELECT DISTINCT g FROM facts ORDER BY g LIMIT 3 OFFSET 1",
    "SELECT DISTINCT count(*) FROM facts GROUP BY g ORDER BY 1",
    "SELECT DISTINCT ON (g) g, k FROM facts ORDER BY g, k",
    "SELECT DISTINCT ON (g, i % 2) k, i + 1 AS n FROM facts ORDER BY i % 2 DESC, g NULLS FIRST, n, -k LIMIT 3 OFFSET 1",
    "SELECT DISTINCT ON (1) g AS x, k FROM facts ORDER BY k DESC LIMIT 2",
    "SELECT g, i, count(*) FROM facts GROUP BY g, i HAVING count(DISTINCT g) >= 0",
    "SELECT g, -sum(k) AS k FROM facts GROUP BY g ORDER BY k, g",
    "SELECT -k AS k, i FROM facts ORDER BY k LIMIT 3",
    "SELECT k FROM facts ORDER BY k DESC LIMIT 7",
    "SELECT k, g FROM facts ORDER BY g, k LIMIT 7 OFFSET 20",
    "SELECT k, g FROM facts ORDER BY g DESC NULLS FIRST, -k LIMIT 7",
    "SELECT k AS a, i AS b1 FROM facts ORDER BY b1 + a, a LIMIT 9",
    "SELECT k FROM facts ORDER BY i, k LIMIT 5",
    "SELECT k FROM facts LIMIT 0",
    "FROM facts SELECT sum(k)",
    "SELECT f.k, f.g FROM facts f WHERE f.k = 3",
    "SELECT 'x', 5, NULL, count(*) FROM facts GROUP BY 1, 2",
    "SELECT g, sum(i)::VARCHAR || 'x' FROM facts GROUP BY g ORDER BY g",
    "SELECT round(avg(d), 2), sum(k) * 1.5, -sum(k), sum(k) BETWEEN 1 AND 5 FROM facts",
]


@pytest.mark.parametrize("stages", [0, 1, 3])
@pytest.mark.parametrize("sql", CUT)
def test_two_stages_answer_as_one(context: Any, sql: str, stages: int) -> None:
    context.create(TABLE)
    table = facts(context) if stages else facts(context).slice(0, 0)
    statement = context.select(sql)
    plan = SelectPlan.decoded(statement.plan.plan_id, statement.plan.encoded())
    assert plan.strategy is Strategy.TWO_STAGE, plan.gather_reason
    _compare(plan, table, (), stages, ordered="ORDER BY" in sql)


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        (
            "SELECT g, count(*), sum(i + ?) FROM facts WHERE k > ? GROUP BY g HAVING count(*) > ? ORDER BY g LIMIT ?",
            [1, 10, 2, 3],
        ),
        ("SELECT k FROM facts ORDER BY k LIMIT ? OFFSET ?", [5, 7]),
        ("SELECT k FROM facts ORDER BY k LIMIT ? OFFSET ?", [None, 295]),
        ("SELECT k FROM facts ORDER BY k LIMIT ? OFFSET ?", [5, None]),
        ("SELECT k, $name AS n FROM facts WHERE g = $g ORDER BY k", {"g": "a", "name": "x"}),
        ("SELECT k % ? AS m, count(*) FROM facts GROUP BY m ORDER BY m", [3]),
    ],
)
def test_parameters_reach_both_stages(context: Any, sql: str, params: Any) -> None:
    context.create(TABLE)
    statement = context.select(sql, params)
    assert statement.plan.strategy is Strategy.TWO_STAGE, statement.plan.gather_reason
    _compare(statement.plan, facts(context), statement.params, 3, ordered=True)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        pytest.param(
            "SELECT list(k ORDER BY k) FROM facts", "list() has no partial aggregation", id="ordered aggregate"
        ),
        pytest.param("SELECT median(d) FROM facts", "median() has no partial aggregation", id="holistic aggregate"),
        pytest.param("SELECT min(k, 2) FROM facts", "has no partial aggregation", id="two arguments"),
        pytest.param("SELECT avg(t) FROM facts", "is not a quotient", id="average of instants"),
        pytest.param("SELECT main.bool_and(b) FROM facts", "neither grouped nor aggregated", id="call behind a schema"),
        pytest.param("SELECT k, row_number() OVER (ORDER BY k) FROM facts", "a window function", id="window"),
        pytest.param(
            "SELECT k FROM facts QUALIFY row_number() OVER (PARTITION BY g ORDER BY k) = 1",
            "a window function",
            id="qualify",
        ),
        pytest.param(
            "SELECT DISTINCT ON (g) g, max(k) FROM facts GROUP BY g, i ORDER BY g, 2",
            "DISTINCT ON of groups",
            id="distinct on",
        ),
        pytest.param(
            "SELECT count(DISTINCT i ORDER BY i) FROM facts", "has no partial aggregation", id="ordered distinct"
        ),
        pytest.param("SELECT k FROM facts ORDER BY k LIMIT 10%", "LIMIT has a form", id="percentage"),
        pytest.param(
            "SELECT k FROM facts ORDER BY k LIMIT 1 + 1", "neither a number nor a parameter", id="computed limit"
        ),
        pytest.param("SELECT (SELECT max(k) FROM facts) FROM facts", "more than one table", id="scalar subquery"),
        pytest.param(
            "SELECT count(*) FROM (SELECT DISTINCT g FROM facts)", "does not read one table plainly", id="derived table"
        ),
        pytest.param("SELECT k FROM facts UNION SELECT k FROM facts", "more than one table", id="union"),
        pytest.param(
            "SELECT i AS k, count(*) FROM facts GROUP BY k, i ORDER BY i + k",
            "another of the SELECT list",
            id="a shadowed name",
        ),
        pytest.param(
            "SELECT i AS z, k AS z FROM facts ORDER BY z",
            "have one alias",
            id="one alias twice, of which ORDER BY means the last",
        ),
        pytest.param(
            "SELECT k AS a, a + 1 AS b FROM facts", "refers to another column of the SELECT list", id="a lateral alias"
        ),
        pytest.param("SELECT * EXCLUDE (h) FROM facts", "changes the columns", id="exclude"),
        pytest.param(
            "SELECT DISTINCT g FROM facts ORDER BY k", "not in the SELECT list", id="distinct ordered by another"
        ),
        pytest.param("SELECT k, g FROM facts AS x(g, k)", "renamed in FROM", id="swapped names"),
    ],
)
def test_what_is_not_cut_says_why(context: Any, sql: str, reason: str) -> None:
    context.create(TABLE)
    table = context.table("facts")
    tokens, parameters = read_parameters(sql, tokenize(sql))
    query = bind_query(sql, tokens, parameters, context.table)
    reading = read_statement(query.sql)
    types = {column.name: column.type for column in table.columns}

    def types_of(expressions: Sequence[str]) -> list[str]:
        return [
            text for _, text in default_kernel().describe(f"SELECT {', '.join(expressions)} FROM s0", {"s0": types})
        ]

    assert reading is not None
    with pytest.raises(NotDistributable, match=re.escape(reason)):
        split_select(
            query,
            reading,
            len(default_kernel().describe(query.sql, {scan.relation: types for scan in query.scans})),
            types_of,
        )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g, count(DISTINCT i), sum(s), count(*) FROM facts GROUP BY g",
        "SELECT count(DISTINCT g), count(DISTINCT i) FILTER (WHERE k > 9), max(s) FROM facts",
        "SELECT sum(DISTINCT i), avg(DISTINCT i), min(DISTINCT g) FROM facts WHERE k < 0",
        "SELECT g, i, count(*), grouping(g) + grouping(i) AS level FROM facts GROUP BY ROLLUP (g, i)",
        "SELECT g, i, sum(s) FROM facts GROUP BY CUBE (g, 2)",
        "SELECT g, i AS n, count(*) FROM facts GROUP BY GROUPING SETS ((g, n), (g), ())",
        "SELECT g, sum(sum(s)) OVER (ORDER BY g), rank() OVER (ORDER BY count(*) DESC, g) FROM facts GROUP BY g",
        "SELECT g, count(*) FROM facts GROUP BY g QUALIFY row_number() OVER (ORDER BY count(*) DESC, g) < 3",
    ],
)
def test_distinct_aggregates_grouping_sets_and_windows_over_groups(context: Any, sql: str) -> None:
    context.create(TABLE)
    plan = context.select(sql).plan
    assert plan.strategy is not Strategy.GATHER, plan.gather_reason
    assert len(plan.stages) == 2
    _compare(plan, facts(context), (), 3, ordered=False)


@pytest.mark.parametrize(
    ("sql", "sqls"),
    [
        pytest.param(
            "SELECT count(*) FROM facts x JOIN facts y ON x.k = y.k AND x.i = 1 WHERE y.s = 2",
            ['SELECT "k", "i" FROM s0 WHERE ("i" = 1)', 'SELECT "k", "s" FROM s1 WHERE ("s" = 2)'],
            id="inner: conjuncts are applied where the rows are",
        ),
        pytest.param(
            "SELECT count(*) FROM facts x LEFT JOIN facts y ON x.k = y.k WHERE y.s = 2 AND x.i = 1",
            ['SELECT "k", "i", "s" FROM s0 WHERE ("i" = 1)', 'SELECT "k", "i", "s" FROM s1 WHERE ("s" = 2)'],
            id="outer: where NULLs are refused they are too",
        ),
        pytest.param(
            "SELECT count(*) FROM facts x LEFT JOIN facts y ON x.k = y.k AND x.i = 1 AND y.s = 2 WHERE y.g IS NULL",
            ['SELECT "k", "i", "s", "g" FROM s0', 'SELECT "k", "i", "s", "g" FROM s1 WHERE ("s" = 2)'],
            id="outer: else only what is said of the side that is filled with NULLs",
        ),
    ],
)
def test_gathering_joins(context: Any, sql: str, sqls: list[str]) -> None:
    context.create(TABLE)
    found = [stage.fragment.sql for stage in context.select(sql).plan.gathered[:-1]]
    for actual, expected in zip(found, sqls, strict=True):
        where = expected.partition(" FROM ")[2]
        assert actual.endswith(f" FROM {where}")


def test_a_gathered_clock_is_read_once(context: Any) -> None:
    context.create(TABLE)
    plan = context.select("SELECT k, now() AS n FROM facts WHERE k = 3 AND t < now()").plan
    assert all(
        "now" not in fragment.sql.lower() for fragment in (plan.local, *(stage.fragment for stage in plan.stages))
    )
    assert plan.deterministic, "for one time, which is a parameter"
    assert plan.empty is None


@pytest.mark.parametrize(
    ("sql", "deterministic"),
    [
        ("SELECT count(*) FROM facts", True),
        ("SELECT k FROM facts ORDER BY k", True),
        ("SELECT k FROM facts LIMIT 5", False),
        ("SELECT any_value(k) FROM facts", False),
        ("SELECT first(k) FROM facts", False),
        ("SELECT uuid() FROM facts", False),
    ],
)
def test_determinism(context: Any, sql: str, *, deterministic: bool) -> None:
    context.create(TABLE)
    assert context.select(sql).plan.deterministic is deterministic


@pytest.mark.parametrize(
    ("sql", "params", "expected"),
    [
        pytest.param(
            "SELECT count(*), max(i) FROM facts WHERE FALSE",
            (),
            [{"count_star()": 0, "max(i)": None}],
            id="an aggregate has a row",
        ),
        pytest.param("SELECT g, count(*) FROM facts WHERE FALSE GROUP BY g", (), [], id="a group has none"),
        pytest.param("SELECT count(*) AS n FROM facts WHERE k = ?", [None], [{"n": 0}], id="parameters in WHERE alone"),
        pytest.param("SELECT count(*), ? FROM facts", [5], None, id="parameters elsewhere"),
        pytest.param("SELECT 1 + 1 AS two", (), [{"two": 2}], id="no table at all"),
        pytest.param("SELECT count(*) FROM range(3)", (), None, id="a table function: a member answers"),
    ],
)
def test_the_answer_without_any_partition(
    context: Any, sql: str, params: Any, expected: list[dict[str, Any]] | None
) -> None:
    context.create(TABLE)
    empty = context.select(sql, params).plan.empty
    assert (None if empty is None else pa.ipc.open_stream(empty).read_all().to_pylist()) == expected


def _compare(plan: SelectPlan, table: pa.Table, params: Any, stages: int, *, ordered: bool) -> None:
    whole = default_kernel().run(
        plan.local.sql,
        {"s0": table.select(list(plan.scans[0].columns))},
        list(params),
        names=plan.local.column_names,
        casts=plan.local.casts,
    )
    cut = two_stage(plan, table, params, stages)
    assert cut.schema == whole.schema
    assert _rows(cut, ordered=ordered) == _rows(whole, ordered=ordered)
    assert _rows(run(plan.local, {"s0": table.select(list(plan.scans[0].columns))}, params), ordered=ordered) == _rows(
        whole, ordered=ordered
    )


def _rows(table: pa.Table, *, ordered: bool) -> list[str]:
    rows = [
        repr([round(value, 9) if isinstance(value, float) else value for value in row.values()])
        for row in table.to_pylist()
    ]
    return rows if ordered else sorted(rows)
