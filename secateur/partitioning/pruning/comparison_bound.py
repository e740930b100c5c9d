"""Compared values, converted to the type of the column that they are compared with.

DuckDB casts one side when a column is compared with a value of another type, and the side that it casts decides what
matches. ``int_column = '1'`` casts the string. ``text_column = 1`` casts the *column*, so ``'01'`` matches as well. A
DOUBLE on one side makes neighbouring integers above 2**53 compare equal. This module converts a value to a bound in the
column's type where the comparison is certainly exact, and to nothing everywhere else.

Values arrive as the Python objects that a parameter or a folded constant has, so one table serves planning (constants)
and binding (parameters) in any client.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np

from secateur.partitioning.types.coerce import CERTAIN_TEXTS
from secateur.partitioning.types.column_type import WORD_INTEGERS, SqlType, TypeKind
from secateur.partitioning.types.decimals import DOUBLE_INTEGER_MAX, below_power_of_ten, floored


@dataclass(frozen=True, slots=True)
class ComparisonBound:
    """A compared value in the column's type.

    It is the largest column value that is not above the compared value, and whether the two are equal.
    """

    value: Any
    exact: bool = True


# DuckDB brings all operands of one comparison, IN list or BETWEEN to one type, so the values are judged together.
_Floors = list[ComparisonBound] | None

_HUGEINT_MAX: Final = 2**127 - 1
_DECIMAL_DIGITS_MAX: Final = 38
INTEGER_TEXT: Final = re.compile(r"[+-]?[0-9]{1,18}")
_INTEGER_DIGITS: Final = {kind: len(str(SqlType(kind).integer_range[1])) for kind in WORD_INTEGERS}


def comparison_bounds_of(compared: Sequence[Any], column_type: SqlType) -> list[ComparisonBound] | None:
    """Return the bounds of all values of one comparison, or None when it is not certainly exact in the column's type.

    Args:
        compared: Any Python objects but None.
        column_type: The type of the column.

    Raises:
        Nothing: any Python object is a valid value here; what is not understood answers None.
    """
    values = [_plain(value) for value in compared]
    kind = column_type.kind
    kinds = {type(value) for value in values}
    try:
        if column_type.is_integer:
            return _integer_floors(values, kinds, column_type) if kind is not TypeKind.HUGEINT else None
        if kind is TypeKind.DECIMAL:
            return _decimal_floors(values, kinds, column_type)
        rule = _RULES.get(kind)
        if rule is None or not kinds <= rule.classes:
            return None
        if kind is TypeKind.BOOLEAN and str in kinds and len(kinds) > 1:
            return None
        return list(map(rule.floor, values))
    except (ValueError, OverflowError, ArithmeticError):
        # A text that is no date, an instant outside Python's calendar: DuckDB decides what they mean.
        return None


def representable(value: Any, column_type: SqlType) -> bool:
    """Whether the column's type can hold a bound's value exactly."""
    if column_type.is_integer:
        smallest, largest = column_type.integer_range
        return bool(smallest <= value <= largest)
    if column_type.kind is TypeKind.DECIMAL:
        return below_power_of_ten(value, column_type.precision - column_type.scale)
    return True


def _plain(value: Any) -> Any:
    """Convert numpy scalars to the Python values that they travel as.

    datetime64 stays, because its ``item()`` may be a bare integer.
    """
    return value.item() if isinstance(value, (np.integer, np.floating, np.bool_, np.str_)) else value


def _integer_floors(values: list[Any], kinds: set[type[Any]], column_type: SqlType) -> _Floors:
    if not kinds <= {int, float, Decimal, str} and not kinds <= {int, bool}:
        return None
    smallest, largest = column_type.integer_range
    numbers: list[Any] = []
    for value in values:
        if isinstance(value, str):
            if not INTEGER_TEXT.fullmatch(value) or not smallest <= int(value) <= largest:
                return None
            numbers.append(int(value))
        else:
            numbers.append(value)
    integers = [number for number in numbers if isinstance(number, int)]
    if not all(-_HUGEINT_MAX <= number <= _HUGEINT_MAX for number in integers):
        return None
    if float in kinds:
        # The column is cast to DOUBLE: below 2**53 that is exact and keeps order, above it two integers may compare
        # equal.
        if Decimal in kinds or not all(abs(number) < DOUBLE_INTEGER_MAX for number in numbers):
            return None
    elif Decimal in kinds and not _decimals_fit(numbers, _INTEGER_DIGITS[column_type.kind], 0):
        return None
    return [ComparisonBound(math.floor(number), number == math.floor(number)) for number in numbers]


def _decimal_floors(values: list[Any], kinds: set[type], column_type: SqlType) -> _Floors:
    digits, scale = column_type.precision - column_type.scale, column_type.scale
    if kinds == {str}:
        if not all(
            CERTAIN_TEXTS[TypeKind.DECIMAL].fullmatch(value)
            and len(value.partition(".")[2]) <= scale
            and below_power_of_ten(Decimal(value), digits)
            for value in values
        ):
            return None
        return [ComparisonBound(floored(Decimal(value), scale)) for value in values]
    if not kinds <= {int, Decimal} or not _decimals_fit(values, digits, scale):
        return None
    floors = [floored(value, scale) for value in values]
    return [ComparisonBound(floor, floor == value) for floor, value in zip(floors, values, strict=True)]


def _decimals_fit(values: Sequence[Any], digits: int, scale: int) -> bool:
    """Whether one DECIMAL type holds the column and all values; past 38 digits the dialect rounds or fails."""
    for value in values:
        if isinstance(value, Decimal):
            if not value.is_finite():
                return False
            _, places, exponent = value.as_tuple()
            scale = max(scale, -int(exponent))
            digits = max(digits, len(places) + int(exponent))
        else:
            digits = max(digits, 10 if -(2**31) <= value < 2**31 else 19 if -(2**63) <= value < 2**63 else 39)
    return digits + scale <= _DECIMAL_DIGITS_MAX


def _text_floor(value: str) -> ComparisonBound:
    value.encode()  # a lone surrogate has no UTF-8 form: UnicodeEncodeError is a ValueError
    return ComparisonBound(value)


def _boolean_floor(value: Any) -> ComparisonBound:
    if value not in (0, 1, "false", "true"):
        raise ValueError
    return ComparisonBound(value in (1, "true"))


def _date_floor(value: Any) -> ComparisonBound:
    if isinstance(value, datetime):
        instant = _utc(value)
        return ComparisonBound(instant.date(), instant.time() == time.min)
    return ComparisonBound(date.fromisoformat(_certain(value, TypeKind.DATE)) if isinstance(value, str) else value)


def _timestamp_floor(value: Any) -> ComparisonBound:
    if isinstance(value, datetime):
        return ComparisonBound(_utc(value))
    if isinstance(value, str):
        return ComparisonBound(datetime.fromisoformat(_certain(value, TypeKind.TIMESTAMP)))
    return ComparisonBound(datetime.combine(value, time.min))


def _timestamptz_floor(value: Any) -> ComparisonBound:
    return ComparisonBound(_timestamp_floor(value).value.replace(tzinfo=UTC))


def _uuid_floor(value: Any) -> ComparisonBound:
    return ComparisonBound(value if isinstance(value, UUID) else UUID(_certain(value, TypeKind.UUID)))


def _certain(text: str, kind: TypeKind) -> str:
    if not CERTAIN_TEXTS[kind].fullmatch(text):
        raise ValueError
    return text


def _utc(value: datetime) -> datetime:
    """Return an instant as naive UTC; kernels run in the session time zone UTC, so a naive one is already UTC."""
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


class _Rule(NamedTuple):
    """How values of one comparison with a column become bounds.

    Attributes:
        floor: The bound of a value; a ValueError where it is not certain.
        classes: The classes that the values may have; BOOLEANs are not compared with texts and others together.
    """

    floor: Callable[[Any], ComparisonBound]
    classes: frozenset[type]


_MOMENTS: Final = frozenset({date, datetime, str})
_RULES: Final[dict[TypeKind, _Rule]] = {
    TypeKind.VARCHAR: _Rule(_text_floor, frozenset({str})),
    TypeKind.BLOB: _Rule(lambda value: ComparisonBound(bytes(value)), frozenset({bytes, bytearray})),
    TypeKind.BOOLEAN: _Rule(_boolean_floor, frozenset({bool, int, str})),
    TypeKind.DATE: _Rule(_date_floor, _MOMENTS),
    TypeKind.TIMESTAMP: _Rule(_timestamp_floor, _MOMENTS),
    TypeKind.TIMESTAMPTZ: _Rule(_timestamptz_floor, _MOMENTS),
    TypeKind.UUID: _Rule(_uuid_floor, frozenset({UUID, str})),
}
