"""Values of column types as SQL literals, and back without DuckDB.

A literal means its value under a cast to the type: ``'2020-01-31'`` of a DATE, ``[1, NULL]`` of an INTEGER[]. Of these
only the ones that :func:`literal_sql` makes are read, and those of a user's where their meaning is certain
(:func:`value_of_text`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa

from secateur.errors import DataError
from secateur.partitioning.types.coerce import CERTAIN_TEXTS, coerce
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import DOUBLE_INTEGER_MAX

_TOKEN: Final = re.compile(r"\s*('(?:[^']|'')*'|[^\s'\[\]{}:,]+|[\[\]{}:,])", re.ASCII)
_DECIMAL_DIGITS_MAX: Final = 15
"""DuckDB reads a number of so many digits as a decimal, which is the nearest double; of a longer one with an exponent
it makes a double at once."""
_INTERVAL: Final = re.compile(r"(-?\d+) months (-?\d+) days (-?\d+) microseconds", re.ASCII)


def literal_sql(value: Any, type_: SqlType, *, is_part: bool = False) -> str:
    """A canonical value of a type, as :func:`~.coerce.coerce` returns it, as a literal.

    Args:
        value: The value.
        type_: Its type.
        is_part: Whether it is inside of another value. Floating-point numbers are texts there: beside ``'inf'``, which
            can be no other, DuckDB would take the numbers of a list for decimals.

    Raises:
        DataError: There is no literal of it.
    """
    if value is None:
        return "NULL"
    match type_.kind, value:
        case TypeKind.BOOLEAN, _:
            return "true" if value else "false"
        case TypeKind.FLOAT | TypeKind.DOUBLE, float():
            return f"'{value}'" if is_part else _number(value, type_)
        case TypeKind.DECIMAL, Decimal():
            return f"{value:f}"
        case TypeKind.BLOB, bytes():
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'"
        case TypeKind.INTERVAL, _:
            return f"'{_interval(value)}'"
        case TypeKind.LIST | TypeKind.ARRAY, list():
            assert type_.element is not None
            element = type_.element
            return f"[{', '.join(literal_sql(item, element, is_part=True) for item in value)}]"
        case TypeKind.STRUCT, Mapping():
            fields = (
                f"{_text(field.name)}: {literal_sql(value[field.name], field.type, is_part=True)}"
                for field in type_.fields
            )
            return f"{{{', '.join(fields)}}}"
        case TypeKind.MAP, list():
            key, held = type_.fields
            pairs = (
                f"{literal_sql(k, key.type, is_part=True)}: {literal_sql(v, held.type, is_part=True)}" for k, v in value
            )
            return f"MAP {{{', '.join(pairs)}}}"
        case TypeKind.TIMESTAMP_NS, np.datetime64():
            return f"'{np.datetime_as_string(value)}'"
        case _, str():
            return _text(value)
        case _, int():
            return str(value)
        case _, datetime():
            return f"'{value.isoformat(' ')}'"
        case _, date() | time():
            return f"'{value.isoformat()}'"
        case _, UUID():
            return f"'{value}'"
        case _:
            raise DataError(f"{value!r} has no literal of type {type_}", type=str(type_))


def read_literal(text: str, type_: SqlType) -> Any:
    """The canonical value of a literal that :func:`literal_sql` has made.

    Raises:
        DataError: It is another text.
    """
    tokens = _TOKEN.findall(text)
    try:
        value = _read(tokens, type_)
    except (DataError, LookupError, ValueError) as error:
        raise DataError(f"{text} is no literal of type {type_}", type=str(type_)) from error
    if tokens:
        raise DataError(f"{text} is no literal of type {type_}", type=str(type_))
    return value


def _text(text: str) -> str:
    if "\0" in text:
        raise DataError("a text with the character NUL has no literal", type="VARCHAR")
    return "'" + text.replace("'", "''") + "'"


def _number(value: float, type_: SqlType) -> str:
    if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0):  # as a decimal, -0.0 has no sign
        return f"'{value}'"
    text = str(np.float32(value)) if type_.kind is TypeKind.FLOAT else repr(value)
    is_long = sum(map(str.isdigit, text)) > _DECIMAL_DIGITS_MAX
    return f"{text}e0" if is_long and "e" not in text else text


def _interval(value: Any) -> str:
    """Of a ``timedelta``, or a ``MonthDayNano`` of whole microseconds."""
    if isinstance(value, timedelta):
        return f"0 months {value.days} days {value.seconds * 1_000_000 + value.microseconds} microseconds"
    return f"{value.months} months {value.days} days {value.nanoseconds // 1000} microseconds"


def _read(tokens: list[str], type_: SqlType) -> Any:
    """Read the value at the beginning of some tokens, and take them."""
    first = tokens.pop(0)
    if first == "NULL":
        return None
    match type_.kind:
        case TypeKind.LIST | TypeKind.ARRAY if type_.element is not None:
            _expect(first, "[")
            items: list[Any] = []
            while not _ends(tokens, "]", items):
                items.append(_read(tokens, type_.element))
            if type_.kind is TypeKind.ARRAY and len(items) != type_.length:
                raise ValueError(first)
            return items
        case TypeKind.STRUCT:
            _expect(first, "{")
            found: dict[str, Any] = {}
            for field in type_.fields:
                if found:
                    _expect(tokens.pop(0), ",")
                _expect(tokens.pop(0), _text(field.name))
                _expect(tokens.pop(0), ":")
                found[field.name] = _read(tokens, field.type)
            _expect(tokens.pop(0), "}")
            return found
        case TypeKind.MAP:
            _expect(first, "MAP")
            _expect(tokens.pop(0), "{")
            key, held = type_.fields
            pairs: list[tuple[Any, Any]] = []
            while not _ends(tokens, "}", pairs):
                name = _read(tokens, key.type)
                _expect(tokens.pop(0), ":")
                pairs.append((name, _read(tokens, held.type)))
            return pairs
        case _:
            return _scalar(first, type_)


def _expect(token: str, expected: str) -> None:
    if token != expected:
        raise ValueError(token)


def _ends(tokens: list[str], end: str, before: list[Any]) -> bool:
    """Whether a list ends here; else its next item is, behind a comma if there is one ``before``."""
    if tokens[0] == end:
        tokens.pop(0)
        return True
    if before:
        _expect(tokens.pop(0), ",")
    return False


def _unquoted(token: str) -> str:
    _expect(token[0] + token[-1], "''")
    return token[1:-1].replace("''", "'")


def _scalar(token: str, type_: SqlType) -> Any:
    match type_.kind:
        case TypeKind.VARCHAR | TypeKind.JSON | TypeKind.ENUM:
            return _unquoted(token)
        case TypeKind.BLOB:
            return bytes.fromhex(_unquoted(token).replace("\\x", ""))
        case TypeKind.INTERVAL:
            months, days, micros = map(int, _INTERVAL.findall(_unquoted(token))[0])
            return pa.MonthDayNano([months, days, micros * 1000])
        case _:
            return coerce(_unquoted(token) if token.startswith("'") else token, type_)


_COMPARED: Final = {TypeKind.DATE, TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ, TypeKind.UUID}
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
    """Return the value of a text that is compared with a type, or None if only DuckDB knows how it is read."""
    if type_.kind is TypeKind.VARCHAR:
        return text
    if type_.kind not in _COMPARED or not CERTAIN_TEXTS[type_.kind].fullmatch(text):
        return None
    try:
        return coerce(text, type_)
    except DataError:  # no day of the calendar, or an instant that Python has in its own zone alone
        return None
