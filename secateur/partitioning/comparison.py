"""What ``column <op> value`` says about the column, exactly as the dialect compares.

A comparison of a column with a value of another type makes DuckDB cast one of the two, and which one decides what matches: ``int_column = '1'`` casts the
string, ``text_column = 1`` casts the *column*, so that ``'01'`` matches as well; a DOUBLE on one side turns integers above 2**53 into neighbours that compare
equal. The functions here answer with the domain of the column only where the comparison is certainly exact, and with None, *no statement made*, everywhere
else. Pruning with None keeps everything; it is never wrong.

Values come as the Python objects that a parameter or a folded constant has, so one table serves planning (constants) and binding (parameters) on any client.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import ROUND_FLOOR, Context, Decimal
from enum import Enum
from typing import Any, Final

import numpy as np

from secateur.partitioning.domain import NOTHING, Domain, Span, points, within
from secateur.partitioning.types import SqlType, TypeKind

__all__ = ["Comparison", "compare"]


class Comparison(Enum):
    """The comparisons of one column with values. The value is the SQL operator."""

    IN = "IN"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    BETWEEN = "BETWEEN"


@dataclass(frozen=True, slots=True)
class _Floor:
    """A compared value seen from the column's type: the largest column value that is not above it, and whether it is that value."""

    value: Any
    exact: bool = True


# DuckDB brings all operands of one comparison, IN list or BETWEEN to one type, so the values are judged together.
_Floors = list[_Floor] | None

_DOUBLE_EXACT_MAX: Final = 2**53 - 1
_HUGEINT_MAX: Final = 2**127 - 1
_DECIMAL_DIGITS_MAX: Final = 38
_WIDE: Final = Context(prec=80, rounding=ROUND_FLOOR)
_INTEGER_TEXT: Final = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL_TEXT: Final = re.compile(r"[+-]?[0-9]{1,37}(?:\.[0-9]{1,37})?")
_DATE_TEXT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP_TEXT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T](?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)?")
_UUID_TEXT: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BOOLEAN_TEXT: Final = {"true": True, "false": False}
_INTEGER_DIGITS: Final = {
    TypeKind.TINYINT: 3,
    TypeKind.SMALLINT: 5,
    TypeKind.INTEGER: 10,
    TypeKind.BIGINT: 19,
    TypeKind.UTINYINT: 3,
    TypeKind.USMALLINT: 5,
    TypeKind.UINTEGER: 10,
    TypeKind.UBIGINT: 20,
}


def compare(comparison: Comparison, values: Sequence[Any], column_type: SqlType) -> Domain | None:
    """The non-NULL column values for which ``column <comparison> values`` is TRUE.

    Args:
        comparison: The operator; equality is IN with one value.
        values: The other operands as Python objects; None is SQL's NULL, with which no comparison is TRUE. BETWEEN has two, IN any number, the others one.
        column_type: The type of the column.

    Returns:
        The domain, or None when the comparison is not certainly exact in the column's type, such as a string column with a number.

    Raises:
        Nothing: any Python object is a valid value here; what is not understood answers None.
    """
    known = [_plain(value) for value in values if value is not None]
    floors = _floors(known, column_type) if known else []
    if floors is None:
        return None
    if comparison is Comparison.IN:
        return points(floor.value for floor in floors if floor.exact and _representable(floor.value, column_type))
    if len(known) < len(values):
        return NOTHING
    match comparison:
        case Comparison.LESS:
            span = _below(floors[0], closed=False)
        case Comparison.LESS_EQUAL:
            span = _below(floors[0], closed=True)
        case Comparison.GREATER:
            span = _above(floors[0], closed=False)
        case Comparison.GREATER_EQUAL:
            span = _above(floors[0], closed=True)
        case Comparison.BETWEEN:
            span = _above(floors[0], closed=True).intersect(_below(floors[1], closed=True))
    return within([span])


def _below(floor: _Floor, *, closed: bool) -> Span:
    # x < 1.5 is x <= 1: when the value lies between two column values, its floor belongs to the span whatever the operator.
    return Span(upper=floor.value, upper_closed=closed or not floor.exact)


def _above(floor: _Floor, *, closed: bool) -> Span:
    return Span(lower=floor.value, lower_closed=closed and floor.exact)


def _representable(value: Any, column_type: SqlType) -> bool:
    if column_type.is_integer:
        smallest, largest = column_type.integer_range
        return bool(smallest <= value <= largest)
    if column_type.kind is TypeKind.DECIMAL:
        return bool(abs(value) < Decimal(10) ** (column_type.precision - column_type.scale))
    return True


def _plain(value: Any) -> Any:
    """Numpy scalars as the Python values that they travel as; datetime64 stays, because its ``item()`` may be a bare integer."""
    return value.item() if isinstance(value, (np.integer, np.floating, np.bool_, np.str_)) else value


def _floors(values: list[Any], column_type: SqlType) -> _Floors:
    kind = column_type.kind
    kinds = {type(value) for value in values}
    try:
        if column_type.is_integer:
            return _integer_floors(values, kinds, column_type) if kind is not TypeKind.HUGEINT else None
        if kind is TypeKind.DECIMAL:
            return _decimal_floors(values, kinds, column_type)
        rule = _RULES.get(kind)
        return rule(values, kinds) if rule else None
    except (ValueError, OverflowError, ArithmeticError):
        # A text that is no date, an instant outside Python's calendar: DuckDB decides what they mean.
        return None


def _integer_floors(values: list[Any], kinds: set[type[Any]], column_type: SqlType) -> _Floors:
    if not kinds <= {int, float, Decimal, str} and not kinds <= {int, bool}:
        return None
    smallest, largest = column_type.integer_range
    numbers: list[Any] = []
    for value in values:
        if isinstance(value, str):
            if not _INTEGER_TEXT.fullmatch(value) or not smallest <= int(value) <= largest:
                return None
            numbers.append(int(value))
        else:
            numbers.append(value)
    integers = [number for number in numbers if isinstance(number, int)]
    if not all(-_HUGEINT_MAX <= number <= _HUGEINT_MAX for number in integers):
        return None
    if float in kinds:
        # The column is cast to DOUBLE: below 2**53 that is exact and keeps order, above it two integers may compare equal.
        if Decimal in kinds or not all(abs(number) <= _DOUBLE_EXACT_MAX for number in numbers):
            return None
    elif Decimal in kinds and not _decimals_fit(numbers, _INTEGER_DIGITS[column_type.kind], 0):
        return None
    return [_Floor(math.floor(number), number == math.floor(number)) for number in numbers]


def _decimal_floors(values: list[Any], kinds: set[type], column_type: SqlType) -> _Floors:
    step = Decimal(1).scaleb(-column_type.scale)
    if kinds == {str}:
        limit = Decimal(10) ** (column_type.precision - column_type.scale)
        if not all(_DECIMAL_TEXT.fullmatch(value) and len(value.partition(".")[2]) <= column_type.scale and abs(Decimal(value)) < limit for value in values):
            return None
        return [_Floor(Decimal(value).quantize(step, context=_WIDE)) for value in values]
    if not kinds <= {int, Decimal} or not _decimals_fit(values, column_type.precision - column_type.scale, column_type.scale):
        return None
    floored = [Decimal(value).quantize(step, context=_WIDE) for value in values]
    return [_Floor(floor, floor == value) for floor, value in zip(floored, values, strict=True)]


def _decimals_fit(values: Sequence[Any], digits: int, scale: int) -> bool:
    """Whether a DECIMAL holds the column and all values at once; past 38 digits the dialect rounds or gives up."""
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


def _text_floors(values: list[Any], kinds: set[type]) -> _Floors:
    if kinds != {str}:
        return None
    for value in values:
        value.encode()  # a lone surrogate has no UTF-8 form: UnicodeEncodeError is a ValueError
    return [_Floor(value) for value in values]


def _blob_floors(values: list[Any], kinds: set[type]) -> _Floors:
    return [_Floor(bytes(value)) for value in values] if kinds <= {bytes, bytearray} else None


def _boolean_floors(values: list[Any], kinds: set[type]) -> _Floors:
    if kinds == {str}:
        return [_Floor(_BOOLEAN_TEXT[value]) for value in values] if all(value in _BOOLEAN_TEXT for value in values) else None
    return [_Floor(bool(value)) for value in values] if kinds <= {bool, int} and all(value in (0, 1) for value in values) else None


def _date_floors(values: list[Any], kinds: set[type]) -> _Floors:
    if not kinds <= {date, datetime, str}:
        return None
    floors = []
    for value in values:
        if isinstance(value, datetime):
            instant = _utc(value)
            floors.append(_Floor(instant.date(), instant.time() == time.min))
        elif isinstance(value, str):
            if not _DATE_TEXT.fullmatch(value):
                return None
            floors.append(_Floor(date.fromisoformat(value)))
        else:
            floors.append(_Floor(value))
    return floors


def _timestamp_floors(values: list[Any], kinds: set[type]) -> _Floors:
    if not kinds <= {date, datetime, str}:
        return None
    floors = []
    for value in values:
        if isinstance(value, datetime):
            floors.append(_Floor(_utc(value)))
        elif isinstance(value, str):
            if not _TIMESTAMP_TEXT.fullmatch(value):
                return None
            floors.append(_Floor(datetime.fromisoformat(value)))
        else:
            floors.append(_Floor(datetime.combine(value, time.min)))
    return floors


def _timestamptz_floors(values: list[Any], kinds: set[type]) -> _Floors:
    floors = _timestamp_floors(values, kinds)
    return None if floors is None else [_Floor(floor.value.replace(tzinfo=UTC)) for floor in floors]


def _uuid_floors(values: list[Any], kinds: set[type]) -> _Floors:
    if not kinds <= {uuid.UUID, str}:
        return None
    if not all(_UUID_TEXT.fullmatch(value) for value in values if isinstance(value, str)):
        return None
    return [_Floor(value if isinstance(value, uuid.UUID) else uuid.UUID(value)) for value in values]


def _utc(value: datetime) -> datetime:
    """The naive UTC reading of an instant; kernels run with the session time zone UTC, so a naive one is UTC already."""
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


_RULES: Final[dict[TypeKind, Callable[[list[Any], set[type]], _Floors]]] = {
    TypeKind.VARCHAR: _text_floors,
    TypeKind.BLOB: _blob_floors,
    TypeKind.BOOLEAN: _boolean_floors,
    TypeKind.DATE: _date_floors,
    TypeKind.TIMESTAMP: _timestamp_floors,
    TypeKind.TIMESTAMPTZ: _timestamptz_floors,
    TypeKind.UUID: _uuid_floors,
}
