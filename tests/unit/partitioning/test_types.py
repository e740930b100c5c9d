from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.errors import NotSupportedError
from secateur.partitioning.types import SqlType, TypeKind, parse_type, type_of_arrow


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BIGINT", "BIGINT"),
        ("int", "INTEGER"),
        ("Int8", "BIGINT"),
        ("text", "VARCHAR"),
        (" varchar ", "VARCHAR"),
        ("varchar(20)", "VARCHAR"),
        ("double  precision", "DOUBLE"),
        ("timestamptz", "TIMESTAMP WITH TIME ZONE"),
        ("TIMESTAMP  WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE"),
        ("decimal", "DECIMAL(18,3)"),
        ("NUMERIC(5)", "DECIMAL(5,0)"),
        ("dec ( 38 , 10 )", "DECIMAL(38,10)"),
        ("FLOAT[]", "FLOAT[]"),
        ("decimal(5,2)[] []", "DECIMAL(5,2)[][]"),
        ("uuid", "UUID"),
        ("bytea", "BLOB"),
    ],
)
def test_parse(text: str, expected: str) -> None:
    assert str(parse_type(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NOPE",
        "LIST",
        "DECIMAL(39,0)",
        "DECIMAL(0,0)",
        "DECIMAL(5,6)",
        "INTEGER[3]",
        "STRUCT(a INTEGER)",
        "BIGINT;",
        "(5)",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(NotSupportedError, match="type "):
        parse_type(text)


@pytest.mark.parametrize("kind", [kind for kind in TypeKind if kind is not TypeKind.LIST])
def test_text_and_arrow_round_trips(kind: TypeKind) -> None:
    type_ = parse_type(kind.value)
    assert parse_type(str(type_)) == type_
    expected = SqlType(TypeKind.DECIMAL, 38, 0) if kind is TypeKind.HUGEINT else type_
    assert type_of_arrow(type_.arrow) == expected
    assert parse_type(f"{type_}[]").arrow == pa.list_(type_.arrow)


@pytest.mark.parametrize(
    ("arrow", "expected"),
    [
        (pa.large_string(), "VARCHAR"),
        (pa.string_view(), "VARCHAR"),
        (pa.dictionary(pa.int8(), pa.string()), "VARCHAR"),
        (pa.large_binary(), "BLOB"),
        (pa.binary(5), "BLOB"),
        (pa.date64(), "DATE"),
        (pa.timestamp("ns"), "TIMESTAMP"),
        (pa.timestamp("s", "America/New_York"), "TIMESTAMP WITH TIME ZONE"),
        (pa.decimal256(30, 3), "DECIMAL(30,3)"),
        (pa.large_list(pa.int8()), "TINYINT[]"),
        (pa.list_(pa.float32(), 128), "FLOAT[]"),
    ],
    ids=str,
)
def test_arrow_types_that_are_not_ours(arrow: pa.DataType, expected: str) -> None:
    assert str(type_of_arrow(arrow)) == expected


@pytest.mark.parametrize(
    "arrow", [pa.struct([("a", pa.int8())]), pa.float16(), pa.decimal256(50, 0), pa.duration("s"), pa.null()], ids=str
)
def test_arrow_types_without_a_column_type(arrow: pa.DataType) -> None:
    with pytest.raises(NotSupportedError, match="has no column type"):
        type_of_arrow(arrow)


def test_what_may_partition() -> None:
    refused = {
        str(parse_type(kind.value))
        for kind in TypeKind
        if kind is not TypeKind.LIST and not parse_type(kind.value).can_partition
    }
    assert refused == {"FLOAT", "DOUBLE", "HUGEINT", "TIME", "INTERVAL"}
    assert not parse_type("INTEGER[]").can_partition


def test_integer_ranges() -> None:
    assert parse_type("UTINYINT").integer_range == (0, 255)
    assert parse_type("BIGINT").integer_range == (-(2**63), 2**63 - 1)
    assert parse_type("BIGINT").is_integer
    assert not parse_type("DECIMAL(5,0)").is_integer
    assert parse_type("REAL").is_float
