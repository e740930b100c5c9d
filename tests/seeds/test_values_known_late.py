"""Values known late: Hazelcast's "SQL Optimization for Partition Pruning", expressions of parameters, and the clock.

Every deterministic scalar function of literals and parameters selects the same partitions as its value does. A function
of the clock has one value in a statement: in the selection of partitions, on every member and in every step.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster

TEXTS = """
upper({}) | lower({}) | trim({}) | ltrim({}) | rtrim({}) | concat({}, 'x') | {} || 'x' | substr({}, 1, 2)
substring({}, 1, 2) | left({}, 2) | right({}, 2) | replace({}, 'a', 'b') | reverse({}) | lpad({}, 5, '0')
rpad({}, 5, '0') | repeat({}, 2) | md5({}) | sha256({}) | split_part({}, '-', 1) | regexp_replace({}, 'a', 'b')
regexp_extract({}, '[a-z]+') | coalesce({}, 'q') | nullif({}, 'q') | greatest({}, 'q') | least({}, 'q')
CASE WHEN {} = 'a' THEN 'x' ELSE 'y' END | if({} = 'a', 'x', 'y') | format('{{}}-{{}}', {}, 'b') | printf('%s-x', {})
strip_accents({}) | translate({}, 'a', 'b') | CAST({} AS VARCHAR) | concat_ws('-', {}, 'b') | hex({})
base64(encode({})) | url_encode({}) | chr(ascii({}))
"""
NUMBERS = """
{} + 1 | {} * 2 | {} - 1 | {} // 2 | {} % 7 | abs({}) | -({}) | greatest({}, 1) | least({}, 1) | coalesce({}, 1)
CAST({} AS BIGINT) | CAST({} AS VARCHAR)::BIGINT | round({})::BIGINT | floor({} / 2)::BIGINT | ceil({} / 2.0)::BIGINT
{} & 3 | {} << 1 | xor({}, 3) | sign({}) | power({}, 2)::BIGINT | sqrt({})::BIGINT
CASE WHEN {} > 3 THEN 1 ELSE 2 END | length(CAST({} AS VARCHAR)) | mod({}, 7) | (hash({}) % 100)::BIGINT | gcd({}, 6)
factorial({})::BIGINT
"""
DAYS = """
{} + INTERVAL 1 DAY | CAST({} AS DATE) | date_trunc('month', {}) | date_add({}, INTERVAL 1 DAY) | last_day({})
{} + 1 | {} - 1 | make_date(year({}), 1, 1) | strptime(strftime({}, '%Y-%m-%d'), '%Y-%m-%d')::DATE
greatest({}, DATE '2020-01-01') | date_trunc('week', {})::DATE
"""
FORMS = [
    pytest.param(table, form, literal, value, id=form)
    for table, forms, literal, value in (
        ("late_texts", [*TEXTS.replace("\n", " | ").split(" | ")], "'a-b'", "a-b"),
        ("late_numbers", [*NUMBERS.replace("\n", " | ").split(" | "), "{} | 3"], "5", 5),
        ("late_days", [*DAYS.replace("\n", " | ").split(" | ")], "DATE '2024-03-05'", date(2024, 3, 5)),
    )
    for form in forms
    if form
]


def value_of(form: str, value: Any) -> Any:
    """What DuckDB makes of a form, as a key."""
    ((key,),) = duckdb.execute(f"SELECT {form.format('$1')}", [value]).fetchall()
    return key.date() if isinstance(key, datetime) else key


@pytest.fixture(scope="module")
def tables(cluster: Cluster) -> Iterator[None]:
    with cluster.connect() as conn:
        for name, kind in (("late_texts", "VARCHAR"), ("late_numbers", "BIGINT"), ("late_days", "DATE")):
            conn.execute(f"CREATE TABLE {name} (k {kind} PRIMARY KEY, v INTEGER) PARTITION BY HASH (k) PARTITIONS 31")
        conn.execute(
            "CREATE TABLE late_events (day DATE, n BIGINT, seen TIMESTAMP, PRIMARY KEY (day, n)) PARTITION BY HASH"
            " (day) PARTITIONS 31"
        )
        for name in ("late_texts", "late_numbers", "late_days"):
            keys = {value_of(each.values[1], each.values[3]) for each in FORMS if each.values[0] == name}
            conn.table(name).put_many([(key, 1) for key in keys])
        today = datetime.now(UTC).date()
        days = [today - timedelta(days=back) for back in range(-2, 12)]
        conn.table("late_events").load(
            pa.table({"day": days * 3, "n": range(3 * len(days)), "seen": [datetime(2020, 1, 1)] * 3 * len(days)})
        )
        yield


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(("table", "form", "literal", "value"), FORMS)
def test_an_expression_of_a_parameter_selects_what_its_value_selects(
    conn: secateur.Connection, table: str, form: str, literal: str, value: Any
) -> None:
    key = value_of(form, value)
    for text, params in ((form.format("$1"), [value]), (form.format(literal), [])):
        cursor = conn.execute(f"SELECT k FROM {table} WHERE k = {text}", params)
        assert cursor.fetchall() == [(key,)]
        assert (cursor.stats.partitions_read, cursor.stats.members_touched) == (1, 1)
        assert str(cursor.stats.execution) == "local"


@pytest.mark.usefixtures("tables")
def test_a_failing_expression_is_an_error_only_where_duckdb_evaluates_it(conn: secateur.Connection) -> None:
    sql = "SELECT k FROM late_numbers WHERE k = CAST(? AS BIGINT)"
    conn.execute("INSERT INTO late_numbers VALUES (77, 1) ON CONFLICT DO NOTHING")
    with pytest.raises(secateur.DataError, match="abc"):
        conn.execute(sql, ["abc"]).fetchall()
    assert conn.execute(sql, ["77"]).fetchall() == [(77,)]


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    "text",
    [
        "repeat($1, $2)",
        "lpad($1, $2, 'x')",
        "replace(repeat($1, 4000), 'a', repeat('b', $2 // $2 * 4000))",
        "CASE WHEN $1 = 'a' THEN repeat('x', $2) ELSE 'z' END",
    ],
)
def test_no_large_value_is_made_to_select_partitions(conn: secateur.Connection, text: str) -> None:
    """The statement itself is not run: EXPLAIN selects the partitions, and evaluates no more than that."""
    conn.execute(f"EXPLAIN SELECT k FROM late_texts WHERE k = {text}", ["a", 1_000_000_000]).fetchall()


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("condition", "partitions"),
    [
        ("day = current_date", 1),
        ("day = today()", 1),
        ("day = now()::DATE", 1),
        ("day = current_date - 1", 1),
        ("day = date_trunc('day', now())", 1),
        ("day = localtimestamp::DATE", 1),
        ("day IN (current_date, current_date - $1)", 2),
    ],
)
def test_a_condition_on_the_clock_selects_its_days(conn: secateur.Connection, condition: str, partitions: int) -> None:
    cursor = conn.execute(f"SELECT count(*) FROM late_events WHERE {condition}", [1] if "$1" in condition else [])
    assert cursor.fetchall() == [(3 * partitions,)]
    assert cursor.stats.partitions_read <= partitions


@pytest.mark.usefixtures("tables")
def test_one_statement_has_one_time_on_all_members(conn: secateur.Connection) -> None:
    rows = conn.execute("SELECT DISTINCT now(), current_timestamp FROM late_events WHERE seen < now()").fetchall()
    assert len(rows) == 1
    assert rows[0][0] == rows[0][1]
    conn.execute("UPDATE late_events SET seen = now()")
    assert conn.execute("SELECT count(DISTINCT seen) FROM late_events").fetchall() == [(1,)]
    conn.execute("INSERT INTO late_events SELECT day, n + 1000, localtimestamp FROM late_events")
    assert conn.execute("SELECT count(DISTINCT seen) FROM late_events WHERE n >= 1000").fetchall() == [(1,)]
    conn.execute("DELETE FROM late_events WHERE n >= 1000 AND seen <= now()")
    assert conn.execute("SELECT count(*) FROM late_events WHERE n >= 1000").fetchall() == [(0,)]


@pytest.mark.usefixtures("tables")
def test_a_kept_plan_reads_the_clock_each_time(conn: secateur.Connection) -> None:
    for call in ("now()", "current_localtimestamp()", "localtime"):
        sql = f"SELECT DISTINCT {call} FROM late_events"
        first, second = (conn.execute(sql).fetchone() for _ in range(2))
        assert first is not None
        assert second is not None
        assert first[0] < second[0]


def test_a_column_named_as_the_clock_is_the_column(conn: secateur.Connection) -> None:
    conn.execute('CREATE TABLE late_names ("current_date" DATE PRIMARY KEY)')
    conn.execute("INSERT INTO late_names VALUES (DATE '2001-01-01')")
    assert conn.execute("SELECT current_date FROM late_names WHERE current_date < DATE '2002-01-01'").fetchall() == [
        (date(2001, 1, 1),)
    ]
