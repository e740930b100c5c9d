from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secateur.engine.kernels.arrow import InexactError, compute_type, exact_scalar
from secateur.partitioning.types import parse_type

EXACT: list[tuple[Any, str, Any]] = [
    (127, "TINYINT", 127),
    (-128, "TINYINT", -128),
    (2**64 - 1, "UBIGINT", 2**64 - 1),
    (10**37, "HUGEINT", Decimal(10**37)),
    (1.5, "DOUBLE", 1.5),
    (2**24, "DOUBLE", 16777216.0),
    (math.inf, "DOUBLE", math.inf),
    (5, "DECIMAL(3,2)", Decimal(5)),
    (Decimal("9.99"), "DECIMAL(3,2)", Decimal("9.99")),
    (Decimal("1.5000"), "DECIMAL(3,2)", Decimal("1.50")),
    (Decimal("1E+1"), "DECIMAL(4,2)", Decimal(10)),
    (Decimal("0E-30"), "DECIMAL(4,2)", Decimal(0)),
    (
        Decimal("12345678901234567890123456789012345678"),
        "DECIMAL(38,0)",
        Decimal("12345678901234567890123456789012345678"),
    ),
    ("é", "VARCHAR", "é"),
    (b"\x00", "BLOB", b"\x00"),
    (True, "BOOLEAN", True),
    (dt.date(2024, 2, 29), "DATE", dt.date(2024, 2, 29)),
    (dt.time(1, 2), "TIME", dt.time(1, 2)),
    (dt.datetime(2024, 1, 1, 5), "TIMESTAMP", dt.datetime(2024, 1, 1, 5)),
    (
        dt.datetime(2024, 1, 1, 5, tzinfo=dt.timezone(dt.timedelta(hours=5))),
        "TIMESTAMPTZ",
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    ),
    (uuid.UUID(int=1), "UUID", b"\x00" * 15 + b"\x01"),
]


@pytest.mark.parametrize(("value", "type_text", "expected"), EXACT, ids=[f"{case[0]!r} {case[1]}" for case in EXACT])
def test_a_value_of_the_type_is_that_value(value: Any, type_text: str, expected: Any) -> None:
    type_ = parse_type(type_text)
    scalar = exact_scalar(value, type_)
    assert scalar.type == compute_type(type_)
    assert scalar.as_py() == expected


INEXACT: list[tuple[Any, str]] = [
    (None, "INTEGER"),
    (128, "TINYINT"),
    (-1, "UTINYINT"),
    (True, "INTEGER"),
    (1.0, "INTEGER"),
    ("1", "INTEGER"),
    (Decimal(1), "INTEGER"),
    (np.int64(1), "INTEGER"),
    (10**38, "HUGEINT"),
    (math.nan, "DOUBLE"),
    (2**24 + 1, "DOUBLE"),
    (Decimal("1.5"), "DOUBLE"),
    (10, "DECIMAL(3,2)"),
    (Decimal("1.505"), "DECIMAL(3,2)"),
    (Decimal("NaN"), "DECIMAL(3,2)"),
    (1.5, "DECIMAL(3,2)"),
    (1, "VARCHAR"),
    ("\ud800", "VARCHAR"),
    ("a", "BLOB"),
    (1, "BOOLEAN"),
    (dt.datetime(2024, 1, 1), "DATE"),
    ("2024-01-01", "DATE"),
    (dt.date(2024, 1, 1), "TIMESTAMP"),
    (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "TIMESTAMP"),
    (dt.datetime(2024, 1, 1), "TIMESTAMPTZ"),
    (dt.time(1, tzinfo=dt.UTC), "TIME"),
    ("00000000-0000-0000-0000-000000000001", "UUID"),
    ([1], "INTEGER[]"),
    (dt.timedelta(1), "INTERVAL"),
]


@pytest.mark.parametrize(("value", "type_text"), INEXACT, ids=[f"{case[0]!r} {case[1]}" for case in INEXACT])
def test_any_other_value_is_left_to_duckdb(value: Any, type_text: str) -> None:
    with pytest.raises(InexactError):
        exact_scalar(value, parse_type(type_text))


def test_uuid_is_computed_on_its_bytes() -> None:
    assert compute_type(parse_type("UUID")) == pa.binary(16)
    assert compute_type(parse_type("DATE")) == pa.date32()
