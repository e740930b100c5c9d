"""The least, the greatest and the special values of each type that a key may have, and the ways to write them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final, TypeVar

__all__ = [
    "BEYOND_DAYS",
    "BEYOND_INSTANTS",
    "BEYOND_SPELLED",
    "BEYOND_TEXTS",
    "EXTREMES",
    "SHARE",
    "TEMPORAL",
    "is_number",
    "literal",
    "now_and_then",
    "spellings",
]

Value = TypeVar("Value")

SHARE: Final = 0.07
"""How many of the values that generators draw are extreme ones."""

BEYOND_DAYS: Final[tuple[Any, ...]] = (date.min, date.max, 2**31 - 1, -(2**31) + 1, 2_932_897, -735_160)
"""Days that stay in the calendar if an hour or a day is added, in a form that Arrow takes.

The numbers are infinity, -infinity, 10000-01-01 and 0044-03-15 (BC), for which Python has no object.
"""
BEYOND_INSTANTS: Final[tuple[Any, ...]] = (
    *(datetime.min, datetime.max, 2**63 - 1, -(2**63) + 1, 2_932_897 * 86_400_000_000, -735_160 * 86_400_000_000),
)
"""The same as instants."""
BEYOND_SPELLED: Final = ("infinity", "-infinity", "10000-01-01", "0044-03-15 (BC)", "9999-12-31", "0001-01-01")
"""The same days as texts."""
BEYOND_TEXTS: Final = ("a\0b", "\0", "\U0010ffff", "\uffff", "e\u0301")
TEMPORAL: Final = ("DATE", "TIMESTAMP", "TIMESTAMPTZ")
_DAYS: Final = ("-infinity", "infinity", "0001-01-01", "9999-12-31", "0001-12-31 (BC)", "10000-01-01", "1970-01-01")
_UUID_ENDS: Final = ("0000-0000-0000-000000000000", "ffff-ffff-ffff-ffffffffffff")
_INSTANTS: Final = (
    *("-infinity", "infinity", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00"),
    *("290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806", "0001-12-31 (BC) 23:59:59.999999", "1970-01-01"),
)
EXTREMES: Final[dict[str, tuple[str, ...]]] = {
    "BOOLEAN": ("false", "true"),
    "TINYINT": ("-128", "127", "0"),
    "SMALLINT": ("-32768", "32767", "0"),
    "INTEGER": ("-2147483648", "2147483647", "0"),
    "BIGINT": ("-9223372036854775808", "9223372036854775807", "0", "9007199254740993"),
    "UTINYINT": ("0", "255"),
    "USMALLINT": ("0", "65535"),
    "UINTEGER": ("0", "4294967295"),
    "UBIGINT": ("0", "18446744073709551615", "9223372036854775808"),
    "DECIMAL(4, 1)": ("-999.9", "999.9", "0.0"),
    "DECIMAL(9, 2)": ("-9999999.99", "9999999.99", "0.01"),
    "DECIMAL(18, 3)": ("-999999999999999.999", "999999999999999.999", "-0.001"),
    "DECIMAL(38, 0)": (f"-{'9' * 38}", "9" * 38, "0"),
    "DECIMAL(38, 38)": (f"-0.{'9' * 38}", f"0.{'9' * 38}", f"0.{'0' * 37}1"),
    "VARCHAR": ("", "a", "a\0b", "\0", "\U0010ffff", "\uffff", "e\u0301", "\u00e9", "infinity", "10000-1-1", "NaN"),
    "BLOB": ("", r"\x00", r"\x00\x00", r"\xFF\xFF", "a"),
    "UUID": (
        *(f"{start}0000000-{_UUID_ENDS[0]}" for start in "08"),
        *(f"{start}fffffff-{_UUID_ENDS[1]}" for start in "7f"),
    ),
    "DATE": (*_DAYS, "5881580-07-10", "5877642-06-25 (BC)"),
    "TIMESTAMP": _INSTANTS,
    "TIMESTAMPTZ": _INSTANTS,
}
"""For each type texts that a cast to it reads, none of them twice the same value."""


def is_number(type_: str) -> bool:
    """Whether values of a type are written without quotation marks."""
    return "INT" in type_ or type_.startswith("DECIMAL")


def literal(text: str) -> str:
    """A text in SQL; NUL has no place in a literal."""
    parts = ["'{}'".format(part.replace("'", "''")) for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"


def spellings(type_: str, text: str) -> list[str]:
    """The ways to write a value, and expressions that have it, or one beside it."""
    written = literal(text)
    cast = f"{written}::{type_}"
    found = [cast, f"CAST({written} AS {type_})", f"TRY_CAST({written} AS {type_})", written]
    found += [
        f"coalesce(NULL, {cast})",
        f"nullif({cast}, NULL)",
        f"CASE WHEN 1 = 1 THEN {cast} END",
        f"greatest({cast}, {cast})",
    ]
    if is_number(type_) or type_ == "BOOLEAN":
        found.append(text)
    elif "\0" not in text:
        found.append(f"{type_} {written}")
    if is_number(type_):
        found += [
            f"-({cast})",
            f"{cast} + 1",
            f"{cast} - 1",
            f"{cast} * 1",
            f"{written}::DOUBLE",
            f"{written}::HUGEINT",
            f"abs({cast})",
        ]
    if type_ in TEMPORAL:
        found += [f"{written}::{other}" for other in TEMPORAL if other != type_]
        found += [f"({cast} + INTERVAL 0 DAY)", f"({cast} - INTERVAL 1 MICROSECOND)", f"date_trunc('day', {cast})"]
        found += [f"date_trunc('year', {cast})", f"least({cast}, '1970-01-01'::{type_})"]
    if type_ == "DATE":
        found += [f"({cast} + 0)", f"({cast} - 1)"]
    if type_ == "VARCHAR":
        found += [
            f"upper({written})",
            f"{written} || ''",
            f"left({written}, 1)",
            "DATE '10000-01-01'",
            "TIMESTAMP '10000-01-01'",
        ]
    return found


def now_and_then(rng: random.Random, usual: Sequence[Value], extreme: Sequence[Value]) -> Value:
    """Usual values, and extreme ones now and then."""
    return rng.choice(extreme if rng.random() < SHARE else usual)
