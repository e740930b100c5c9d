"""Keys as bytes and in their order."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from secateur.errors import InternalError
from secateur.partitioning.types import (
    ByteKeys,
    WordKeys,
    encode_array,
    minimum,
    next_value,
    parse_type,
    scalar_encoder,
    successor,
)

CASES = [
    ("TINYINT", -1, "ffffffffffffffff"),
    ("TINYINT", -128, "80ffffffffffffff"),
    ("UTINYINT", 255, "ff00000000000000"),
    ("USMALLINT", 65535, "ffff000000000000"),
    ("UINTEGER", 2**32 - 1, "ffffffff00000000"),
    ("INTEGER", 1, "0100000000000000"),
    ("BIGINT", -(2**63), "0000000000000080"),
    ("UBIGINT", 2**64 - 1, "ffffffffffffffff"),
    ("UBIGINT", 2**63, "0000000000000080"),
    ("BOOLEAN", True, "01000000"),
    ("BOOLEAN", False, "00000000"),
    ("DATE", date(1970, 1, 2), "01000000"),
    ("DATE", date(1969, 12, 31), "ffffffff"),
    ("TIMESTAMP", datetime(1970, 1, 1, 0, 0, 1), "40420f0000000000"),
    ("TIMESTAMP", datetime(1969, 12, 31, 23, 59, 59, 999_999), "ffffffffffffffff"),
    ("TIMESTAMP WITH TIME ZONE", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "40420f0000000000"),
    ("VARCHAR", "aé", "61c3a9"),
    ("VARCHAR", "", ""),
    ("BLOB", b"\x00\xff", "00ff"),
    ("UUID", UUID("7ACA8BBB-0B5D-4EE7-AAB5-E32EE907368B"), b"7aca8bbb-0b5d-4ee7-aab5-e32ee907368b".hex()),
    ("DECIMAL(18,2)", Decimal("-0.01"), "ffffffffffffffff"),
    ("DECIMAL(18,2)", Decimal("1.50"), "9600000000000000"),
    ("DECIMAL(19,0)", Decimal(0), "00"),
    ("DECIMAL(19,0)", Decimal(-1), "ff"),
    ("DECIMAL(19,0)", Decimal(127), "7f"),
    ("DECIMAL(19,0)", Decimal(128), "0080"),
    ("DECIMAL(19,0)", Decimal(-128), "80"),
    ("DECIMAL(19,0)", Decimal(-129), "ff7f"),
    ("DECIMAL(19,0)", Decimal(256), "0100"),
    ("DECIMAL(38,0)", Decimal(10**38 - 1), "4b3b4ca85a86c47a098a223fffffffff"),
    ("DECIMAL(38,0)", Decimal(1 - 10**38), "b4c4b357a5793b85f675ddc000000001"),
]


@pytest.mark.parametrize(("text", "value", "expected"), CASES, ids=[f"{text} {value!r}" for text, value, _ in CASES])
def test_scalar_and_array_encode_alike(text: str, value: Any, expected: str) -> None:
    type_ = parse_type(text)
    assert scalar_encoder(type_)(value).hex() == expected
    match encode_array(pa.array([value], type_.arrow), type_):
        case WordKeys(words, valid):
            found = words.tobytes()
        case ByteKeys(data, starts, lengths, valid):
            found = data[starts[0] : starts[0] + lengths[0]].tobytes()
    assert (found.hex(), valid) == (expected, None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("BIGINT", "1"),
        ("BIGINT", 1.0),
        ("BIGINT", 2**63),
        ("UBIGINT", -1),
        ("VARCHAR", 1),
        ("VARCHAR", b"a"),
        ("BLOB", "a"),
        ("BOOLEAN", "true"),
        ("BOOLEAN", 2),
        ("DATE", datetime(2024, 1, 1)),
        ("DATE", "2024-01-01"),
        ("TIMESTAMP", datetime(2024, 1, 1, tzinfo=UTC)),
        ("TIMESTAMP WITH TIME ZONE", datetime(2024, 1, 1)),
        ("DECIMAL(10,2)", Decimal("1.555")),
        ("DECIMAL(10,2)", "1.50"),
        ("UUID", "7aca8bbb-0b5d-4ee7-aab5-e32ee907368b"),
    ],
    ids=repr,
)
def test_what_is_not_canonical_is_refused_rather_than_hashed_as_something_else(text: str, value: Any) -> None:
    encode = scalar_encoder(parse_type(text))
    # Whichever is cheapest to raise; the router turns all of them into a DataError.
    with pytest.raises(Exception):  # noqa: B017, PT011
        encode(value)


@pytest.mark.parametrize("text", ["DOUBLE", "FLOAT", "HUGEINT", "TIME", "INTERVAL", "INTEGER[]"])
def test_types_that_cannot_partition(text: str) -> None:
    type_ = parse_type(text)
    with pytest.raises(InternalError, match="should have been refused"):
        scalar_encoder(type_)
    with pytest.raises(InternalError, match="should have been refused"):
        encode_array(pa.nulls(1, type_.arrow), type_)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("TINYINT", 126, 127),
        ("TINYINT", 127, None),
        ("UBIGINT", 2**64 - 1, None),
        ("BIGINT", -1, 0),
        ("VARCHAR", "a", "a\0"),
        ("BLOB", b"\xff", b"\xff\x00"),
        ("BOOLEAN", False, True),
        ("BOOLEAN", True, None),
        ("DATE", date(2023, 12, 31), date(2024, 1, 1)),
        ("DATE", date.max, None),
        ("TIMESTAMP", datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1)),
        ("TIMESTAMP", datetime.max, None),
        ("TIMESTAMP WITH TIME ZONE", datetime.max.replace(tzinfo=UTC), None),
        ("DECIMAL(5,2)", Decimal("-0.01"), Decimal("0.00")),
        ("DECIMAL(5,2)", Decimal("999.99"), None),
        ("DECIMAL(38,0)", Decimal(10**38 - 2), Decimal(10**38 - 1)),
        ("UUID", UUID(int=0), UUID(int=1)),
        ("UUID", UUID(int=2**128 - 1), None),
    ],
    ids=repr,
)
def test_next_value(text: str, value: Any, expected: Any) -> None:
    assert next_value(value, parse_type(text)) == expected


@pytest.mark.parametrize(
    ("texts", "key", "expected"),
    [
        (["INTEGER", "INTEGER"], (1, 5), (1, 6)),
        (["INTEGER", "TINYINT"], (1, 127), (2, -128)),
        (["INTEGER", "BOOLEAN", "BOOLEAN"], (1, True, True), (2, False, False)),
        (["TINYINT", "BOOLEAN"], (127, True), None),
        (["VARCHAR", "BOOLEAN"], ("a", True), ("a\0", False)),
        ([], (), None),
    ],
)
def test_successor(texts: list[str], key: tuple[Any, ...], expected: tuple[Any, ...] | None) -> None:
    assert successor(key, [parse_type(text) for text in texts]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SMALLINT", -(2**15)),
        ("UINTEGER", 0),
        ("VARCHAR", ""),
        ("BLOB", b""),
        ("BOOLEAN", False),
        ("DATE", date.min),
        ("TIMESTAMP", datetime.min),
        ("TIMESTAMP WITH TIME ZONE", datetime.min.replace(tzinfo=UTC)),
        ("DECIMAL(5,2)", Decimal("-999.99")),
        ("UUID", UUID(int=0)),
    ],
)
def test_minimum(text: str, expected: Any) -> None:
    assert minimum(parse_type(text)) == expected


def test_types_without_an_order_of_keys() -> None:
    for call in (lambda: minimum(parse_type("DOUBLE")), lambda: next_value(1.0, parse_type("DOUBLE"))):
        with pytest.raises(InternalError, match="values of type DOUBLE"):
            call()
