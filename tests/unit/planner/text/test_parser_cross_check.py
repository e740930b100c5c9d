from __future__ import annotations

from typing import Any

import duckdb
import pytest

from secateur.planner.binding import is_listed
from secateur.planner.text import (
    DuckDBParse,
    parse_query,
    read_statement,
    read_statements,
    to_sql,
    tokenize,
)


def read(sql: str) -> DuckDBParse:
    reading = read_statement(sql)
    assert reading is not None
    return reading


@pytest.mark.parametrize(
    "sql",
    [
        (
            "SELECT a.b, count(*), sum(DISTINCT x) FILTER (WHERE y > 1), upper(c) || 'it''s', -1, 1.50, 1e5, NULL, TRUE"
            " FROM s0 AS a"
        ),
        (
            "SELECT x FROM s0 WHERE x = 1 OR NOT (y < 2 AND z IS NOT NULL) OR x NOT LIKE 'a%' OR x NOT ILIKE 'b' OR x"
            " NOT BETWEEN 1 AND 2"
        ),
        (
            "SELECT CASE WHEN a = 1 THEN 'x' ELSE 'y' END, CAST(a AS TEXT), a::INT, DATE '2024-01-01', INTERVAL '1' DAY"
            " FROM s0 GROUP BY ALL ORDER BY ALL"
        ),
        (
            "SELECT date_trunc('month', d), bit_xor(x), strftime(d, '%Y'), string_agg(x, ',' ORDER BY y),"
            " list_filter(l, lambda e : e > 1) FROM s0"
        ),
        (
            "SELECT x BETWEEN 1 AND 2, x NOT IN (1, 2), x LIKE 'a%', x ILIKE 'a', x IS NOT DISTINCT FROM y, x % 2, x //"
            " 2 FROM s0"
        ),
        "SELECT x FROM s0 WHERE x = X'00ff' ORDER BY x DESC NULLS FIRST LIMIT $1",
        (
            "SELECT DISTINCT ON (x) x FROM s0 JOIN s1 USING (k) LEFT JOIN s2 ON s0.a = s2.a QUALIFY row_number() OVER"
            " (PARTITION BY x ORDER BY y) = 1"
        ),
        "WITH w AS (SELECT 1 AS a) SELECT * FROM w WHERE a IN (SELECT b FROM s1) UNION ALL SELECT 2",
        "WITH w(a, b) AS (VALUES (1, 'x'), (2, NULL)) SELECT * FROM w",
        "SELECT string_agg(DISTINCT s, ',' ORDER BY s), percentile_cont(0.5) WITHIN GROUP (ORDER BY c DESC) FROM s0",
        (
            "SELECT last_value(c IGNORE NULLS) OVER (ORDER BY a DESC NULLS LAST), lag(c, 1 IGNORE NULLS) OVER w FROM s0"
            " WINDOW w AS (ORDER BY a)"
        ),
        (
            "SELECT a ^ 2 * b ** 3, if(a, b, c), position('a' IN s), EXTRACT(EPOCH FROM d), .5, 1_000, s::VARCHAR(10),"
            " j -> 'x', j ->> '$.y' FROM s0"
        ),
        "SELECT current_timestamp, CURRENT_DATE, localtimestamp FROM s0",
        "SELECT ARRAY(SELECT a FROM s1 ORDER BY a)[1:2], list((SELECT a FROM s1))[1], t.list[1], [a, 2][1] FROM t",
        "SELECT * FROM s0, unnest([1, 2]) AS u(x), range(3) AS g(y) CROSS JOIN unnest([3]) AS w(z)",
    ],
)
def test_what_sqlglot_writes_reads_back_as_the_same(sql: str) -> None:
    written = to_sql(parse_query(sql, tokenize(sql)))
    one, two = read_statements([sql, written])
    assert one is not None
    assert one == two, written


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SELECT a::text", "SELECT CAST(a AS VARCHAR)", True),
        ("SELECT   a  -- x", "SELECT a", True),
        ("SELECT a = 1 IS NULL", "SELECT a = (1 IS NULL)", False),
        ("SELECT 'A'", "SELECT 'a'", False),
        ("SELECT a::DECIMAL(10,2)", "SELECT a::DECIMAL(10,3)", False),
    ],
)
def test_readings_differ_where_meanings_do(one: str, other: str, *, same: bool) -> None:
    assert (read(one) == read(other)) is same


@pytest.mark.parametrize(
    ("sql", "facts"),
    [
        (
            "SELECT upper(a), a + 1 FROM t",
            {
                "aggregates": set(),
                "has_windows": False,
                "is_repeatable": True,
                "depends_on_order": False,
            },
        ),
        (
            "SELECT count(*), list(a), my_own(a) FROM t",
            {"aggregates": {"count_star", "list", "my_own"}, "is_repeatable": False, "depends_on_order": True},
        ),
        ("SELECT sum(a) OVER () FROM t", {"aggregates": set(), "has_windows": True, "depends_on_order": True}),
        ("SELECT now()", {"is_repeatable": False}),
        ("SELECT current_date", {"is_repeatable": False}),
        ("SELECT a FROM t USING SAMPLE 3", {"is_repeatable": False}),
        ("SELECT nullif(a, 1), split_part(b, 'x', 1)", {"is_repeatable": True, "aggregates": set()}),
        ("SELECT a FROM t LIMIT 3", {"depends_on_order": True}),
        ("SELECT DISTINCT ON (a) a FROM t", {"depends_on_order": True}),
        ("SELECT a FROM t WHERE a = $1", {"parameters_only_in_where": True}),
        ("SELECT $1 FROM t WHERE a = $1", {"parameters_only_in_where": False}),
    ],
)
def test_facts(sql: str, facts: dict[str, Any]) -> None:
    reading = read(sql)
    found = {name: set(reading.aggregates()) if name == "aggregates" else getattr(reading, name) for name in facts}
    assert found == facts


@pytest.mark.parametrize(
    "expression",
    [
        "3 + 2",
        "a - 1",
        "$1 + 1",
        "date_part('year', DATE '2024-02-01')",
        "DATE '2024-02-01' - INTERVAL 1 DAY",
        "z + INTERVAL 1 DAY",
        "$1::TIMESTAMPTZ - INTERVAL 1 DAY",
        "TIMESTAMPTZ '2024-02-01 00:00:00+00' - z",
        "date_trunc('day', z)",
        "time_bucket(INTERVAL 1 DAY, z)",
        "strftime(z, '%Y')",
        "timezone('Europe/Berlin', z)",
        "make_timestamptz(2024, 1, 1, 0, 0, 0.0)",
        "age(z, z)",
        "range(z, z, INTERVAL 1 DAY)",
        "hour(z), monthname(z), last_day(z), datediff('day', z, z)",
    ],
)
def test_what_depends_on_arguments_and_fixed_settings_is_stable(expression: str) -> None:
    assert not read(f"SELECT {expression} FROM t").unstable()


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("now() - INTERVAL 1 DAY", {"now"}),
        ("age(z)", {"age"}),
        ("age(DATE '2024-02-01')", {"age"}),
        ("random() + 1", {"random"}),
        ("current_localtimestamp()", {"current_localtimestamp"}),
        ("localtime, current_time", {"localtime", "current_time"}),
        ("uuid(), gen_random_uuid(), error('no')", {"uuid", "gen_random_uuid", "error"}),
        ("current_schema(), current_database(), today()", {"current_schema", "current_database", "today"}),
    ],
)
def test_what_depends_on_the_clock_or_on_chance_is_not_stable(expression: str, found: set[str]) -> None:
    assert read(f"SELECT {expression} FROM t").unstable().keys() == found


def test_forms_that_depend_on_more_than_their_arguments_depend_on_settings_alone() -> None:
    """Another one has to be looked at: if it reads the clock although it has arguments, it is not stable."""
    with duckdb.connect() as database:
        rows = database.execute(
            "SELECT DISTINCT lower(function_name), [p FOR p IN list_concat(parameter_types, [return_type])"
            " IF p LIKE '%TIME ZONE' OR p = 'TIMESTAMPTZ_NS'] FROM duckdb_functions()"
            " WHERE stability = 'CONSISTENT_WITHIN_QUERY' AND len(parameters) > 0"
        ).fetchall()
    others = {name for name, zoned in rows if not zoned and is_listed(name)}
    assert others <= {"current_schemas"}


def test_what_is_no_query_has_no_reading() -> None:
    assert read_statement("DROP TABLE t") is None
    assert read_statement("SELEC") is None
