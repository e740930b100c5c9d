"""Which answers are the same wherever, whenever and in whatever order they are made."""

from __future__ import annotations

import duckdb
import pytest
from bound_statements import root

from secateur.planner.binding import is_listed
from secateur.planner.binding.evaluation import is_small
from secateur.planner.tree import depends_on_order, is_repeatable


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT upper(b), a + 1 FROM t", True),
        ("SELECT nullif(a, 1), split_part(b, 'x', 1), list_sum([a]) FROM t", True),
        ("FROM range(3)", True),
        ("SELECT unnest([1, 2])", True),
        ("SELECT now()", False),
        ("SELECT max(a) FILTER (WHERE a > random()) FROM t", False),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a > t.a + random())", False),
        ("SELECT a FROM t USING SAMPLE 3", False),
    ],
)
def test_an_answer_repeats(sql: str, *, expected: bool) -> None:
    assert is_repeatable(root(sql)) is expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT upper(b), a + 1 FROM t", False),
        ("SELECT count(*), sum(a), min(b) FROM t GROUP BY b", False),
        ("SELECT a FROM t ORDER BY a", False),
        ("SELECT a, (SELECT a FROM u WHERE b = 'x') FROM t WHERE EXISTS (FROM u)", False),
        ("SELECT a, (SELECT max(a) FROM u WHERE u.b = t.b) FROM t WHERE a IN (SELECT a FROM u)", False),
        ("SELECT count(*), list(a) FROM t", True),
        ("SELECT first(a) FROM t", True),
        ("SELECT sum(a) OVER () FROM t", True),
        ("SELECT a FROM t LIMIT 3", True),
        ("SELECT DISTINCT ON (a) a FROM t", True),
        ("SELECT * FROM t POSITIONAL JOIN u", True),
        ("SELECT a FROM t WHERE a = (SELECT a FROM u LIMIT 1)", True),
    ],
)
def test_an_answer_depends_on_the_order_of_rows(sql: str, *, expected: bool) -> None:
    assert depends_on_order(root(sql)) is expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1, 'x' || 'y'", True),
        ("VALUES (1), (2)", True),
        ("SELECT (SELECT 2), EXISTS (SELECT 1)", True),
        ("FROM (VALUES (1), (2)) x, (VALUES (3), (4)) y", False),
        ("FROM range(3)", False),
        ("SELECT unnest([1, 2])", False),
        ("WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 5) FROM r", False),
    ],
)
def test_an_answer_has_no_more_rows_than_its_text(sql: str, *, expected: bool) -> None:
    assert is_small(root(sql)) is expected


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
    assert is_repeatable(root(f"SELECT {expression} FROM t"))


@pytest.mark.parametrize(
    "expression",
    [
        "age(z)",
        "age(DATE '2024-02-01')",
        "random() + 1",
        "current_localtimestamp()",
        "localtime",
        "current_time",
        "uuid()",
        "gen_random_uuid()",
        "current_schema()",
        "current_database()",
        "today()",
    ],
)
def test_what_depends_on_the_clock_or_on_chance_is_not_stable(expression: str) -> None:
    assert not is_repeatable(root(f"SELECT {expression} FROM t"))


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
