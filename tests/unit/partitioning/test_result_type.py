from __future__ import annotations

import pytest

from secateur.partitioning.types import (
    Constructor,
    ResultType,
    SqlType,
    TypeKind,
    column_type_of,
    parse_result_type,
)


def test_a_column_type_is_none_for_types_that_only_results_have() -> None:
    assert column_type_of("BIGINT[]") == SqlType(TypeKind.LIST, element=SqlType(TypeKind.BIGINT))
    assert str(column_type_of("STRUCT(a INTEGER)")) == "STRUCT(a INTEGER)"
    assert str(column_type_of("STRUCT(a INTEGER[3])")) == "STRUCT(a INTEGER[3])"
    assert column_type_of("STRUCT(a BIT[3])") is None
    assert column_type_of("MAP(VARCHAR, BIT)") is None


def test_a_text_is_read_into_its_parts() -> None:
    got = parse_result_type('MAP(ENUM(\'x, )\', \'y\'), STRUCT("a ""b"", c" DECIMAL(4,1)[3], d TUPLE(BIT)))')
    decimals = ResultType("DECIMAL(4,1)[3]", Constructor.LIST, (ResultType("DECIMAL(4,1)"),), length=3)
    bits = ResultType("TUPLE(BIT)", Constructor.TUPLE, (ResultType("BIT"),))
    keys, values = got.parts
    assert keys == ResultType("ENUM('x, )', 'y')")
    assert values.parts == (decimals, bits)
    assert values.field_names == ('"a ""b"", c"', "d")
    assert values.unquoted_names == ['a "b", c', "d"]
    assert bits.unquoted_names == ["element1"]


@pytest.mark.parametrize(
    "text",
    [
        "INTEGER",
        "INTEGER[][3]",
        'STRUCT("a b" INTEGER, c STRUCT(d DATE)[])',
        "TUPLE(INTEGER, VARCHAR)",
        "MAP(VARCHAR, DECIMAL(4,1))",
        "UNION(a DATE, b INTEGER)",
    ],
)
def test_a_type_with_its_own_parts_has_its_own_text(text: str) -> None:
    assert parse_result_type(text).text_with(lambda part: part.text) == text
