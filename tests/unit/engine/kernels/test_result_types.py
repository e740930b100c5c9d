from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.engine.kernels.duckdb import arrow_type, delivered_type, is_restored, relation_casts
from secateur.partitioning.types import SqlType, parse_type

DELIVERED = [
    ("INTEGER", "INTEGER", pa.int32()),
    ("HUGEINT", "HUGEINT", pa.decimal128(38, 0)),
    ("DECIMAL(10,2)", "DECIMAL(10,2)", pa.decimal128(10, 2)),
    ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE", pa.timestamp("us", "UTC")),
    ("UUID", "UUID", pa.uuid()),
    ("FLOAT[]", "FLOAT[]", pa.list_(pa.float32())),
    ("FLOAT[3]", "FLOAT[3]", pa.list_(pa.float32(), 3)),
    ("TIMESTAMP_NS", "TIMESTAMP_NS", pa.timestamp("ns")),
    ("TIMESTAMP_S", "TIMESTAMP_S", pa.timestamp("s")),
    ('"NULL"', "INTEGER", pa.int32()),
    ("UHUGEINT", "HUGEINT", pa.decimal128(38, 0)),
    ("BIT", "VARCHAR", pa.string()),
    ("ENUM('a, b', 'it''s')", "ENUM('a, b', 'it''s')", pa.string()),
    ("ENUM('x')[]", "ENUM('x')[]", pa.list_(pa.string())),
    ("TIME WITH TIME ZONE", "VARCHAR", pa.string()),
    ("UNION(x INTEGER)", "VARCHAR", pa.string()),
    ("STRUCT(a INTEGER, b UUID)", "STRUCT(a INTEGER, b UUID)", pa.struct([("a", pa.int32()), ("b", pa.uuid())])),
    (
        'STRUCT("a ""b"", c" ENUM(\'x\'), d BIT[])',
        'STRUCT("a ""b"", c" ENUM(\'x\'), d VARCHAR[])',
        pa.struct([('a "b", c', pa.string()), ("d", pa.list_(pa.string()))]),
    ),
    (
        "TUPLE(INTEGER, ENUM('x'))",
        "TUPLE(INTEGER, ENUM('x'))",
        pa.struct([("element1", pa.int32()), ("element2", pa.string())]),
    ),
    ("MAP(VARCHAR, DECIMAL(4,1))", "MAP(VARCHAR, DECIMAL(4,1))", pa.map_(pa.string(), pa.decimal128(4, 1))),
    (
        "MAP(ENUM('x'), STRUCT(i UHUGEINT))[]",
        "MAP(ENUM('x'), STRUCT(i HUGEINT))[]",
        pa.list_(pa.map_(pa.string(), pa.struct([("i", pa.decimal128(38, 0))]))),
    ),
]


@pytest.mark.parametrize(("text", "delivered", "arrow"), DELIVERED, ids=[case[0] for case in DELIVERED])
def test_a_type_is_delivered_and_has_an_arrow_form(text: str, delivered: str, arrow: pa.DataType) -> None:
    assert delivered_type(text) == delivered
    assert delivered_type(delivered) == delivered
    assert arrow_type(text) == arrow


def test_casts_are_asked_for_where_arrow_tells_too_little() -> None:
    schema: dict[str, SqlType | str] = {
        "h": parse_type("HUGEINT"),
        "hs": parse_type("HUGEINT[]"),
        "d": parse_type("DECIMAL(38,0)"),
        "u": parse_type("UUID"),
        "s": "STRUCT(a INTEGER)",
        "sh": "STRUCT(a HUGEINT)",
        "e": "ENUM('b', 'a')",
    }
    assert relation_casts(schema) == (
        ("h", "HUGEINT"),
        ("hs", "HUGEINT[]"),
        ("sh", "STRUCT(a HUGEINT)"),
        ("e", "ENUM('b', 'a')"),
    )


RESTORED = (
    "BIGINT[]",
    "TIME_NS",
    "JSON",
    "BIT",
    "BIGNUM",
    "TIME WITH TIME ZONE",
    "ENUM('UNION(', 'b')[]",
    'STRUCT(a JSON, "VARIANT" DATE)',
    "MAP(BIT, HUGEINT)[2]",
    '"NULL"',
)
LOST = (
    "VARIANT",
    "UNION(a DATE)",
    "VARIANT[]",
    "UNION(a DATE)[3]",
    "STRUCT(a INTEGER, b VARIANT)",
    "TUPLE(INTEGER, VARIANT)",
    "MAP(VARCHAR, VARIANT[])",
    "SOME_TYPE_TO_COME",
)


@pytest.mark.parametrize(
    ("text", "expected"), [*((text, True) for text in RESTORED), *((text, False) for text in LOST)]
)
def test_what_a_text_tells_all_of_can_be_cast_back(text: str, expected: bool) -> None:
    assert is_restored(text) is expected
