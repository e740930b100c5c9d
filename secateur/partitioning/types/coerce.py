"""Converts a Python value to the canonical value of a column type, or raises a clear error; never rounds or guesses.

Canonical forms, exactly these classes: ``bool``, ``int``, ``float``, ``Decimal`` with exactly the column's scale,
``str``, ``bytes``, ``date``, ``time``, ``datetime`` (naive for TIMESTAMP, aware in UTC for TIMESTAMPTZ), ``timedelta``
for INTERVAL, or a ``MonthDayNano`` of Arrow, ``uuid.UUID``, ``list`` for LIST and ARRAY, ``dict`` of all fields in
their order for STRUCT, ``list`` of pairs for MAP; None for NULL. TIMESTAMP_S and TIMESTAMP_MS have naive datetimes,
TIMESTAMP_NS has ``numpy.datetime64`` of nanoseconds: no class of Python has these.

Accepted conversions: numbers to numbers where the value stays the same; text that spells the value; dates to midnight;
numpy scalars and members of an enum to the Python value they hold; pandas' NA and NaT to NULL. A point in time without
a zone is read as UTC, one with a zone is moved to UTC. Text is never made from other types: ``5`` for a VARCHAR is an
error, because the writer probably meant another column. A STRUCT is a mapping by names of its fields, without regard to
case; missing ones are NULL. A MAP is a mapping or an iterable of pairs.

A :class:`DataError` means that the value has no canonical form, not that no row can equal it: the dialect can compare
values that it cannot store.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, Inexact
from enum import Enum
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt

from secateur.errors import DataError
from secateur.partitioning.types.calendar import INFINITE
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import below_power_of_ten, fits, rescaled
from secateur.partitioning.types.json_text import check_json, json_of

_INTEGER_TEXT: Final = re.compile(r"\s*[+-]?[0-9]+\s*")
_NUMBER_TEXT: Final = re.compile(
    r"\s*[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)\s*", re.IGNORECASE
)
"""Python reads more as a number: digits of other scripts, and underscores, which DuckDB refuses."""
UUID_TEXT: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
CERTAIN_TEXTS: Final = {
    TypeKind.BOOLEAN: re.compile(r"true|false"),
    TypeKind.DECIMAL: re.compile(r"[+-]?[0-9]{1,37}(?:\.[0-9]{1,37})?"),
    TypeKind.DATE: re.compile(_DAY),
    TypeKind.TIME: re.compile(_CLOCK),
    TypeKind.TIMESTAMP: re.compile(f"{_DAY}(?:[ T]{_CLOCK})?"),
    TypeKind.TIMESTAMPTZ: re.compile(f"{_DAY}(?:[ T]{_CLOCK}(?:Z|[+-][0-9]{{2}}(?::[0-9]{{2}})?)?)?"),
    TypeKind.UUID: UUID_TEXT,
}
"""The texts of which it is certain which value of a type they spell, if any: DuckDB reads them as we do."""
FINER_TEXT: Final = re.compile(r"[.,]\d{6}0*[1-9]")
"""What texts have of which Python's ``fromisoformat`` cuts off a fraction of a microsecond."""
_NANOSECOND_TEXT: Final = re.compile(r"([.,]\d{6})(\d+)")
_NANOSECONDS: Final = np.dtype("datetime64[ns]")
_NO_NANOSECOND: Final = "it is not a whole number of nanoseconds in the years 1677 to 2262"
_EPOCH: Final = datetime(1970, 1, 1)
_PARTS_OF_INTERVAL: Final = frozenset({"months", "days", "nanoseconds"})
_MISSING: Final = frozenset({"NAType", "NaTType"})
PLAIN_CLASSES: Final = frozenset({bool, int, float, str, bytes, Decimal, date, datetime, time, timedelta, UUID})
"""The classes of single values; a value of another class may stand for one of them."""
_BOOLEAN_TEXT: Final = {"true": True, "t": True, "false": False, "f": False}
_TEXT_SHOWN_MAX: Final = 80
# HUGEINT lives as decimal128(38, 0), which is a little narrower than 128 bits.
_HUGEINT_MAX: Final = 10**38 - 1
_BIGINT: Final = TypeKind.BIGINT
_VARCHAR: Final = TypeKind.VARCHAR
_DOUBLE: Final = TypeKind.DOUBLE
_TIMESTAMP: Final = TypeKind.TIMESTAMP
_BIGINT_MIN: Final = -(1 << 63)
_BIGINT_MAX: Final = (1 << 63) - 1


class _CannotError(ValueError):
    """Carries the reason; becomes a DataError with the column's name."""


def coerce(value: Any, type_: SqlType, *, column: str | None = None) -> Any:
    """Convert one value to the canonical form of a type.

    None stays None. The message names the ``column``.

    Returns:
        The canonical value. Cost: under 1 microsecond when it is canonical already.

    Raises:
        DataError: The value cannot be held exactly; ``details`` has ``column`` and ``type``.
    """
    if value is None:
        return None
    given, kind = type(value), type_.kind  # the usual values are told by identity: hashing an enum takes longer
    if (
        (given is int and kind is _BIGINT and _BIGINT_MIN <= value <= _BIGINT_MAX)
        or (given is str and kind is _VARCHAR and value.isascii())
        or (given is float and kind is _DOUBLE)
        or (given is datetime and kind is _TIMESTAMP and value.tzinfo is None and not value.fold)
    ):
        return value
    try:
        return _convert(value, type_)
    except _CannotError as error:
        reason = str(error)
    except (ValueError, TypeError, OverflowError, ArithmeticError):
        reason = "the text is not such a value"
    shown = repr(value)
    shown = shown if len(shown) <= _TEXT_SHOWN_MAX else f"{shown[:_TEXT_SHOWN_MAX]}..."
    where = "the value" if column is None else f"column {column}:"
    raise DataError(
        f"{where} {shown} ({type(value).__name__}) does not fit {type_.shown}: {reason}", column=column, type=str(type_)
    )


def uncertain_finder(columns: Iterable[tuple[SqlType, bool]]) -> Callable[[Sequence[Iterable[Any]], int], int]:
    """A function that finds the first column, from one on, with a value that is perhaps not canonical as it stands.

    It takes values by column, and returns the number of columns if there is none. :func:`coerce` decides of such a
    value. To be made once for some columns. Cost: a twentieth of a microsecond for each value.

    Of each column it is told the type, and whether it may be NULL.
    """
    known = [
        (type_.value_class, _integer_range(type_) if type_.is_integer else None, nullable)
        for type_, nullable in columns
    ]

    def uncertain(columns: Sequence[Iterable[Any]], start: int) -> int:
        for at in range(start, len(known)):
            own, integers, nullable = known[at]
            for value in columns[at]:
                if type(value) is not own:
                    if value is None and nullable:
                        continue
                    return at
                if integers is not None:
                    if not integers[0] <= value <= integers[1]:
                        return at
                elif own is str and not value.isascii():  # others may not be UTF-8
                    return at
        return len(known)

    return uncertain


def check_finite(number: float, given: Any) -> None:
    """Refuse the infinity that Python makes of a finite value which is too large for a double.

    Raises:
        ValueError: It has been made of one.
    """
    if math.isinf(number) and "inf" not in str(given).lower():
        raise _CannotError("it is too large for the type")


def package_of(kind: type) -> str:
    """The package of a class, whichever of its modules has it: those of pandas moved with version 3."""
    return kind.__module__.partition(".")[0]


def is_missing(kind: type) -> bool:
    """Whether it is the type of pandas' own value for a missing one; told by its name, without pandas."""
    return kind.__name__ in _MISSING and package_of(kind) == "pandas"


def _convert(value: Any, type_: SqlType) -> Any:
    if type(value) not in PLAIN_CLASSES:
        if is_missing(type(value)):
            return None
        if isinstance(value, Enum):
            value = value.value
        if isinstance(value, np.generic):
            # The shortest text of a single float is shorter than that of the double that it is.
            is_short = isinstance(value, np.floating) and value.itemsize < 8 and type_.kind is TypeKind.DECIMAL
            value = str(value) if is_short and math.isfinite(value) else _from_numpy(value, type_)
    if type_.kind is TypeKind.DECIMAL:
        return _to_decimal(value, type_)
    if type_.is_integer:
        return _to_integer(value, type_)
    match type_.kind:
        case TypeKind.LIST if type_.element is not None:
            return _to_list(value, type_.element)
        case TypeKind.ARRAY if type_.element is not None:
            found = _to_list(value, type_.element)
            if len(found) != type_.length:
                raise _CannotError(wrong_length(len(found), type_))
            return found
        case TypeKind.STRUCT:
            return _to_struct(value, type_)
        case TypeKind.ENUM:
            return _to_enum(value, type_)
        case TypeKind.MAP:
            return _to_map(value, *type_.parts)
        case _:
            pass
    return _CONVERTERS[type_.kind](value)


def wrong_length(length: int, type_: SqlType) -> str:
    """The reason why a list with so many elements is no value of an ARRAY."""
    return f"it has {length} element{'' if length == 1 else 's'}, and the type {type_.length}"


def _from_numpy(value: np.generic, type_: SqlType) -> Any:
    if isinstance(value, np.datetime64):
        if type_.kind is TypeKind.TIMESTAMP_NS:
            return value  # finer than what Python has
        # A unit that is too coarse or too fine overflows or truncates silently; converting back reveals it.
        micros = value.astype("datetime64[us]")
        moment = micros.astype(datetime)
        if np.isnat(value) or micros.astype(value.dtype) != value or not isinstance(moment, datetime):
            raise _CannotError("it is not a whole number of microseconds in the years 1 to 9999")
        return moment
    return value.item()


def _integer_range(type_: SqlType) -> tuple[int, int]:
    return (-_HUGEINT_MAX, _HUGEINT_MAX) if type_.kind is TypeKind.HUGEINT else type_.integer_range


def _to_integer(value: Any, type_: SqlType) -> int:
    low, high = _integer_range(type_)
    match value:
        case int():
            number = int(value)
        case float() | Decimal():
            if not math.isfinite(value) or value != int(value):
                raise _CannotError("it is not a whole number")
            number = int(value)
        case str():
            if not _INTEGER_TEXT.fullmatch(value):
                raise _CannotError("the text is not a whole number")
            number = int(value)
        case _:
            raise _CannotError("give an int")
    if not low <= number <= high:
        raise _CannotError(f"the type holds {low} to {high}")
    return number


def _to_decimal(value: Any, type_: SqlType) -> Decimal:
    match value:
        case Decimal():
            number = value
        case int():
            number = Decimal(value)
        case float() if math.isfinite(value) and fits(exactly := Decimal(value), type_.precision, type_.scale):
            number = exactly
        case float():
            # The shortest text that reads back as the same float is what the user wrote.
            number = Decimal(repr(value))
        case str():
            number = Decimal(_number_text(value).strip())
        case _:
            raise _CannotError("give a Decimal, an int or text")
    if not number.is_finite():
        raise _CannotError("it is not finite")
    if not below_power_of_ten(number, type_.precision - type_.scale):
        raise _CannotError(f"the type holds {type_.precision - type_.scale} digits before the point")
    try:
        return rescaled(number, type_.scale)
    except Inexact:
        raise _CannotError(f"the type holds {type_.scale} digits behind the point") from None


def _number_text(text: str) -> str:
    if not _NUMBER_TEXT.fullmatch(text):
        raise _CannotError("the text is not such a value")
    return text


def _to_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.strip().lower() in _BOOLEAN_TEXT:
        return _BOOLEAN_TEXT[value.strip().lower()]
    raise _CannotError("give True or False")


def _to_float(value: Any) -> float:
    if isinstance(value, (int, float, Decimal, str)):
        found = float(_number_text(value) if isinstance(value, str) else value)
        if isinstance(value, int) and found != value:
            raise _CannotError("it has more digits than the type tells apart")
        check_finite(found, value)
        return found
    raise _CannotError("give a float")


def _to_single(value: Any) -> float:
    wide = _to_float(value)
    with np.errstate(over="ignore"):
        narrow = float(np.float32(wide))
    if math.isinf(narrow) and not math.isinf(wide):
        raise _CannotError("it is too large for single precision")
    if isinstance(value, int) and narrow != value:
        raise _CannotError("it has more digits than the type tells apart")
    return narrow


def _to_text(value: Any) -> str:
    if not isinstance(value, str):
        raise _CannotError("give a str; convert it with str() if the text is what you mean")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _CannotError("it has surrogates that UTF-8 cannot carry") from None
    return str.__str__(value)  # str() asks a class of the user's


def _to_json(value: Any) -> str:
    if not isinstance(value, str):
        try:
            value = json_of(value)
        except (TypeError, ValueError) as error:
            raise _CannotError(str(error)) from error
    text = _to_text(value)
    try:
        check_json(text)
    except ValueError as error:
        raise _CannotError(str(error)) from error
    return text


def _to_enum(value: Any, type_: SqlType) -> str:
    text = _to_text(value)
    if text not in type_.values:
        raise _CannotError("it is none of the values")
    return text


def _to_blob(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise _CannotError("give bytes")


def _to_date(value: Any) -> date:
    match value:
        case datetime():
            moment = _to_timestamp(value)
            if moment.time() != time():
                raise _CannotError("it has a time of day")
            return moment.date()
        case date():
            return value if type(value) is date else date(value.year, value.month, value.day)
        case str():
            return date.fromisoformat(value.strip())
        case _:
            raise _CannotError("give a date or its ISO text")


def _to_time(value: Any) -> time:
    result = time.fromisoformat(_instant_text(value)) if isinstance(value, str) else value
    if not isinstance(result, time):
        raise _CannotError("give a time or its ISO text")
    if result.tzinfo is not None:
        raise _CannotError("it has a zone")
    return result.replace(fold=0)


def _instant_text(text: str) -> str:
    if FINER_TEXT.search(text):
        raise _CannotError("it is not a whole number of microseconds")
    return text.strip()


def _to_timestamp(value: Any) -> datetime:
    return _to_timestamp_tz(value).replace(tzinfo=None)


def _to_whole(unit: str, microseconds: int) -> Callable[[Any], datetime]:
    def convert(value: Any) -> datetime:
        moment = _to_timestamp(value)
        if moment.microsecond % microseconds:
            raise _CannotError(f"it is not a whole number of {unit}")
        return moment

    return convert


def _to_nanoseconds(value: Any) -> np.datetime64:
    """A point in time; one of pandas, of numpy or in a text may have nanoseconds."""
    beyond = 0
    if isinstance(value, np.datetime64):
        exact = value.astype(_NANOSECONDS)
        if np.isnat(value) or exact.astype(value.dtype) != value or abs(exact.astype(np.int64)) >= INFINITE:
            raise _CannotError(_NO_NANOSECOND)
        return exact
    if isinstance(value, str) and (finer := _NANOSECOND_TEXT.search(value)):
        digits = finer[2].rstrip("0")
        if len(digits) > 3:
            raise _CannotError("it is not a whole number of nanoseconds")
        beyond = int(digits.ljust(3, "0"))
        value = f"{value[: finer.start(2)]}{value[finer.end(2) :]}"
    elif isinstance(value, datetime) and (beyond := getattr(value, "nanosecond", 0)):
        value = datetime.combine(value.date(), value.timetz())
    since = _to_timestamp(value) - _EPOCH
    total = ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000 + beyond
    if abs(total) >= INFINITE:
        raise _CannotError(_NO_NANOSECOND)
    return np.datetime64(total, "ns")


def _to_timestamp_tz(value: Any) -> datetime:
    match value:
        case datetime():
            # pandas' Timestamp is a datetime that has nanoseconds as well.
            if getattr(value, "nanosecond", 0):
                raise _CannotError("it is not a whole number of microseconds")
            moment = datetime.combine(value.date(), value.timetz())
        case date():
            moment = datetime.combine(value, time())
        case str():
            moment = datetime.fromisoformat(_instant_text(value))
        case _:
            raise _CannotError("give a datetime or its ISO text")
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC, fold=0)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise _CannotError("in UTC it is outside of the years 1 to 9999") from error


def _to_interval(value: Any) -> Any:
    # Arrow's own class has months apart from days, and so has the one of pandas that a frame has for it.
    kind = type(value).__name__
    if isinstance(value, timedelta) or kind == "MonthDayNano":
        return value
    if kind == "DateOffset" and value.n == 1 and _PARTS_OF_INTERVAL.issuperset(value.kwds):
        return value
    raise _CannotError("give a timedelta, or a MonthDayNano of pyarrow")


def _to_uuid(value: Any) -> UUID:
    match value:
        case UUID():
            return value if type(value) is UUID else UUID(int=value.int)
        case str():
            if not UUID_TEXT.fullmatch(value.strip()):
                raise _CannotError("write it as 8-4-4-4-12 hexadecimal digits")
            return UUID(value.strip())
        case bytes():
            return UUID(bytes=value)
        case _:
            raise _CannotError("give a uuid.UUID or its text")


def _to_list(value: Any, element: SqlType) -> list[Any]:
    if isinstance(value, np.ndarray):
        # Those of nanoseconds would be bare numbers.
        value = value.tolist() if value.dtype.kind != "M" else [None if np.isnat(one) else one for one in value]
    if not isinstance(value, (list, tuple)):
        raise _CannotError("give a list")
    if element.is_float and set(map(type, value)) == {float}:  # such as an embedding, in a tenth of the time
        wide = np.array(value)
        narrow = rounded_floats(wide, element)
        if narrow is not None:
            return list(value) if narrow is wide else narrow.tolist()
    return [None if item is None else _convert(item, element) for item in value]


def rounded_floats(values: npt.NDArray[np.float64], type_: SqlType) -> npt.NDArray[np.floating[Any]] | None:
    """Doubles as values of FLOAT or DOUBLE; themselves for the latter, None if one is too large."""
    if type_.kind is _DOUBLE:
        return values
    with np.errstate(over="ignore"):
        found = values.astype(np.float32)
    return None if (np.isinf(found) & ~np.isinf(values)).any() else found


def _to_struct(value: Any, type_: SqlType) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise _CannotError("give a dict of its fields")
    names = ", ".join(field.name for field in type_.fields)
    given = {name.casefold(): item for name, item in value.items()}
    unknown = set(given) - {field.name.casefold() for field in type_.fields}
    if unknown or len(given) < len(value):
        problem = f"it has no field {min(unknown)}" if unknown else "a field is given twice"
        raise _CannotError(f"{problem}; its fields are {names}")
    fields: dict[str, Any] = {}
    for field in type_.fields:
        item = given.get(field.name.casefold())
        fields[field.name] = None if item is None else _convert(item, field.type)
    return fields


def _to_map(value: Any, key: SqlType, item: SqlType) -> list[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, Mapping) else value
    if key.parts and isinstance(value, Mapping) and value.keys() == {"key", "value"}:
        # As a cursor and `get` return it: such keys are none of a dict.
        keys, items = value["key"], value["value"]
        if not (isinstance(keys, list) and isinstance(items, list) and len(keys) == len(items)):
            raise _CannotError("give its keys and its values as lists of one length")
        pairs = zip(keys, items, strict=True)
    if not isinstance(pairs, Iterable) or isinstance(pairs, str | bytes):
        raise _CannotError("give a dict, or a list of pairs")
    found: list[tuple[Any, Any]] = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise _CannotError("give a dict, or a list of pairs")
        name = None if pair[0] is None else _convert(pair[0], key)
        if name is None:
            raise _CannotError("a key is NULL")
        found.append((name, None if pair[1] is None else _convert(pair[1], item)))
    if len({repr(one) for one, _ in found}) < len(found):
        raise _CannotError("a key is there twice")
    return found


_CONVERTERS: Final[dict[TypeKind, Callable[[Any], Any]]] = {
    TypeKind.BOOLEAN: _to_boolean,
    TypeKind.FLOAT: _to_single,
    TypeKind.DOUBLE: _to_float,
    TypeKind.VARCHAR: _to_text,
    TypeKind.JSON: _to_json,
    TypeKind.BLOB: _to_blob,
    TypeKind.DATE: _to_date,
    TypeKind.TIME: _to_time,
    TypeKind.TIMESTAMP: _to_timestamp,
    TypeKind.TIMESTAMPTZ: _to_timestamp_tz,
    TypeKind.TIMESTAMP_S: _to_whole("seconds", 1_000_000),
    TypeKind.TIMESTAMP_MS: _to_whole("milliseconds", 1000),
    TypeKind.TIMESTAMP_NS: _to_nanoseconds,
    TypeKind.INTERVAL: _to_interval,
    TypeKind.UUID: _to_uuid,
}
