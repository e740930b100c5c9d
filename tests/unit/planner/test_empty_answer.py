"""What a statement answers over no rows, and when the planner knows it."""

from __future__ import annotations

import pytest
from bound_statements import COLUMNS, root

from secateur.engine.kernels import Fragment, run
from secateur.engine.kernels.duckdb import default_kernel
from secateur.partitioning.types import empty_table
from secateur.planner.binding import BoundPlan, bind_to_plan
from secateur.planner.empty_answer import empty_answer, evaluates_nothing, ignores_parameters, is_bounded
from secateur.protocol import decode_table

ALL_TYPES = {
    **COLUMNS,
    "d": "DECIMAL(10,2)",
    "h": "HUGEINT",
    "i": "INTERVAL",
    "j": "JSON",
    "u": "UUID",
    "s": "STRUCT(x INTEGER, y VARCHAR[])",
    "f": "FLOAT[3]",
    "m": "MAP(VARCHAR, DATE)",
    "n": "TIMESTAMP_NS",
}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a, b FROM t WHERE a = $1 AND b = 'x' ORDER BY a", True),
        ("SELECT upper(t.b), a + 1 FROM t JOIN u USING (a) WHERE t.b < u.b", True),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", True),
        ("SELECT a FROM t WHERE 1 = 1", False),
        ("SELECT a FROM t WHERE a = CAST('x' AS BIGINT)", False),
        ("SELECT count(*) FROM t WHERE a = $1", False),
        ("SELECT a FROM t UNION ALL SELECT 1", False),
        ("SELECT a, c FROM t, (VALUES (1)) AS v(c)", False),
        ("SELECT unnest([a]) FROM t", False),
    ],
)
def test_without_rows_nothing_is_evaluated(sql: str, *, expected: bool) -> None:
    assert evaluates_nothing(root(sql)) is expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT repeat(b, 1000000) FROM t", True),
        ("SELECT upper(b), a * 2 FROM t WHERE a BETWEEN 1 AND 2", True),
        ("SELECT count(*) FROM t", True),
        ("SELECT repeat('x', 1000000) FROM t", False),
        ("SELECT repeat(max(b), 1000000) FROM t", False),
        ("SELECT a FROM t, range(3)", False),
        ("SELECT unnest([1, 2]) FROM t", False),
    ],
)
def test_without_rows_only_small_values_are_made(sql: str, *, expected: bool) -> None:
    assert is_bounded(root(sql)) is expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM t WHERE a = $1", True),
        ("SELECT count(*) FROM t WHERE a = $1 AND b = 'x'", True),
        ("SELECT $1 FROM t WHERE a = $1", False),
        ("SELECT count(*) FROM t HAVING count(*) < $1", False),
        ("SELECT count(*) FROM t, (SELECT 1 WHERE $1 = 1)", False),
        ("SELECT a FROM t LIMIT $1", False),
    ],
)
def test_without_rows_parameters_do_not_matter(sql: str, *, expected: bool) -> None:
    assert ignores_parameters(root(sql)) is expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t WHERE a = 3",
        "SELECT a + 1, d * 2, upper(b) AS b, [a, 2], {'k': h}, z::DATE, b || 'x' FROM t WHERE b LIKE 'x%' ORDER BY a",
        "SELECT t.d + 3, x.d, sum_of FROM t JOIN t AS x USING (a), (SELECT a AS sum_of FROM t) WHERE x.d > 2.5",
        "SELECT count(*), sum(d), max(i), list(u) FROM t",
    ],
)
def test_it_is_what_the_kernels_answer(sql: str) -> None:
    schemas = {"t": ALL_TYPES}
    plan = bind_to_plan(default_kernel(), sql, schemas, [])
    assert isinstance(plan, BoundPlan), plan
    whole = Fragment.over(sql, schemas, default_kernel().describe(sql, schemas))
    found = empty_answer(plan.root, whole, schemas, [], 0)
    assert found is not None
    rows = empty_table(Fragment.over("", {}, list(ALL_TYPES.items())).schema)
    assert decode_table(found) == run(whole, {"t": rows})
    assert evaluates_nothing(plan.root) is ("count" not in sql)
