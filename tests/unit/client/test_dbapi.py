from __future__ import annotations

import time
from datetime import date, datetime
from datetime import time as time_of_day

import pytest

from secateur.client.dbapi import pep249 as dbapi


def test_globals() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("VARCHAR", dbapi.STRING),
        ("UUID", dbapi.STRING),
        ("BLOB", dbapi.BINARY),
        ("BOOLEAN", dbapi.NUMBER),
        ("HUGEINT", dbapi.NUMBER),
        ("DECIMAL(10,2)", dbapi.NUMBER),
        ("DOUBLE", dbapi.NUMBER),
        ("DATE", dbapi.DATETIME),
        ("TIMESTAMP WITH TIME ZONE", dbapi.DATETIME),
        ("INTERVAL", dbapi.DATETIME),
        ("UHUGEINT", dbapi.NUMBER),
        ("TIMESTAMP_NS", dbapi.DATETIME),
        ("ENUM('a', 'b')", dbapi.STRING),
        ("TIME WITH TIME ZONE", dbapi.STRING),
        ("INTEGER[]", None),
        ("DECIMAL(10,2)[]", None),
        ("DECIMAL(10,2)[3]", None),
        ("STRUCT(a INTEGER)", None),
    ],
)
def test_a_type_code_equals_one_type_object(code: str, kind: object) -> None:
    kinds = [dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID]
    assert [each for each in kinds if each == code] == ([] if kind is None else [kind])
    assert [each for each in kinds if code != each] == [each for each in kinds if each is not kind]


def test_type_objects_are_themselves() -> None:
    assert dbapi.STRING == dbapi.STRING
    assert dbapi.STRING != dbapi.NUMBER
    assert len({dbapi.STRING, dbapi.NUMBER}) == 2
    assert repr(dbapi.NUMBER) == "NUMBER"


def test_constructors() -> None:
    assert dbapi.Date(2024, 2, 29) == date(2024, 2, 29)
    assert dbapi.Time(1, 2, 3) == time_of_day(1, 2, 3)
    assert dbapi.Timestamp(2024, 2, 29, 1, 2, 3) == datetime(2024, 2, 29, 1, 2, 3)
    assert dbapi.Binary(b"x") == b"x"
    ticks = time.mktime((2024, 2, 29, 1, 2, 3, 0, 0, -1))
    assert dbapi.DateFromTicks(ticks) == date(2024, 2, 29)
    assert dbapi.TimeFromTicks(ticks) == time_of_day(1, 2, 3)
    assert dbapi.TimestampFromTicks(ticks) == datetime(2024, 2, 29, 1, 2, 3)
