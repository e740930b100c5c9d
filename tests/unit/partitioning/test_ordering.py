from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from secateur.errors import InternalError
from secateur.partitioning.types import minimum, next_value, parse_type, successor


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
