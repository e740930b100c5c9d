"""Expressions of parameters that any client evaluates at binding, exactly as DuckDB would, or not at all.

A function is here only where its result in Python is certain to be DuckDB's for the values that it is given: whole
numbers that do not overflow, text of ASCII characters (the two change the case of others differently), calendar days
and instants without a zone. For other values the result is :data:`UNKNOWN`, and what is compared with it stays
unbounded. ``tests/property/test_expressions.py`` holds that *known* implies *equal*.

The Python class of a value gives its SQL type, and the size of a whole number gives its width, as in DuckDB for
parameters.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from secateur.errors import DataError
from secateur.partitioning.pruning.comparison_bound import INTEGER_TEXT
from secateur.partitioning.pruning.comparison_target import is_own
from secateur.partitioning.types.calendar import MONTHS, SPANS, UNITS, start_of
from secateur.partitioning.types.coerce import CERTAIN_TEXTS, coerce
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import DOUBLE_INTEGER_MAX


class _Unknown(Enum):
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return "a value that only DuckDB knows"


UNKNOWN: Final = _Unknown.UNKNOWN
"""The result of an expression whose value only DuckDB can compute. A comparison with it restricts nothing."""


class ParameterFunction(Enum):
    """The functions and operators that can be computed. The value is the name by which each is printed and sent."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    MODULO = "%"
    NEGATE = "neg"
    ABS = "abs"
    SHIFT = "interval"
    """A day or instant moved by a number of units: arguments are the value, the number and the unit."""
    DATE_TRUNC = "date_trunc"
    MAKE_DATE = "make_date"
    JOIN = "||"
    CONCAT = "concat"
    """Concatenation like ``||``, but NULL is the empty text."""
    UPPER = "upper"
    LOWER = "lower"
    TRIM = "trim"
    LTRIM = "ltrim"
    RTRIM = "rtrim"
    SUBSTRING = "substring"
    LEFT = "left"
    RIGHT = "right"
    LPAD = "lpad"
    REPLACE = "replace"
    REVERSE = "reverse"
    LENGTH = "length"
    COALESCE = "coalesce"
    NULLIF = "nullif"


class _UnknownError(Exception):
    """The result is not certain; never leaves this module."""


_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)
_TEXT_CHARS_MAX: Final = 4096
_TRUNCATED: Final = UNITS - {"second"}
_SPANS: Final = {"microsecond": timedelta(microseconds=1), "millisecond": timedelta(milliseconds=1), **SPANS}


def evaluate(function: ParameterFunction, values: Sequence[Any]) -> Any:
    """The result of a function of values; None is NULL.

    Returns:
        The value that DuckDB would give, or :data:`UNKNOWN`, also where DuckDB would raise an error. Never raises.
    """
    if any(value is UNKNOWN for value in values):
        return UNKNOWN
    try:
        match function:
            case ParameterFunction.COALESCE:
                return _coalesce(values)
            case ParameterFunction.CONCAT:
                return _checked("".join(_text_of(value) for value in values if value is not None))
            case ParameterFunction.NULLIF:
                return _nullif(*values)
            case _ if any(value is None for value in values):
                return None
            case _:
                return _checked(_STRICT[function](*values))
    except (_UnknownError, TypeError, ValueError, ArithmeticError):
        return UNKNOWN


def cast(value: Any, wanted: SqlType) -> Any:
    """``CAST(value AS wanted)`` if the conversion is unambiguous and lossless, else :data:`UNKNOWN`. Never raises."""
    if value is None or value is UNKNOWN:
        return value
    try:
        if wanted.kind is TypeKind.VARCHAR:
            return _checked(_text_of(value))
        if wanted.is_integer:
            return _to_integer(value, wanted)
        if isinstance(value, str):
            spelling = CERTAIN_TEXTS.get(wanted.kind)
            return UNKNOWN if spelling is None or not spelling.fullmatch(value) else coerce(value, wanted)
        match wanted.kind, value:
            case TypeKind.DATE, datetime():
                return value.date() if value.tzinfo is None else UNKNOWN
            case TypeKind.TIMESTAMP, datetime():
                return value if value.tzinfo is None else UNKNOWN
            case (
                (TypeKind.DATE | TypeKind.TIMESTAMP, date()) | (TypeKind.BOOLEAN, bool()) | (TypeKind.UUID, uuid.UUID())
            ):
                return coerce(value, wanted)
            case TypeKind.DECIMAL, int() | Decimal() if not isinstance(value, bool):
                return coerce(value, wanted)
            case _:
                return UNKNOWN
    except (_UnknownError, DataError, ValueError, OverflowError):
        return UNKNOWN


def belongs(value: Any, column_type: SqlType) -> bool:
    """Whether a computed value has the same kind as a column, so that a comparison of the two converts neither."""
    if column_type.kind in (TypeKind.DATE, TypeKind.TIMESTAMP):
        return value is None or type(value) is date or (type(value) is datetime and value.tzinfo is None)
    return value is None or is_own(value, column_type)


def _checked(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _TEXT_CHARS_MAX:
        raise _UnknownError
    return value


def _integers(*values: Any) -> tuple[int, ...]:
    if not all(type(value) is int and value in _INT64 for value in values):
        raise _UnknownError
    return values


def _texts(*values: Any) -> tuple[str, ...]:
    if not all(type(value) is str and value.isascii() for value in values):
        raise _UnknownError
    return values


def _sized(result: int, *operands: int) -> int:
    """A result in the width of its operands; past it DuckDB has an error, or a wider type."""
    if result not in (_INT32 if all(operand in _INT32 for operand in operands) else _INT64):
        raise _UnknownError
    return result


def _text_of(value: Any) -> str:
    match value:
        case str() | int() if not isinstance(value, bool):
            return str(value)
        case uuid.UUID():
            return str(value)
        case datetime() if value.tzinfo is None and not value.microsecond:
            return value.isoformat(" ")
        case date() if not isinstance(value, datetime):
            return value.isoformat()
        case _:
            raise _UnknownError


def _to_integer(value: Any, wanted: SqlType) -> Any:
    if wanted.kind is TypeKind.HUGEINT or (isinstance(value, str) and not INTEGER_TEXT.fullmatch(value)):
        return UNKNOWN
    if not isinstance(value, (str, int, Decimal, float)) or (
        isinstance(value, float) and abs(value) >= DOUBLE_INTEGER_MAX
    ):
        return UNKNOWN
    return coerce(int(value) if isinstance(value, bool) else value, wanted)


def _add(left: Any, right: Any) -> Any:
    if type(left) is date or type(right) is date:
        day, days = (left, right) if type(left) is date else (right, left)
        _integers(days)
        return day + timedelta(days=days)
    left, right = _integers(left, right)
    return _sized(left + right, left, right)


def _subtract(left: Any, right: Any) -> Any:
    if type(left) is date:
        return (left - right).days if type(right) is date else left - timedelta(days=_integers(right)[0])
    left, right = _integers(left, right)
    return _sized(left - right, left, right)


def _multiply(left: Any, right: Any) -> Any:
    left, right = _integers(left, right)
    return _sized(left * right, left, right)


def _modulo(left: Any, right: Any) -> Any:
    left, right = _integers(left, right)
    if left < 0 or right <= 0:
        raise _UnknownError
    return left % right


def _negate(value: Any) -> Any:
    (number,) = _integers(value)
    return _sized(-number, number)


def _abs(value: Any) -> Any:
    (number,) = _integers(value)
    return _sized(abs(number), number)


def _shift(value: Any, amount: Any, unit: Any) -> Any:
    """Source: PostgreSQL's intervals: a month later is the same day of the next month, or its last day."""
    _integers(amount)
    moment = _moment(value)
    if unit in _SPANS:
        return moment + _SPANS[unit] * amount
    months = moment.year * 12 + moment.month - 1 + MONTHS[unit] * amount
    first = moment.replace(year=months // 12, month=months % 12 + 1, day=1)
    following = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    return first.replace(day=min(moment.day, (following - first).days))


def _date_trunc(unit: Any, value: Any) -> Any:
    moment = _moment(value)
    if unit not in _TRUNCATED:
        raise _UnknownError
    return start_of(moment, unit)


def _moment(value: Any) -> datetime:
    if type(value) is date:
        return datetime.combine(value, time.min)
    if type(value) is datetime and value.tzinfo is None:
        return value
    raise _UnknownError


def _substring(text: Any, start: Any, length: Any = 2**31 - 1) -> str:
    (text,), (start, length) = _texts(text), _integers(start, length)
    if start < 1 or length < 0:
        raise _UnknownError
    return str(text[start - 1 : start - 1 + length])


def _right(text: Any, length: Any) -> str:
    (text,), (length,) = _texts(text), _integers(length)
    if length < 0:
        raise _UnknownError
    return str(text[max(len(text) - length, 0) :])


def _lpad(text: Any, length: Any, pad: Any) -> str:
    (text, pad), (length,) = _texts(text, pad), _integers(length)
    if len(pad) != 1 or not 0 <= length <= _TEXT_CHARS_MAX:
        raise _UnknownError
    return str(text[:length].rjust(length, pad))


def _replace(text: Any, old: Any, new: Any) -> str:
    text, old, new = _texts(text, old, new)
    if not old:
        raise _UnknownError
    return str(text.replace(old, new))


def _coalesce(values: Sequence[Any]) -> Any:
    given = [value for value in values if value is not None]
    if len(set(map(type, given))) > 1:
        raise _UnknownError
    return given[0] if given else None


def _nullif(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return left
    if type(left) is not type(right) or type(left) not in (int, str, date):
        raise _UnknownError
    return None if left == right else left


_STRICT: Final[dict[ParameterFunction, Callable[..., Any]]] = {
    ParameterFunction.ADD: _add,
    ParameterFunction.SUBTRACT: _subtract,
    ParameterFunction.MULTIPLY: _multiply,
    ParameterFunction.MODULO: _modulo,
    ParameterFunction.NEGATE: _negate,
    ParameterFunction.ABS: _abs,
    ParameterFunction.SHIFT: _shift,
    ParameterFunction.DATE_TRUNC: _date_trunc,
    ParameterFunction.MAKE_DATE: lambda year, month, day: date(*_integers(year, month, day)),
    ParameterFunction.JOIN: lambda left, right: _text_of(left) + _text_of(right),
    ParameterFunction.UPPER: lambda text: _texts(text)[0].upper(),
    ParameterFunction.LOWER: lambda text: _texts(text)[0].lower(),
    ParameterFunction.TRIM: lambda text: _texts(text)[0].strip(" "),
    ParameterFunction.LTRIM: lambda text: _texts(text)[0].lstrip(" "),
    ParameterFunction.RTRIM: lambda text: _texts(text)[0].rstrip(" "),
    ParameterFunction.SUBSTRING: _substring,
    ParameterFunction.LEFT: lambda text, length: _substring(text, 1, length),
    ParameterFunction.RIGHT: _right,
    ParameterFunction.LPAD: _lpad,
    ParameterFunction.REPLACE: _replace,
    ParameterFunction.REVERSE: lambda text: _texts(text)[0][::-1],
    ParameterFunction.LENGTH: lambda text: len(_texts(text)[0]),
}
