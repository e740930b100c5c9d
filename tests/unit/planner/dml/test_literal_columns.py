"""Which literals are values of a column without DuckDB, and which texts have rows that are taken out."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from secateur.partitioning.types import parse_type
from secateur.planner.dml import take_literal_rows
from secateur.planner.dml.literal_insert import literal_column


@pytest.mark.parametrize(
    ("type_", "texts", "values"),
    [
        ("INTEGER", ["1", "-2", "null", "2147483647"], [1, -2, None, 2147483647]),
        ("UBIGINT", ["18446744073709551615"], [2**64 - 1]),
        ("VARCHAR", ["'a'", "''", "'it''s'", "NULL"], ["a", "", "it's", None]),
        ("BOOLEAN", ["TRUE", "false"], [True, False]),
        ("DECIMAL(6,2)", ["1.5", "-.25", "3."], [Decimal("1.50"), Decimal("-0.25"), Decimal("3.00")]),
        ("DOUBLE", ["0.1", "-3"], [0.1, -3.0]),
        ("HUGEINT", ["1", "-100000000000000000000"], [Decimal(1), Decimal(-(10**20))]),
        ("DATE", ["DATE '2024-02-29'", "'2024-03-01'"], [date(2024, 2, 29), date(2024, 3, 1)]),
        ("TIMESTAMP", ["'2024-02-29 12:00:00'"], [datetime(2024, 2, 29, 12)]),
    ],
)
def test_certain_literals(type_: str, texts: list[str], values: list[Any]) -> None:
    column = literal_column(texts, parse_type(type_))
    assert column is not None
    assert column.to_pylist() == values


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        *[("INTEGER", text) for text in ("1.0", "'1'", "2147483648", "1e3", "true", "1 + 1")],
        *[("VARCHAR", text) for text in ("1", "'a' || 'b'", "E'a'", "'a' 'b'", '"a"')],
        *[("DECIMAL(6,2)", text) for text in ("1.255", "10000", "1e2", "'1.5'")],
        *[("DATE", text) for text in ("'2023-02-29'", "'24-01-01'", "TIMESTAMP '2024-01-01'", "'infinity'")],
        *[("DOUBLE", text) for text in ("1e5", "0.1000000000000000055511151231257827")],
        *[("FLOAT", "0.5"), ("HUGEINT", "1.0"), ("BLOB", "'a'"), ("TIMESTAMP WITH TIME ZONE", "'2024-01-01'")],
    ],
)
def test_literals_that_are_left_to_duckdb(type_: str, text: str) -> None:
    assert literal_column([text], parse_type(type_)) is None


def test_rows_are_taken_out_of_an_insert() -> None:
    taken = take_literal_rows("INSERT INTO t (\"a\", B) VALUES (1, 'x, y'),\n( -2.5 ,NULL ) ON CONFLICT DO NOTHING;")
    assert taken is not None
    assert taken.rows == [("1", "'x, y'"), ("-2.5", "NULL")]
    assert taken.columns == ("a", "B")
    assert taken.text == "INSERT INTO t (\"a\", B) VALUES (1, 'x, y')  ON CONFLICT DO NOTHING;"


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1, 2)",
        "INSERT INTO t VALUES (1, 2), (3)",
        "INSERT INTO t VALUES (1), (?)",
        "INSERT INTO t VALUES (1), (2) , ",
        "INSERT INTO t VALUES (1), (2 + 1)",
        "INSERT INTO t VALUES (1), ('a'\n'b')",
        "INSERT INTO t VALUES (1), (2 -- two\n)",
        "INSERT INTO t VALUES (1), (DEFAULT)",
        "INSERT INTO t SELECT * FROM (VALUES (1), (2))",
        "EXPLAIN INSERT INTO t VALUES (1), (2)",
        "WITH a AS (SELECT 1) INSERT INTO t VALUES (1), (2)",
        "INSERT INTO s.t VALUES (1), (2)",
        "INSERT INTO t AS x VALUES (1), (2)",
    ],
)
def test_texts_that_stay_as_they_are(sql: str) -> None:
    assert take_literal_rows(sql) is None
