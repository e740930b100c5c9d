"""What becomes a fragment for the arrow kernel, and what is left to DuckDB and why.

Accepted statements are run, and compared with DuckDB.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from secateur.engine.kernels.arrow import (
    ArrowFragment,
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    ParameterExpression,
    ScalarFunction,
)
from secateur.engine.kernels.arrow import kernel as arrow_kernel
from secateur.engine.kernels.duckdb import DuckDBKernel
from secateur.partitioning.types import parse_type
from secateur.planner.arrow import KernelDeclined, arrow_form
from secateur.planner.binding import BoundPlan, bind_to_plan

TYPES = {
    "Customer": "VARCHAR",
    "a": "INTEGER",
    "b": "BIGINT",
    "s": "SMALLINT",
    "u8": "UTINYINT",
    "d": "DOUBLE",
    "f": "FLOAT",
    "m": "DECIMAL(10,2)",
    "h": "HUGEINT",
    "flag": "BOOLEAN",
    "day": "DATE",
    "ts": "TIMESTAMP",
    "atz": "TIMESTAMP WITH TIME ZONE",
    "clock": "TIME",
    "id": "UUID",
    "tags": "INTEGER[]",
    "gap": "INTERVAL",
}
SCHEMA = {name: parse_type(text) for name, text in TYPES.items()}
MIDNIGHT = dt.datetime(2024, 1, 1)
ROWS: list[dict[str, Any]] = [
    {
        "Customer": "C1",
        "a": 1,
        "b": 10,
        "s": 1,
        "d": 1.5,
        "m": Decimal("1.50"),
        "h": Decimal(3),
        "flag": True,
        "day": dt.date(2024, 1, 1),
        "ts": MIDNIGHT,
        "clock": dt.time(1),
    },
    {
        "Customer": "C2",
        "a": 2,
        "b": 20,
        "s": -1,
        "d": 0.5,
        "m": Decimal("2.00"),
        "h": Decimal(4),
        "flag": False,
        "day": dt.date(2024, 1, 2),
        "ts": MIDNIGHT,
        "u8": 7,
        "f": 0.5,
    },
    {
        "Customer": "C1",
        "a": 3,
        "b": 30,
        "s": 0,
        "d": -1.0,
        "f": 2.5,
        "day": dt.date(2024, 1, 1),
        "atz": MIDNIGHT.replace(tzinfo=dt.UTC),
        "u8": 8,
    },
    {"Customer": None, "a": None, "b": None, "tags": [1, 2]},
]
TABLE = pa.table(
    {
        name: (
            pa.array([row.get(name) for row in ROWS], type_.arrow)
            if any(name in row for row in ROWS)
            else pa.nulls(len(ROWS), type_.arrow)
        )
        for name, type_ in SCHEMA.items()
    }
)


@pytest.fixture(scope="module")
def kernel() -> Iterator[DuckDBKernel]:
    kernel = DuckDBKernel(threads=1)
    yield kernel
    kernel.close()


def bound(kernel: DuckDBKernel, sql: str, params: Sequence[Any] = ()) -> BoundPlan:
    plan = bind_to_plan(kernel, sql, {"s0": SCHEMA}, params)
    assert isinstance(plan, BoundPlan), plan
    return plan


def compiled(kernel: DuckDBKernel, sql: str, params: list[Any]) -> ArrowFragment | KernelDeclined:
    plan = bound(kernel, sql, params)
    return arrow_form(plan.root, plan.text, kernel.describe(sql, {"s0": SCHEMA}, params))


ACCEPTED: list[tuple[str, list[Any], int]] = [
    ("SELECT * FROM s0 WHERE customer = 'C1'", [], 2),
    ('SELECT "CUSTOMER", s0.A AS x FROM s0 WHERE s0.customer = $1', ["C2"], 1),
    ("SELECT t.a FROM s0 AS t WHERE t.b >= 20 AND NOT t.a = 3", [], 1),
    ("SELECT a FROM s0 WHERE 2 > a OR a IS NULL", [], 2),
    ("SELECT a FROM s0 WHERE a IN (1, $1, -7)", [3], 2),
    ("SELECT a FROM s0 WHERE a NOT IN (1, 2)", [], 1),
    ("SELECT a FROM s0 WHERE a BETWEEN $1 AND 2", [1], 2),
    ("SELECT a FROM s0 WHERE a NOT BETWEEN 1 AND 2", [], 1),
    ("SELECT a FROM s0 WHERE s > -1 AND (a <> 1)", [], 1),
    ("SELECT a FROM s0 WHERE customer LIKE 'C%' AND customer NOT LIKE '%2'", [], 2),
    ("SELECT a FROM s0 WHERE day = '2024-01-01'", [], 2),
    ("SELECT a FROM s0 WHERE day > DATE '2024-01-01'", [], 1),
    ("SELECT a FROM s0 WHERE ts = '2024-01-01 00:00:00' AND ts <= TIMESTAMP '2024-01-01'", [], 2),
    ("SELECT a FROM s0 WHERE atz = '2024-01-01 02:00:00+02:00'", [], 1),
    ("SELECT a FROM s0 WHERE atz >= $1", [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], 1),
    ("SELECT a FROM s0 WHERE clock = '01:00:00'", [], 1),
    ("SELECT a FROM s0 WHERE id = '00000000-0000-0000-0000-000000000001'", [], 0),
    ("SELECT a FROM s0 WHERE flag", [], 1),
    ("SELECT a FROM s0 WHERE flag = FALSE OR flag IS NULL", [], 3),
    ("SELECT a FROM s0 WHERE d > 0.5", [], 1),
    ("SELECT a FROM s0 WHERE d = 1.5e0 OR f = 2.5", [], 2),
    ("SELECT a FROM s0 WHERE m >= 1.5", [], 2),
    ("SELECT a FROM s0 WHERE h > 3", [], 1),
    ("SELECT a FROM s0 WHERE a = s", [], 1),
    ("SELECT a FROM s0 WHERE a * 10 = b", [], 3),
    ("SELECT a FROM s0 WHERE a = b IS NULL", [], 1),
    ("SELECT a FROM s0 WHERE flag = (a = 1)", [], 2),
    ("SELECT a, flag, a > 1 FROM s0", [], 4),
    ("SELECT a + 1, 2 * b, -s, u8 + 1, d * $1, a / 2, d / b, CAST(a AS DOUBLE), a::BIGINT FROM s0", [2.0], 4),
    (
        (
            "SELECT CAST(b AS TINYINT), CAST(a AS HUGEINT), coalesce(s, -1), coalesce(customer, 'none'), coalesce(d, 0)"
            " FROM s0"
        ),
        [],
        4,
    ),
    ("SELECT CAST(coalesce(sum(a), 0) AS BIGINT) AS n, CAST(CAST(sum(a) AS INT128) AS DOUBLE) / sum(b) FROM s0", [], 1),
    ("SELECT CASE WHEN a > 1 THEN b ELSE 0 END, CASE a WHEN 1 THEN 'one' WHEN s THEN customer END FROM s0", [], 4),
    ("SELECT sum(CASE WHEN flag THEN 1 ELSE 0 END), max(CASE WHEN a > 1 THEN d END) FROM s0", [], 1),
    ("SELECT CASE WHEN day > '2024-01-01' THEN ts ELSE NULL END FROM s0", [], 4),
    ("SELECT tags, gap, a FROM s0 WHERE a IS NULL", [], 1),
    ("SELECT a FROM s0 WHERE a = CAST($1 AS INTEGER)", [1], 1),
    ("SELECT a, CAST($1 AS INTEGER) AS v FROM s0", [None], 4),
    ("SELECT DISTINCT customer, flag FROM s0", [], 4),
    ("SELECT DISTINCT customer AS c FROM s0 ORDER BY c DESC LIMIT 1", [], 1),
    ("SELECT a FROM s0 ORDER BY d DESC NULLS FIRST, 1 LIMIT 2 OFFSET $1", [1], 2),
    ("SELECT a AS b FROM s0 ORDER BY b DESC", [], 4),
    (
        (
            "SELECT a, CAST(($1) AS VARCHAR) AS s, CAST(7 AS BIGINT), CAST($2 AS DECIMAL(10,2)), CAST(-1.5 AS DOUBLE)"
            " FROM s0 WHERE a > 1"
        ),
        ["x", Decimal("1.5")],
        2,
    ),
    ("SELECT CAST($1 AS DATE), CAST('2024-01-01' AS DATE) FROM s0 LIMIT 3", [dt.date(2024, 5, 6)], 3),
    ("SELECT -a AS x, b FROM s0 ORDER BY x + b", [], 4),
    ("SELECT CAST((a + $1) AS INTEGER) AS a, CAST(($2 - b) * 2 AS BIGINT) AS b FROM s0", [5, 7], 4),
    ("SELECT CAST((a + b) * $1 AS BIGINT) AS v FROM s0", [3], 4),
    ("SELECT CAST(a * $1 + 1 AS TINYINT) AS t, CAST((b + $2) AS INTEGER) AS i FROM s0", [2, -1], 4),
    ("SELECT count(*), count(a), sum(a), min(customer), max(day), avg(b) FROM s0", [], 1),
    ("SELECT count(*) FROM s0 WHERE customer = 'C9'", [], 1),
    ("SELECT count(DISTINCT customer), count(DISTINCT a), count(DISTINCT day) FROM s0 WHERE customer = 'C9'", [], 1),
    ("SELECT upper(customer), lower(customer) || '-É' FROM s0 WHERE customer = 'C1' AND lower(customer) = 'c1'", [], 2),
    ("SELECT flag, count(DISTINCT ts), count(DISTINCT a + 1) FROM s0 GROUP BY flag", [], 3),
    ("SELECT count(*) FILTER (WHERE b > 1), sum(a) FILTER (WHERE flag), avg(d) FILTER (WHERE a = $1) FROM s0", [1], 1),
    ("SELECT customer, max(day) FILTER (WHERE a > 1), count(a) FILTER (WHERE a > 100) FROM s0 GROUP BY 1", [], 3),
    ("SELECT customer, sum(m), avg(m), avg(d), sum(h) FROM s0 GROUP BY customer", [], 3),
    ("SELECT sum(a + b), sum(a) IS NULL FROM s0 GROUP BY s0.customer", [], 3),
    ("SELECT customer AS c, count(*) AS n FROM s0 GROUP BY 1 HAVING n > 1 ORDER BY n DESC, c", [], 1),
    ("SELECT customer, flag, count(*) FROM s0 GROUP BY ALL", [], 4),
    ("SELECT a + 1, count(*) FROM s0 GROUP BY a + 1", [], 4),
    ("SELECT (a + 1) * 2 AS x, count(*) FROM s0 GROUP BY a + 1 HAVING a + 1 < 4", [], 2),
    ("SELECT sum(a) / count(*) AS r, sum(d) / count(d) FROM s0", [], 1),
    ("SELECT customer FROM s0 GROUP BY customer ORDER BY sum(b) LIMIT $1", [2], 2),
    ("SELECT max(a) FROM s0 HAVING max(a) > 5", [], 0),
    ("SELECT CAST(sum(a) AS HUGEINT) AS x, count(*) + 1 AS y FROM s0", [], 1),
    ("SELECT a + 3000000000 FROM s0", [], 4),
    ("SELECT CASE WHEN a > 1 THEN a ELSE b END FROM s0", [], 4),
    ("SELECT coalesce(s, 100000) FROM s0", [], 4),
    ("SELECT 1 AS one FROM s0", [], 4),
    ("SELECT a FROM s0 ORDER BY ALL", [], 4),
    ("SELECT -a AS b FROM s0 ORDER BY b + 1", [], 4),
    ("SELECT a FROM s0 LIMIT 1 + 1", [], 2),
    ("SELECT a AS b, count(*) FROM s0 GROUP BY a HAVING b > 1", [], 2),
    ("WITH x AS (SELECT 1) SELECT a FROM s0", [], 4),
    ("SELECT a FROM (SELECT * FROM s0)", [], 4),
    ("SELECT c.a FROM s0 AS c(a, z)", [], 4),
    ("SELECT * EXCLUDE (a) FROM s0", [], 4),
    ("SELECT COLUMNS('a|b') FROM s0", [], 4),
]


@pytest.mark.parametrize("value", ["5", 5.0, True, 2**31])
def test_a_given_value_that_needs_a_cast_is_left_to_duckdb(kernel: DuckDBKernel, value: Any) -> None:
    fragment = compiled(kernel, "SELECT a, CAST($1 AS INTEGER) AS v FROM s0", [1])
    assert isinstance(fragment, ArrowFragment), fragment
    assert arrow_kernel.run(fragment, TABLE, [value]) is None


@pytest.mark.parametrize("value", [None, "5", 5.0, True, 2**31, 2**31 - 1])
def test_a_sum_that_overflows_or_has_another_type_is_left_to_duckdb(kernel: DuckDBKernel, value: Any) -> None:
    fragment = compiled(kernel, "SELECT CAST((a + $1) AS BIGINT) AS v FROM s0", [1])
    assert isinstance(fragment, ArrowFragment), fragment
    assert arrow_kernel.run(fragment, TABLE, [value]) is None


@pytest.mark.parametrize(("sql", "params", "row_count"), ACCEPTED, ids=[case[0] for case in ACCEPTED])
def test_what_arrow_answers(kernel: DuckDBKernel, sql: str, params: list[Any], row_count: int) -> None:
    fragment = compiled(kernel, sql, params)
    assert isinstance(fragment, ArrowFragment), fragment
    answer = arrow_kernel.run(fragment, TABLE, params)
    assert answer is not None
    expected = kernel.run(sql, {"s0": TABLE}, params, casts=[("s0", [("h", "HUGEINT")])])
    assert answer.num_rows == row_count
    assert answer.schema == expected.schema
    if "ORDER BY" in sql:
        assert answer.to_pylist() == expected.to_pylist()
    else:
        assert sorted(map(repr, answer.to_pylist())) == sorted(map(repr, expected.to_pylist()))


DECLINED: list[tuple[str, list[Any], str]] = [
    ("SELECT upper('a') FROM s0", [], "upper is left to DuckDB"),
    ("SELECT customer || $1 FROM s0", ["x"], "decides the type of the result"),
    ("SELECT reverse(customer) FROM s0", [], "reverse"),
    ("SELECT a FROM s0 WHERE reverse(customer) = 'c1'", [], "reverse"),
    ("SELECT a FROM s0 WHERE starts_with(customer, 'C')", [], "starts_with"),
    ("SELECT a FROM s0 WHERE customer LIKE 'C_'", [], "LIKE with another pattern"),
    ("SELECT a FROM s0 WHERE customer LIKE 'C%' ESCAPE '!'", [], "escape"),
    ("SELECT a FROM s0 WHERE customer ILIKE 'c%'", [], "~~* is left to DuckDB"),
    ("SELECT a FROM s0 WHERE a = 1.5", [], "1.5 as INTEGER"),
    ("SELECT a FROM s0 WHERE a = '1'", [], "1 as INTEGER"),
    ("SELECT a FROM s0 WHERE s = 100000", [], "100000 is not a SMALLINT"),
    ("SELECT a FROM s0 WHERE m = 1.505", [], "Decimal('1.505') is not a DECIMAL(10,2) as it is"),
    ("SELECT a FROM s0 WHERE f = 0.1", [], "0.1 as FLOAT"),
    ("SELECT a FROM s0 WHERE d = 9007199254740993", [], "9007199254740993 as DOUBLE"),
    ("SELECT a FROM s0 WHERE day = '2024-1-1'", [], "2024-1-1 as DATE"),
    ("SELECT a FROM s0 WHERE day = TIMESTAMP '2024-01-01'", [], "2024-01-01 00:00:00 as DATE"),
    ("SELECT a FROM s0 WHERE a = NULL", [], "NULL as a value"),
    ("SELECT a FROM s0 WHERE a IN (1, NULL)", [], "NULL as a value"),
    ("SELECT a FROM s0 WHERE 1 = 1", [], "two constants"),
    ("SELECT a FROM s0 WHERE d < f", [], "may be NaN"),
    ("SELECT a FROM s0 WHERE a = d", [], "may be NaN"),
    ("SELECT a FROM s0 WHERE d IN (0.0, 1.5)", [], "IN of DOUBLE"),
    ("SELECT a FROM s0 WHERE flag < TRUE", [], "< of BOOLEAN"),
    ("SELECT a FROM s0 WHERE tags = [1]", [], "list_value is left to DuckDB"),
    ("SELECT a FROM s0 WHERE a IN (SELECT 1)", [], "Nothing is left to DuckDB"),
    ("SELECT a FROM s0 WHERE a = (SELECT 1)", [], "left to DuckDB"),
    ("SELECT a FROM s0 WHERE (a, b) = (1, 2)", [], "row is left to DuckDB"),
    ("SELECT a FROM s0 WHERE a IS DISTINCT FROM 1", [], "left to DuckDB"),
    ("SELECT a FROM s0 WHERE CASE WHEN a = 1 THEN flag END", [], "CASE of BOOLEAN"),
    ("SELECT a + $1 FROM s0", [1], "$1 decides the type of the result"),
    ("SELECT CAST(a + $1 AS DOUBLE) FROM s0", [1], "$1 decides the type of the result"),
    ("SELECT m + 1 FROM s0", [], "arithmetic of DECIMAL"),
    ("SELECT f + 1 FROM s0", [], "arithmetic of FLOAT"),
    ("SELECT f + f FROM s0", [], "arithmetic of FLOAT"),
    ("SELECT f / 2 FROM s0", [], "division of FLOAT"),
    ("SELECT a // 2 FROM s0", [], "left to DuckDB"),
    ("SELECT CAST(a AS VARCHAR) FROM s0", [], "a cast of INTEGER to VARCHAR"),
    ("SELECT CAST(m AS INTEGER) FROM s0", [], "a cast of DECIMAL(10,2) to INTEGER"),
    ("SELECT CASE WHEN a > 1 THEN m END FROM s0", [], "CASE of DECIMAL(10,2)"),
    ("SELECT CASE WHEN a > 1 THEN a ELSE $1 END FROM s0", [1], "$1 decides the type of the result"),
    ("SELECT CASE WHEN a > 1 THEN 1 ELSE 1.5 END FROM s0", [], "CASE of DECIMAL(11,1)"),
    ("SELECT coalesce(m, 0) FROM s0", [], "a cast of DECIMAL(10,2) to DECIMAL(12,2)"),
    ("SELECT coalesce(a, b, 0) FROM s0", [], "OPERATOR_COALESCE is left to DuckDB"),
    ("SELECT coalesce(a, $1) FROM s0", [1], "$1 decides the type of the result"),
    ("SELECT TRY_CAST(a AS DOUBLE) FROM s0", [], "TRY_CAST is left to DuckDB"),
    ("SELECT $1 FROM s0", [1], "$1 decides the type of the result"),
    ("SELECT DISTINCT d FROM s0", [], "DISTINCT of DOUBLE"),
    ("SELECT DISTINCT ON (a) a, b FROM s0", [], "DISTINCT ON"),
    ("SELECT DISTINCT customer FROM s0 GROUP BY customer, a ORDER BY a", [], "DISTINCT ON"),
    ("SELECT a FROM s0 ORDER BY tags", [], "ORDER BY of INTEGER[]"),
    ("SELECT a FROM s0 ORDER BY a LIMIT 10%", [], "LIMIT or OFFSET of another form than a number of rows"),
    ("SELECT count(DISTINCT d) FROM s0", [], "count_distinct of DOUBLE"),
    ("SELECT sum(DISTINCT a) FROM s0", [], "sum(DISTINCT) is left to DuckDB"),
    ("SELECT sum(a ORDER BY b) FROM s0", [], "sum with ORDER BY"),
    ("SELECT min(a, 2) FROM s0", [], "min is left to DuckDB"),
    ("SELECT stddev(a) FROM s0", [], "stddev"),
    ("SELECT first(a) FROM s0", [], "first"),
    ("SELECT sum(flag) FROM s0", [], "sum of BOOLEAN"),
    ("SELECT max(tags) FROM s0", [], "max of INTEGER[]"),
    ("SELECT avg(day) FROM s0", [], "TIMESTAMP"),
    ("SELECT sum(a) OVER () FROM s0", [], "Window is left to DuckDB"),
    ("SELECT d, count(*) FROM s0 GROUP BY d", [], "GROUP BY of DOUBLE"),
    ("SELECT customer, count(*) FROM s0 GROUP BY ROLLUP (customer)", [], "GROUPING SETS, ROLLUP or CUBE"),
    ("SELECT a FROM s0 QUALIFY row_number() OVER () = 1", [], "Window is left to DuckDB"),
    ("SELECT a FROM s0 USING SAMPLE 1 ROWS", [], "Sample is left to DuckDB"),
    ("SELECT a FROM s0 TABLESAMPLE RESERVOIR (1 ROWS)", [], "Sample is left to DuckDB"),
    ("SELECT x.a FROM s0 AS x, s0 AS y", [], "a join in a stage"),
    ("SELECT 1", [], "Nothing is left to DuckDB"),
]


@pytest.mark.parametrize(("sql", "params", "reason"), DECLINED, ids=[case[0] for case in DECLINED])
def test_what_is_left_to_duckdb_and_why(kernel: DuckDBKernel, sql: str, params: list[Any], reason: str) -> None:
    result = compiled(kernel, sql, params)
    assert isinstance(result, KernelDeclined), result
    assert reason in result.reason


def test_a_type_that_duckdb_sees_otherwise_declines(kernel: DuckDBKernel) -> None:
    plan = bound(kernel, "SELECT a FROM s0")
    assert arrow_form(plan.root, plan.text, [("a", "BIGINT")]) == KernelDeclined(
        "a column is BIGINT in DuckDB and INTEGER here"
    )


def test_a_list_of_uuids_declines(kernel: DuckDBKernel) -> None:
    plan = bind_to_plan(kernel, "SELECT ids FROM s0", {"s0": {"ids": parse_type("UUID[]")}}, [])
    assert isinstance(plan, BoundPlan)
    assert arrow_form(plan.root, plan.text, [("ids", "UUID[]")]) == KernelDeclined("a column of UUID[]")


def test_a_column_that_only_duckdb_knows_declines_where_it_is_read(kernel: DuckDBKernel) -> None:
    sql = "SELECT {} FROM (SELECT a, reverse(customer) AS c, count(*) OVER () AS n FROM s0)"
    types = {"s0": {"a": "INTEGER", "v": "BIT"}}
    assert compiled(kernel, "SELECT a FROM (SELECT a, reverse(customer) AS c FROM s0)", []) == ArrowFragment(
        outputs=(("a", ColumnExpression("a", SCHEMA["a"])),)
    )
    for read, reason in {"c": "reverse is left to DuckDB", "a": "Window is left to DuckDB"}.items():
        of = sql if read == "a" else "SELECT {} FROM (SELECT a, reverse(customer) AS c FROM s0)"
        assert compiled(kernel, of.format(read), []) == KernelDeclined(reason)
    plan = bind_to_plan(kernel, "SELECT a, v FROM s0", types, [])
    assert isinstance(plan, BoundPlan)
    assert arrow_form(plan.root, plan.text, [("a", "INTEGER"), ("v", "BIT")]) == KernelDeclined("a value of BIT")


@pytest.mark.parametrize(
    "condition",
    [
        "s = $1",
        "$1 < h",
        "m IN ($1, 1.5)",
        "s BETWEEN $1 AND a",
        "s BETWEEN $1 AND 7",
        "m BETWEEN $1 AND 12345.5",
        "a BETWEEN s AND $1",
        "b = ANY([$1])",
        "d * $1 > 2",
        "CAST(a + $1 AS BIGINT) > 3",
        "f = $1 OR a / $1 > 2",
        "sum_m > $1",
    ],
)
@pytest.mark.parametrize(
    "values",
    [[1, 2**40, 2**70], [Decimal("1.5"), Decimal("12345678901234.55555"), Decimal("1e-35")]],
    ids=["integers", "decimals"],
)
def test_a_form_does_not_depend_on_the_digits_of_a_value(
    kernel: DuckDBKernel, condition: str, values: list[Any]
) -> None:
    source = "(SELECT a, sum(m) AS sum_m FROM s0 GROUP BY a)" if "sum_m" in condition else "s0"
    forms = [compiled(kernel, f"SELECT a FROM {source} WHERE {condition}", [value]) for value in values]
    assert len({form if isinstance(form, ArrowFragment) else None for form in forms}) == 1


def test_a_parameter_of_a_subquery_is_cast_where_it_is_read(kernel: DuckDBKernel) -> None:
    sql = "SELECT CAST(v AS BIGINT) AS v, a FROM (SELECT a, $1 AS v FROM s0 WHERE a = $1)"
    form = compiled(kernel, sql, [1])
    assert isinstance(form, ArrowFragment), form
    assert form.outputs[0][1] == ParameterExpression(1, SCHEMA["b"])
    answer = arrow_kernel.run(form, TABLE, [2**20])
    assert answer is not None
    assert answer.equals(kernel.run(sql, {"s0": TABLE}, [2**20]))
    assert isinstance(compiled(kernel, "SELECT v FROM (SELECT a, $1 AS v FROM s0)", [1]), KernelDeclined)


def test_aggregates_that_nothing_reads_are_not_computed(kernel: DuckDBKernel) -> None:
    form = compiled(kernel, "SELECT n FROM (SELECT a, max(b), count(*) AS n FROM s0 GROUP BY a) ORDER BY n", [])
    assert isinstance(form, ArrowFragment)
    count = ColumnExpression("#1", parse_type("BIGINT"))
    assert (len(form.aggregates), form.outputs[0][1], form.order[0].expression) == (1, count, count)


@pytest.mark.parametrize(
    ("sql", "given", "later", "is_answered"),
    [
        ("SELECT a FROM s0 WHERE s = $1", 1, 2**40, False),
        ("SELECT a FROM s0 WHERE s = $1", 2**40, 1, True),
        ("SELECT a FROM (SELECT a, $1 AS v FROM s0) WHERE a = v", 2**40, 1, True),
        ("SELECT a FROM s0 WHERE s IN ($1, 0)", 2**40, -1, True),
        ("SELECT a FROM s0 WHERE m > $1", 2**40, 1, True),
        ("SELECT a FROM s0 WHERE b BETWEEN $1 AND 20e0", 5, 10, True),
        ("SELECT a FROM s0 WHERE b BETWEEN $1 AND 20e0", 5, 2**53 + 1, False),
        ("SELECT a FROM s0 WHERE b = $1", 2.5, 10.0, True),
        ("SELECT a FROM s0 WHERE f = $1", 1, 2.5, True),
        ("SELECT a FROM s0 WHERE a = CAST($1 AS SMALLINT)", 1, 2, None),
        ("SELECT a FROM s0 WHERE s = CAST($1 AS INTEGER)", 1, 2, None),
        ("SELECT a + CAST($1 AS INTEGER) FROM s0", 1, 2**40, False),
        ("SELECT a FROM s0 WHERE a = ANY($1)", [1], [3, 2], True),
        ("SELECT a FROM s0 WHERE s = ANY($1)", [1], [2**40], False),
        ("SELECT a FROM s0 WHERE b IN $1", [1], [10], True),
        ("SELECT d / $1 FROM s0", 2, 0.5, True),
        ("SELECT a / $1 FROM s0", 2, 2**40, False),
        ("SELECT f / $1 FROM s0", 2, 2, None),
        ("SELECT f / $1 FROM s0", 0.5, 2, None),
        ("SELECT CAST(s * $1 AS BIGINT) FROM s0", 2**40, 3, True),
        ("SELECT CAST(a AS BIGINT) * $1 FROM s0", 2, 3, None),
    ],
)
def test_values_of_other_types_than_that_with_which_it_was_bound(
    kernel: DuckDBKernel, sql: str, given: Any, later: Any, is_answered: bool | None
) -> None:
    form = compiled(kernel, sql, [given])
    if is_answered is None:
        assert isinstance(form, KernelDeclined), form
        return
    assert isinstance(form, ArrowFragment), form
    found = arrow_kernel.run(form, TABLE, [later])
    assert (found is not None) is is_answered
    if found is not None:
        assert found.equals(kernel.run(sql, {"s0": TABLE}, [later], casts=[("s0", [("h", "HUGEINT")])]))


def test_the_fragment_is_what_the_statement_says(kernel: DuckDBKernel) -> None:
    varchar, boolean, double = parse_type("VARCHAR"), parse_type("BOOLEAN"), parse_type("DOUBLE")
    condition = CallExpression(
        ScalarFunction.GREATER,
        (
            CallExpression(ScalarFunction.CAST, (ColumnExpression("f", SCHEMA["f"]),), double),
            ConstantExpression(2.5, double),
        ),
        boolean,
    )
    key = CallExpression(
        ScalarFunction.EQUAL, (ColumnExpression("Customer", varchar), ParameterExpression(1, varchar)), boolean
    )
    assert compiled(kernel, "SELECT customer AS x FROM s0 WHERE $1 = customer AND 2.5 < f", ["C1"]) == ArrowFragment(
        outputs=(("x", ColumnExpression("Customer", varchar)),),
        where=CallExpression(ScalarFunction.AND, (key, condition), boolean),
    )
