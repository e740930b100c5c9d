"""Types both ways: in DDL, and of reflected columns; and values that are literals."""

from __future__ import annotations

import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from secateur import sqlalchemy_dialect
from secateur.sqlalchemy_dialect import FixedArray, NestedType, SecateurDialect, UnitTimestamp, reflected_type

DIALECT = SecateurDialect()


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (sa.Boolean(), "BOOLEAN"),
        (sa.SmallInteger(), "SMALLINT"),
        (sa.BigInteger(), "BIGINT"),
        (sqlalchemy_dialect.TINYINT(), "TINYINT"),
        (sqlalchemy_dialect.UBIGINT(), "UBIGINT"),
        (sa.Float(), "DOUBLE"),
        (sa.Float(24), "FLOAT"),
        (sa.Float(53), "DOUBLE"),
        (sa.REAL(), "FLOAT"),
        (sa.Double(), "DOUBLE"),
        (sa.DOUBLE_PRECISION(), "DOUBLE"),
        (sa.Numeric(12, 3), "NUMERIC(12, 3)"),
        (sa.String(7), "VARCHAR(7)"),
        (sa.Text(), "VARCHAR"),
        (sa.Unicode(7), "VARCHAR(7)"),
        (sa.UnicodeText(), "VARCHAR"),
        (sa.Enum("a", "it's"), "ENUM('a', 'it''s')"),
        (sa.Enum("a", "b", native_enum=False), "VARCHAR"),
        (sa.JSON(), "JSON"),
        (sa.LargeBinary(), "BLOB"),
        (sa.VARBINARY(3), "BLOB"),
        (sa.BINARY(3), "BLOB"),
        (sa.Date(), "DATE"),
        (sa.Time(), "TIME"),
        (sa.DateTime(), "TIMESTAMP"),
        (sa.DateTime(timezone=True), "TIMESTAMP WITH TIME ZONE"),
        (sa.DATETIME(), "TIMESTAMP"),
        (sa.Interval(), "INTERVAL"),
        (sa.Uuid(), "UUID"),
        (sa.UUID(), "UUID"),
        (sa.ARRAY(sa.Integer, dimensions=2), "INTEGER[][]"),
        (NestedType("STRUCT(a INTEGER)"), "STRUCT(a INTEGER)"),
        (FixedArray(sa.REAL, 384), "FLOAT[384]"),
        (sa.ARRAY(FixedArray(sa.Integer(), 2)), "INTEGER[2][]"),
        (UnitTimestamp("NS"), "TIMESTAMP_NS"),
    ],
    ids=str,
)
def test_types_of_columns(made: TypeEngine[Any], expected: str) -> None:
    assert made.compile(DIALECT) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER"),
        *("UBIGINT", "FLOAT", "DOUBLE", "VARCHAR", "BLOB", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"),
        *("INTERVAL", "UUID", "DECIMAL(10, 2)", "INTEGER[]", "VARCHAR[][]", "STRUCT(a INTEGER, b VARCHAR[])[]"),
        *("MAP(VARCHAR, DOUBLE)", "ENUM('a', 'b')", "FLOAT[384]", "INTEGER[2][3]", "INTEGER[][3][]", "BIT[2]"),
        *("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP_NS[2]", "JSON", "ENUM('it''s')[]"),
    ],
)
def test_a_reflected_type_has_its_own_text(text: str) -> None:
    assert reflected_type(text).compile(DIALECT) == text


def test_lists_of_lists_are_one_array() -> None:
    found = reflected_type("DECIMAL(4,1)[][]")
    assert isinstance(found, sa.ARRAY)
    assert found.dimensions == 2
    assert isinstance(found.item_type, sa.DECIMAL)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (sa.Numeric(), 2.3, Decimal("2.3")),
        (sa.Numeric(), 3, Decimal(3)),
        (sa.Numeric(), Decimal("1.50"), Decimal("1.50")),
        (sa.Numeric(), None, None),
        (sa.Numeric(asdecimal=False), Decimal("1.5"), 1.5),
        (sa.Uuid(as_uuid=False), uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (sa.Uuid(as_uuid=False), None, None),
    ],
)
def test_values_of_results(kind: TypeEngine[Any], value: Any, expected: Any) -> None:
    process = kind.dialect_impl(DIALECT).result_processor(DIALECT, None)
    assert process is not None
    found = process(value)
    assert (found, type(found)) == (expected, type(expected))


def test_an_interval_is_written_with_microseconds() -> None:
    literal = sa.select(sa.literal(timedelta(days=1, microseconds=5), sa.Interval, literal_execute=True))
    text = str(literal.compile(dialect=DIALECT, compile_kwargs={"literal_binds": True, "render_postcompile": True}))
    assert text == "SELECT to_microseconds(86400000005) AS anon_1"
