"""Values of SQL in JSON, in both directions: rows of answers, and parameters of requests.

JSON has numbers, text, booleans, null, arrays and objects. Every type of SQL has one encoding, whatever the value:

- BOOLEAN is a boolean; integers up to 64 bits are numbers without a fraction, so a reader has to keep 64 bits.
- HUGEINT, UHUGEINT and DECIMAL are text with all digits: ``"12.50"``.
- FLOAT and DOUBLE are numbers, except for ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``.
- DATE, TIME and TIMESTAMPs are text of ISO 8601, ``"2024-01-31T12:00:00.000001"``; TIMESTAMP_NS has nine digits behind
  the seconds where the server writes it; TIMESTAMP WITH TIME ZONE ends with
  ``Z``; INTERVAL is a duration with months of 30 days, ``"P1DT2H"`` being ``"P1DT7200S"``.
- UUID is text; JSON is text, as it is stored; BLOB is text in base 64.
- Lists are arrays, STRUCTs objects, rows without names arrays, and MAPs arrays of ``[key, value]``.

A parameter of a type that JSON lacks is an object ``{"type": "DECIMAL", "value": "12.50"}`` with the same encoding, but
for STRUCTs and MAPs, whose parts are parameters again.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from secateur.errors import ParameterError
from secateur.partitioning.types.coerce import FINER_TEXT, check_finite
from secateur.partitioning.types.result_type import Constructor, ResultType, parse_result_type

Encode = Callable[[Any], Any]

_DEPTH_MAX: Final = 16
_DURATION: Final = re.compile(r"(-?)P(?:(\d{1,9})D)?(?:T(?:(\d{1,12})(?:\.(\d{1,6}))?S)?)?")
_EXACT_TEXT: Final = frozenset({"HUGEINT", "UHUGEINT"})


@lru_cache(maxsize=1024)
def json_value_of(type_text: str) -> Encode:
    """The function that encodes the Python values of a column, as a cursor returns them; NULL is null.

    The type of the column is written as ``cursor.description`` has it.
    """
    return _encoder(parse_result_type(type_text))


def _encoder(kind: ResultType) -> Encode:
    parts = [_encoder(part) for part in kind.parts]
    match kind.constructor:
        case Constructor.SCALAR:
            return _text_or_null if kind.text in _EXACT_TEXT else _scalar
        case Constructor.LIST:
            element = parts[0]
            return lambda items: None if items is None else [element(item) for item in items]
        case Constructor.STRUCT:
            of_field = dict(zip(kind.unquoted_names, parts, strict=True))
            return lambda value: None if value is None else {name: of_field[name](item) for name, item in value.items()}
        case Constructor.TUPLE:
            return lambda value: (
                None if value is None else [part(item) for part, item in zip(parts, value, strict=True)]
            )
        case Constructor.MAP:
            of_key, of_item = parts
            is_nested = kind.parts[0].constructor is not Constructor.SCALAR

            def of_map(value: Mapping[Any, Any] | None) -> list[list[Any]] | None:
                if value is None:
                    return None
                pairs = zip(value["key"], value["value"], strict=True) if is_nested else value.items()
                return [[of_key(key), of_item(item)] for key, item in pairs]

            return of_map


def _text_or_null(value: Any) -> str | None:
    return None if value is None else str(value)


def _scalar(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _NOT_FINITE.get(value, "NaN")
        case Decimal():
            return format(value, "f")
        case datetime() if value.tzinfo is not None:
            moment = _in_utc(value)
            return moment.replace(tzinfo=None).isoformat() + "Z" if moment.tzinfo is UTC else moment.isoformat()
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return _duration(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode("ascii")
        case list() | tuple():  # rows of jobs may have types that SQL has no name for
            return [_scalar(item) for item in value]
        case Mapping():
            return {str(key): _scalar(item) for key, item in value.items()}
        case _:
            return str(value)


_NOT_FINITE: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def _duration(value: timedelta) -> str:
    """ISO 8601, with the sign in front that ISO 8601-2 adds."""
    sign, whole = ("-", -value) if value < timedelta(0) else ("", value)
    fraction = f".{whole.microseconds:06}" if whole.microseconds else ""
    return f"{sign}P{whole.days}DT{whole.seconds}{fraction}S"


def parameters_of(params: Sequence[Any] | Mapping[str, Any]) -> list[Any] | dict[str, Any]:
    """The parameters of a request as the plain values of :meth:`secateur.Connection.execute`.

    Raises:
        ParameterError: A value that is none, such as an object without ``type`` and ``value``; names its place.
    """
    if isinstance(params, Mapping):
        return {_text(name, f"${name!a}"): _parameter(value, f"${name}", 0) for name, value in params.items()}
    return [_parameter(value, str(position), 0) for position, value in enumerate(params, 1)]


def _parameter(value: Any, where: str, depth: int) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return _text(value, where)
        case list() if depth < _DEPTH_MAX:
            return [_parameter(item, where, depth + 1) for item in value]
        case {"type": "STRUCT", "value": dict() as fields, **rest} if not rest and depth < _DEPTH_MAX:
            return {_text(name, where): _parameter(item, where, depth + 1) for name, item in fields.items()}
        case {"type": "MAP", "value": list() as entries, **rest} if not rest and depth < _DEPTH_MAX:
            pairs = [_entry(entry, where, depth + 1) for entry in entries]
            if len(found := dict(pairs)) < len(pairs):
                raise ParameterError(f"parameter {where} is a MAP with one key twice: give each once", position=where)
            return found
        case {"type": str() as kind, "value": inner, **rest} if not rest:
            return _typed(kind, inner, where)
        case _:
            raise ParameterError(
                f"parameter {where} is no value: pass null, a boolean, a number, text, a list of them, or an object"
                ' {"type": "DATE", "value": "2024-01-31"}',
                position=where,
            )


def _entry(entry: Any, where: str, depth: int) -> tuple[Any, Any]:
    match entry:
        case [(None | bool() | int() | float() | str() | dict()) as key, item]:
            of_key = _parameter(key, where, depth)
            if not isinstance(of_key, dict):
                return of_key, _parameter(item, where, depth)
        case _:
            pass
    raise ParameterError(
        f"parameter {where} is a MAP with the entry {entry!a}, which is no [key, value]", position=where
    )


def _text(value: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(f"parameter {where} has half of a surrogate pair, which no text has ({error})") from error
    return value


def _typed(kind: str, value: Any, where: str) -> Any:
    read = _READ.get(kind.upper())
    if kind.upper() in _NESTED and value is not None:
        raise ParameterError(
            f"parameter {where} has the type {kind.upper()}, whose value is {_NESTED[kind.upper()]}", position=where
        )
    if read is None and kind.upper() not in _NESTED:
        raise ParameterError(
            f"parameter {where} has the type {kind!a}; the types are {', '.join(PARAMETER_TYPES)}", position=where
        )
    if value is None or read is None:
        return None
    try:
        return read(_text(value, where) if isinstance(value, str) else value)
    except (ValueError, TypeError, ArithmeticError, binascii.Error) as error:
        raise ParameterError(f"parameter {where}: {value!a} is no {kind.upper()} ({error})", position=where) from error


def _as_text(read: Callable[[str], Any]) -> Callable[[Any], Any]:
    def of(value: Any) -> Any:
        if not isinstance(value, str):
            raise TypeError("it has to be text")
        return read(value)

    return of


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError("it has to be a whole number, or its digits as text")
    return int(value)


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError("it has to be a number, or its text")
    found = float(value)
    check_finite(found, value)
    return found


def _whole(text: str) -> str:
    if FINER_TEXT.search(text):
        raise ValueError("it has a fraction of a microsecond")
    return text


def _naive(text: str) -> datetime:
    moment = datetime.fromisoformat(_whole(text))
    if moment.tzinfo is not None:
        raise ValueError("it names a time zone; the type for that is TIMESTAMP WITH TIME ZONE")
    return moment


def _aware(text: str) -> datetime:
    moment = datetime.fromisoformat(_whole(text))
    return _in_utc(moment) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _in_utc(moment: datetime) -> datetime:
    """The same instant in UTC; as it is, where Python's calendar has it in its own zone alone."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return moment


def _interval(text: str) -> timedelta:
    found = _DURATION.fullmatch(text)
    if found is None or text.rstrip("T").endswith("P"):
        raise ValueError("it has to have the form P1DT2.5S")
    sign, days, seconds, fraction = found.groups()
    value = timedelta(int(days or 0), int(seconds or 0), int((fraction or "").ljust(6, "0")))
    return -value if sign else value


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "BIGINT": _integer,
    "BLOB": _as_text(lambda text: base64.b64decode(text, validate=True)),
    "DATE": _as_text(date.fromisoformat),
    "DECIMAL": _as_text(Decimal),
    "DOUBLE": _double,
    "HUGEINT": _integer,
    "INTERVAL": _as_text(_interval),
    "TIME": _as_text(lambda text: time.fromisoformat(_whole(text))),
    "TIMESTAMP": _as_text(_naive),
    "TIMESTAMP WITH TIME ZONE": _as_text(_aware),
    "UUID": _as_text(UUID),
    "VARCHAR": _as_text(str),
}

_NESTED: Final = {"STRUCT": "an object of parameters", "MAP": "an array of [key, value], parameters both"}

PARAMETER_TYPES: Final = tuple(sorted([*_READ, *_NESTED]))
"""The types of parameters that are given as an object."""


def json_parameters(params: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any]:
    """Plain values, as :func:`secateur.client.dbapi.parameters.plain_values` makes them, in JSON.

    :func:`parameters_of` is the way back.
    """
    if isinstance(params, dict):
        return {name: _json_parameter(value) for name, value in params.items()}
    return [_json_parameter(value) for value in params]


def _json_parameter(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if -(2**63) <= value < 2**63 else {"type": "HUGEINT", "value": str(value)}
        case float():
            return value if math.isfinite(value) else {"type": "DOUBLE", "value": _scalar(value)}
        case list():
            return [_json_parameter(item) for item in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {"type": "STRUCT", "value": {key: _json_parameter(item) for key, item in value.items()}}
        case dict():
            entries = [[_json_parameter(key), _json_parameter(item)] for key, item in value.items()]
            return {"type": "MAP", "value": entries}
        case datetime():  # a date as well, so it comes first
            kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMP WITH TIME ZONE"
        case _:
            kind = _TYPE_OF[type(value)]
    return {"type": kind, "value": _scalar(value)}


_TYPE_OF: Final[dict[type, str]] = {
    Decimal: "DECIMAL",
    bytes: "BLOB",
    date: "DATE",
    time: "TIME",
    timedelta: "INTERVAL",
    UUID: "UUID",
}
