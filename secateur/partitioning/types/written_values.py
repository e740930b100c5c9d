"""Values of literals, where their meaning is certain without DuckDB."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import numpy as np

from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import DOUBLE_INTEGER_MAX

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME: Final = re.compile(r"\d{2}:\d{2}:\d{2}(\.\d{1,6})?")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?)?")
_TIMESTAMPTZ: Final = re.compile(_TIMESTAMP.pattern + r"(Z|[+-]\d{2}:\d{2}|[+-]00)?")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SCALE_IN_DOUBLE_MAX: Final = 22
"""DuckDB divides the digits of a decimal literal by a power of ten. Up to DOUBLE_INTEGER_MAX and this power both are
exact doubles, and the quotient is the literal's nearest double.
"""


def double_of(value: int | Decimal, type_: SqlType) -> float | None:
    """Return a number without an exponent as one of a float type, or None if DuckDB may read it as another one."""
    _, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    if int("".join(map(str, digits))) > DOUBLE_INTEGER_MAX or -exponent > _SCALE_IN_DOUBLE_MAX:
        return None
    found = float(value)
    # A decimal literal is compared with a FLOAT as a FLOAT, a parameter as a DOUBLE: only a number exact in both is the
    # same either way.
    return None if type_.kind is TypeKind.FLOAT and float(np.float32(found)) != found else found


def value_of_text(text: str, type_: SqlType) -> Any:
    """Return the value of a text that is compared with a type, or None if only DuckDB knows how it is read.

    Raises:
        ValueError: It has the form of a value, and is none.
    """
    match type_.kind:
        case TypeKind.VARCHAR:
            return text
        case TypeKind.DATE if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        case TypeKind.TIME if _TIME.fullmatch(text):
            return time.fromisoformat(text)
        case TypeKind.TIMESTAMP if _TIMESTAMP.fullmatch(text):
            return datetime.fromisoformat(text)
        case TypeKind.TIMESTAMPTZ if _TIMESTAMPTZ.fullmatch(text):
            moment = datetime.fromisoformat(text)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        case TypeKind.UUID if _UUID.fullmatch(text):
            return UUID(text)
        case _:
            return None
