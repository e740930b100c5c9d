"""DEFAULT is read to a text that means the same value to DuckDB and without it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest

from secateur.errors import DataError, Error, NotSupportedError, SqlSyntaxError
from secateur.partitioning.types import DefaultValue, parse_type
from secateur.planner.ddl import read_default
from secateur.planner.text import TokenCursor, tokenize


def read(text: str, kind: str) -> str:
    cursor = TokenCursor(text, tokenize(text))
    found = read_default(cursor, "c", parse_type(kind))
    assert cursor.at_end
    return found


CONSTANTS = [
    ("1 + 1", "BIGINT", "2", 2),
    ("-5", "INTEGER", "-5", -5),
    ("2.0", "INTEGER", "2", 2),
    ("'5'", "INTEGER", "5", 5),
    ("99999999999999999999", "HUGEINT", "99999999999999999999", 99999999999999999999),
    ("1.5", "DECIMAL(4,2)", "1.50", Decimal("1.50")),
    ("0.1", "DOUBLE", "0.1", 0.1),
    ("0.1", "FLOAT", "0.1", 0.10000000149011612),
    ("1e300", "DOUBLE", "1e+300", 1e300),
    ("'inf'", "DOUBLE", "'inf'", float("inf")),
    ("1 > 0", "BOOLEAN", "true", True),
    ("'it''s'", "VARCHAR", "'it''s'", "it's"),
    ("upper('x')", "VARCHAR", "'X'", "X"),
    ("'n/a (none) repeat(x)'", "VARCHAR", "'n/a (none) repeat(x)'", "n/a (none) repeat(x)"),
    ("CASE WHEN 1 IN (1, 2) THEN coalesce(NULL, 3) END", "INTEGER", "3", 3),
    ("5", "VARCHAR", "'5'", "5"),
    ("'ab'::BLOB", "BLOB", r"'\x61\x62'", b"ab"),
    ("DATE '2020-01-31'", "DATE", "'2020-01-31'", date(2020, 1, 31)),
    ("'2020-01-31'", "TIMESTAMP", "'2020-01-31 00:00:00'", datetime(2020, 1, 31)),
    ("'2020-01-31 10:00+02'", "TIMESTAMPTZ", "'2020-01-31 08:00:00+00:00'", datetime(2020, 1, 31, 8, tzinfo=UTC)),
    ("'10:00:00.5'", "TIME", "'10:00:00.500000'", time(10, 0, 0, 500_000)),
    (
        "INTERVAL '1 month 2 hours'",
        "INTERVAL",
        "'1 months 0 days 7200000000 microseconds'",
        pa.MonthDayNano([1, 0, 7_200_000_000_000]),
    ),
    (f"'{UUID(int=1)}'", "UUID", f"'{UUID(int=1)}'", UUID(int=1)),
    ("[1, 1 + 1, NULL]", "INTEGER[]", "[1, 2, NULL]", [1, 2, None]),
    ("[]", "INTEGER[]", "[]", []),
    ("{'a': 1, 'b': 'x, ]'}", "STRUCT(a BIGINT, b VARCHAR)", "{'a': 1, 'b': 'x, ]'}", {"a": 1, "b": "x, ]"}),
    ("MAP {'k': [1]}", "MAP(VARCHAR, INTEGER[])", "MAP {'k': [1]}", [("k", [1])]),
    ("NULL", "INTEGER", "NULL", None),
]


@pytest.mark.parametrize(("text", "kind", "made", "value"), CONSTANTS)
def test_a_constant_is_a_literal_of_its_value(text: str, kind: str, made: str, value: Any) -> None:
    assert read(text, kind) == made
    assert DefaultValue.of(made, parse_type(kind)).constant == value
    assert read(made, kind) == made, "what is printed is read again"
    with duckdb.connect() as db:
        same = db.sql(f"SELECT CAST({made} AS {kind}) IS NOT DISTINCT FROM CAST({text} AS {kind})").fetchall()
    assert same == [(True,)]


@pytest.mark.parametrize(
    ("text", "kind", "made"),
    [
        ("now()", "TIMESTAMPTZ", "now()"),
        ("CURRENT_TIMESTAMP", "TIMESTAMP", "now()"),
        ("get_current_timestamp()", "TIMESTAMPTZ", "now()"),
        ("current_date", "DATE", "current_date()"),
        ("today()", "TIMESTAMP", "current_date()"),
        ("localtimestamp", "TIMESTAMP", "current_localtimestamp()"),
        ("localtime", "TIME", "current_localtime()"),
        ("uuid()", "UUID", "uuid()"),
        ("gen_random_uuid()", "VARCHAR", "uuid()"),
        ("uuidv4()", "UUID", "uuid()"),
        ("uuidv7()", "UUID", "uuidv7()"),
    ],
)
def test_functions_of_the_clock_and_uuids_are_kept(text: str, kind: str, made: str) -> None:
    assert read(text, kind) == read(made, kind) == made
    default = DefaultValue.of(made, parse_type(kind))
    now = datetime(2020, 1, 31, 10, 30, tzinfo=UTC)
    values = default.values(3, now)
    assert len(set(values)) == (3 if "uuid" in made else 1)
    (own,) = {type(value) for value in values}
    with duckdb.connect() as db:
        column = db.sql(f"SELECT CAST({made} AS {kind}) AS value").to_arrow_table().column(0)
    assert own is type(column[0].as_py()) or own is UUID


def test_a_version_7_uuid_is_one_and_later_ones_are_larger() -> None:
    default = DefaultValue.of("uuidv7()", parse_type("UUID"))
    first, second = (default.values(1, datetime.now(UTC))[0] for _ in range(2))
    assert (first.version, second.version) == (7, 7)
    assert first.int >> 80 <= second.int >> 80


@pytest.mark.parametrize(
    ("text", "kind", "error", "message"),
    [
        ("1.5", "INTEGER", DataError, "not exactly one of INTEGER"),
        ("1.567", "DECIMAL(4,2)", DataError, "not exactly"),
        ("'1.5'", "INTEGER", DataError, "not a whole number"),
        ("300", "TINYINT", DataError, "out of range"),
        ("'abc'", "INTEGER", DataError, "abc"),
        ("TIMESTAMP '2020-01-31 10:00:00'", "DATE", DataError, "not exactly"),
        ("'2020-01-31 10:00:00'", "DATE", DataError, "not exactly"),
        ("'infinity'", "DATE", NotSupportedError, "years 1 to 9999"),
        ("now()", "DATE", DataError, "TIMESTAMP or TIMESTAMP WITH TIME ZONE"),
        ("'x' || chr(0)", "VARCHAR", DataError, "NUL"),
        ("random()", "DOUBLE", NotSupportedError, r"random\(\) in DEFAULT .* give any other"),
        ("now() + INTERVAL 1 DAY", "TIMESTAMPTZ", NotSupportedError, r"now\(\) in DEFAULT"),
        ("a + 1", "INTEGER", NotSupportedError, "column 'a'"),
        ("(SELECT 1)", "INTEGER", NotSupportedError, "subquery"),
        ("sum(1)", "INTEGER", NotSupportedError, "reads no other rows"),
        ("row_number() OVER ()", "INTEGER", NotSupportedError, "window"),
        ("unnest([1])", "INTEGER", NotSupportedError, "unnest"),
        ("nosuch(1)", "INTEGER", NotSupportedError, "DuckDB does not know it"),
        ("repeat('x', 1000000000)", "VARCHAR", NotSupportedError, "larger than its arguments"),
        ("getenv('HOME')", "VARCHAR", NotSupportedError, "getenv"),
        ("1 2", "INTEGER", SqlSyntaxError, "does not parse"),
        ("", "INTEGER", SqlSyntaxError, "expected a value"),
    ],
)
def test_what_is_no_default_is_refused_with_its_reason(text: str, kind: str, error: type[Error], message: str) -> None:
    with pytest.raises(error, match=message):
        read(text, kind)


def test_it_ends_before_the_next_constraint() -> None:
    text = "1 NOT NULL CHECK (a > 0)"
    cursor = TokenCursor(text, tokenize(text))
    assert read_default(cursor, "c", parse_type("INTEGER")) == "1"
    assert cursor.at("NOT", "NULL")
