from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from secateur.errors import NotSupportedError
from secateur.partitioning.types import KEYWORDS, NESTED, UNIT_TIMESTAMPS, SqlType, TypeKind, parse_type, type_of_arrow

SCALARS = [kind for kind in TypeKind if kind not in NESTED and kind is not TypeKind.ENUM]


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
        ("real [ 384 ]", "FLOAT[384]"),
        ("int[2][][3]", "INTEGER[2][][3]"),
        ("timestamp_us", "TIMESTAMP"),
        ("timestamp_ns[2]", "TIMESTAMP_NS[2]"),
        ("decimal(5,2)[] []", "DECIMAL(5,2)[][]"),
        ("uuid", "UUID"),
        ("bytea", "BLOB"),
        ("struct (a int, B text) [ ]", "STRUCT(a INTEGER, B VARCHAR)[]"),
        ("ROW(x double precision, y decimal(5,2)[])", "STRUCT(x DOUBLE, y DECIMAL(5,2)[])"),
        (
            'STRUCT("a, b" INT, "key" INT, "c ""d""" MAP(INT, STRUCT(e DATE)))',
            'STRUCT("a, b" INTEGER, "key" INTEGER, "c ""d""" MAP(INTEGER, STRUCT(e DATE)))',
        ),
        ("map ( varchar , timestamptz[] )", "MAP(VARCHAR, TIMESTAMP WITH TIME ZONE[])"),
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
        "INTEGER[0]",
        "INTEGER[100001]",
        "ARRAY",
        "STRUCT",
        "STRUCT()",
        "STRUCT(a)",
        "STRUCT(a INTEGER, A DATE)",
        "STRUCT(a NOPE)",
        "STRUCT(a INTEGER) b(c)",
        "MAP(INTEGER)",
        "MAP(INTEGER, DATE, DATE)",
        "MAP(INTEGER, DATE[0])",
        "INTEGER" + 25 * "[]",
        "BIGINT;",
        "(5)",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(NotSupportedError, match="type "):
        parse_type(text)


def test_a_refused_part_is_named() -> None:
    with pytest.raises(NotSupportedError, match=r"type 'STRUCT\(a NOPE\)' is not supported, because of 'NOPE'; use"):
        parse_type("STRUCT(a NOPE)")


NESTED_TEXTS = [
    "STRUCT(a INTEGER)",
    "MAP(VARCHAR, STRUCT(b BLOB)[])",
    'STRUCT("select" MAP(UUID, HUGEINT), "a ""b""" STRUCT(t TIME)[][])',
    "INTEGER" + 24 * "[]",
    "STRUCT(v FLOAT[384], w MAP(VARCHAR, INTEGER[2][3]))[1]",
]


@pytest.mark.parametrize("text", NESTED_TEXTS)
def test_nested_types_round_trip(text: str) -> None:
    type_ = parse_type(text)
    assert str(type_) == text
    assert str(type_of_arrow(type_.arrow)) == text.replace("HUGEINT", "DECIMAL(38,0)")
    assert not type_.can_partition


@pytest.mark.parametrize("text", NESTED_TEXTS)
def test_the_text_of_a_type_is_duckdbs(text: str) -> None:
    with duckdb.connect() as oracle:
        assert oracle.sql(f"SELECT typeof(CAST(NULL AS {text}))").fetchall() == [(str(parse_type(text)),)]


def test_the_keywords_are_duckdbs() -> None:
    with duckdb.connect() as oracle:
        assert {word for (word,) in oracle.sql("SELECT keyword_name FROM duckdb_keywords()").fetchall()} == KEYWORDS


@pytest.mark.parametrize("kind", SCALARS)
def test_text_and_arrow_round_trips(kind: TypeKind) -> None:
    type_ = parse_type(kind.value)
    assert parse_type(str(type_)) == type_
    expected = {
        TypeKind.HUGEINT: SqlType(TypeKind.DECIMAL, 38, 0),
        TypeKind.JSON: SqlType(TypeKind.VARCHAR),
        **dict.fromkeys(UNIT_TIMESTAMPS, SqlType(TypeKind.TIMESTAMP)),
    }
    assert type_of_arrow(type_.arrow) == expected.get(kind, type_)
    assert parse_type(f"{type_}[]").arrow == pa.list_(type_.arrow)


@pytest.mark.parametrize(
    ("arrow", "expected"),
    [
        (pa.large_string(), "VARCHAR"),
        (pa.string_view(), "VARCHAR"),
        (pa.dictionary(pa.int8(), pa.string()), "VARCHAR"),
        (pa.json_(), "JSON"),
        (pa.large_binary(), "BLOB"),
        (pa.binary(5), "BLOB"),
        (pa.date64(), "DATE"),
        (pa.timestamp("ns"), "TIMESTAMP"),
        (pa.timestamp("s", "America/New_York"), "TIMESTAMP WITH TIME ZONE"),
        (pa.decimal256(30, 3), "DECIMAL(30,3)"),
        (pa.large_list(pa.int8()), "TINYINT[]"),
        (pa.list_(pa.float32(), 0), "FLOAT[]"),
        (pa.list_(pa.float32(), 128), "FLOAT[128]"),
        (pa.struct([pa.field("a", pa.date64(), nullable=False)]), "STRUCT(a DATE)"),
        (pa.map_(pa.large_string(), pa.string_view()), "MAP(VARCHAR, VARCHAR)"),
    ],
    ids=str,
)
def test_arrow_types_that_are_not_ours(arrow: pa.DataType, expected: str) -> None:
    assert str(type_of_arrow(arrow)) == expected


@pytest.mark.parametrize(
    "arrow",
    [
        pa.struct([]),
        pa.struct([("a", pa.int8()), ("A", pa.int8())]),
        pa.map_(pa.int8(), pa.float16()),
        pa.float16(),
        pa.decimal256(50, 0),
        pa.duration("s"),
        pa.null(),
    ],
    ids=str,
)
def test_arrow_types_without_a_column_type(arrow: pa.DataType) -> None:
    with pytest.raises(NotSupportedError, match="has no column type"):
        type_of_arrow(arrow)


def test_what_may_partition() -> None:
    refused = {str(parse_type(kind.value)) for kind in SCALARS if not parse_type(kind.value).can_partition}
    assert refused == {
        *("FLOAT", "DOUBLE", "HUGEINT", "TIME", "INTERVAL", "JSON"),
        *("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    }
    assert not parse_type("INTEGER[]").can_partition


def test_the_values_of_an_enum() -> None:
    type_ = parse_type("enum ( 'b','a, )' , 'it''s', '' )")
    assert type_ == SqlType(TypeKind.ENUM, values=("b", "a, )", "it's", ""))
    assert str(type_) == "ENUM('b', 'a, )', 'it''s', '')"
    assert parse_type(f"STRUCT(x {type_}, y MAP(VARCHAR, {type_})[])").parts[0] == type_
    assert type_.arrow == pa.string()
    assert not type_.can_partition
    assert len(SqlType(TypeKind.ENUM, values=tuple(map(str, range(1000)))).shown) < 250


@pytest.mark.parametrize("text", ["ENUM", "ENUM()", "ENUM('a', 'a')", "ENUM('a' 'b')", "ENUM('a',)x", "ENUM(a)"])
def test_what_is_no_enum(text: str) -> None:
    with pytest.raises(NotSupportedError):
        parse_type(text)


def test_integer_ranges() -> None:
    assert parse_type("UTINYINT").integer_range == (0, 255)
    assert parse_type("BIGINT").integer_range == (-(2**63), 2**63 - 1)
    assert parse_type("BIGINT").is_integer
    assert not parse_type("DECIMAL(5,0)").is_integer
    assert parse_type("REAL").is_float
