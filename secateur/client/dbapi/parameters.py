"""Statement parameters: from a user's values to a list of plain values in the order of the statement."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from secateur.drawing.quantity import count_text
from secateur.errors import ParameterError
from secateur.partitioning.types.coerce import PLAIN_CLASSES
from secateur.partitioning.types.python_column import without_missing
from secateur.protocol.statements import SelectStatement, as_texts

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""Values for ``?`` and ``$1`` in order, or for ``$name`` by name."""

_PLAIN: Final = PLAIN_CLASSES | {type(None)}
IN_ORDER: Final = frozenset({list, tuple})
_WORD_BYTES: Final = 8
"""The bytes of the widest number of numpy that is one of Python."""
_FINER: Final = "has a fraction of a microsecond: round it, or pass its text and CAST that to TIMESTAMP_NS"
_DATE_UNITS: Final = frozenset({"Y", "M", "W", "D"})
_UNITS_WITHOUT_LENGTH: Final = frozenset({"Y", "M", "generic"})
_BASES: Final[dict[type, Callable[[Any], Any]]] = {
    int: int,
    float: float,
    str: str.__str__,  # str() asks a class of the user's
    bytes: bytes,
    Decimal: Decimal,
}


def plain_values(params: Parameters) -> list[Any] | dict[str, Any]:
    """Check parameters and convert every value to the plain Python value that is sent.

    The partition function sees the same value on both sides.

    numpy and pyarrow scalars become the value they hold, enum members their value, tuples lists, mappings dicts, and
    subclasses such as pandas' Timestamp their base. A dict is a STRUCT, or a MAP where the statement wants one.

    Raises:
        ParameterError: A value of a type that no column has, or that would have to be changed, named by position or
            name; or the parameters are neither a sequence nor a mapping, or are inside of themselves.
    """
    if type(params) in IN_ORDER and _PLAIN.issuperset(map(type, params)):  # nearly always
        return list(params)
    try:
        return _plain_values(params)
    except RecursionError as error:
        raise ParameterError("a parameter is a list or dict that is inside of itself, or nested too deeply") from error


def _plain_values(params: Parameters) -> list[Any] | dict[str, Any]:
    if isinstance(params, (list, tuple)):
        return [
            value if type(value) in _PLAIN else plain_value(value, str(position))
            for position, value in enumerate(params, 1)
        ]
    if isinstance(params, Mapping):
        return {_name(name): plain_value(value, f"${name}") for name, value in params.items()}
    if params is None:
        return []
    if isinstance(params, np.ndarray) or (
        isinstance(params, Sequence) and not isinstance(params, (str, bytes, bytearray, memoryview))
    ):
        return [plain_value(value, str(position)) for position, value in enumerate(params, 1)]
    raise ParameterError(
        f"parameters have to be a sequence, such as [value], or a mapping of names, not a {type(params).__name__}"
    )


def values_of(statement: SelectStatement, params: list[Any] | dict[str, Any], started: float) -> list[Any]:
    """The values that a member is given for a statement, in order, of parameters from :func:`plain_values`.

    ``started`` is the time at which the statement starts, in seconds since 1970; the same for each attempt at it.

    Raises:
        ParameterError: They are not those of the statement.
        DataError: One is no value of the column that it is for.
    """
    hidden = statement.hidden
    if statement.reads_clock:
        values = ordered_values(params, statement.parameter_count - len(hidden) - 1, statement.parameter_names)
        values = [*values, *hidden, datetime.fromtimestamp(started, UTC)]
    else:
        values = ordered_values(params, statement.parameter_count - len(hidden), statement.parameter_names)
        values = [*values, *hidden] if hidden else values
    return [*as_texts(values, statement.textual)] if statement.textual else values


def ordered_values(params: list[Any] | dict[str, Any], count: int, names: Sequence[str]) -> list[Any]:
    """Parameters from :func:`plain_values` in the order of a statement, which has names if they are named.

    Raises:
        ParameterError: Too many, too few, or others than the statement has.
    """
    if isinstance(params, list):
        if names and count:
            raise ParameterError(
                f"the statement has named parameters ({', '.join(f'${name}' for name in names)}): pass a mapping of"
                " names to values"
            )
        if len(params) != count:
            raise ParameterError(
                f"the statement has {count_text(count, 'parameter')}, {len(params)} were given",
                expected=count,
                given=len(params),
            )
        return params
    if not params and not count:
        return []
    if not names:
        raise ParameterError(
            f"the statement has {count_text(count, 'parameter')} without names: pass a sequence of values, not a"
            " mapping",
            expected=count,
            given=len(params),
        )
    by_folded = {name.casefold(): value for name, value in params.items()}
    missing = [name for name in names if name.casefold() not in by_folded]
    unknown = sorted(by_folded.keys() - {name.casefold() for name in names})
    if missing or unknown:
        said = [
            f"{label} {', '.join(f'${name}' for name in group)}"
            for label, group in (("missing", missing), ("not in the statement:", unknown))
            if group
        ]
        raise ParameterError(
            f"the statement has the parameters {', '.join(f'${name}' for name in names)}; {'; '.join(said)}",
            expected=count,
            given=len(params),
        )
    return [by_folded[name.casefold()] for name in names]


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise ParameterError(
            f"parameter names have to be text, not {name!r} ({type(name).__name__}); for $1, $2 pass a sequence"
        )
    return name.removeprefix("$")


def plain_value(value: Any, where: str) -> Any:
    """One parameter, as :func:`plain_values` converts it; messages have its position or name, ``where``.

    Raises:
        ParameterError: No column holds it, or it would have to be changed.
    """
    if type(value) in _PLAIN:
        return value
    match value:
        case enum.Enum():
            return plain_value(value.value, where)
        case np.datetime64() | np.timedelta64():
            return _instant(value, where)
        case np.floating() if isinstance(value.item(), np.generic):  # a long double, whose item is itself
            if (plain := float(value)) != value and not np.isnan(value):
                raise _refused(where, f"({value!r}) has more digits than a DOUBLE: convert it to float")
            return plain
        case np.generic() if not isinstance(plain := value.item(), np.generic):
            return plain_value(plain, where)
        case pa.Scalar():
            try:
                return plain_value(value.as_py(), where)
            except (OverflowError, ValueError) as error:
                raise _refused(where, f"has no value of Python ({error})") from error
        case datetime() if value != value:  # pandas' NaT is a datetime that does not equal itself
            return None
        case datetime() if not getattr(value, "nanosecond", 0):
            return datetime.combine(value.date(), value.timetz())
        case datetime():
            raise _refused(where, f"({value!r}) {_FINER}")
        case date():
            return date(value.year, value.month, value.day)
        case timedelta() if not getattr(value, "nanoseconds", 0):
            return timedelta(value.days, value.seconds, value.microseconds)
        case timedelta():
            raise _refused(where, f"({value!r}) has a fraction of a microsecond: round it to microseconds")
        case pa.MonthDayNano():
            if value.months or value.nanoseconds % 1000:
                raise _refused(where, f"({value!r}) has months or nanoseconds: write an INTERVAL in SQL")
            return timedelta(value.days, microseconds=value.nanoseconds // 1000)
        case bytearray() | memoryview():
            return bytes(value)
        case np.ndarray() if value.dtype.kind in "biuf" and value.itemsize <= _WORD_BYTES:
            return value.tolist()  # as its elements one by one, which takes a hundred times as long
        case np.ndarray() if not value.ndim:
            return plain_value(value[()], where)
        case list() | tuple() | np.ndarray():
            return [plain_value(item, where) for item in value]
        case Mapping():
            return {plain_value(key, where): plain_value(item, where) for key, item in value.items()}
        case _:
            for base, convert in _BASES.items():
                if isinstance(value, base):
                    return convert(value)
            if without_missing([value])[0] is None:
                return None
            kinds = (
                "None, bool, int, float, str, bytes, Decimal, date, time, datetime, timedelta, UUID, or lists and dicts"
                " of them"
            )
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise _refused(where, f"is a {kind}, which no column holds: pass {kinds}")


def _instant(value: np.datetime64 | np.timedelta64, where: str) -> Any:
    if np.isnat(value):
        return None
    is_instant, given = isinstance(value, np.datetime64), np.datetime_data(value.dtype)[0]
    if not is_instant and given in _UNITS_WITHOUT_LENGTH:
        raise _refused(where, f"({value!r}) has no fixed length: pass a timedelta, or write an INTERVAL in SQL")
    # As in DuckDB, an instant that is counted in days or more is a DATE.
    unit = "D" if is_instant and given in _DATE_UNITS else "us"
    converted = value.astype(f"{value.dtype.kind}8[{unit}]")
    if converted != value:
        raise _refused(where, f"({value!r}) {_FINER}")
    plain: Any = converted.item()
    if isinstance(plain, int):
        raise _refused(where, f"({value!r}) is outside of the calendar, which ends in the year 9999")
    return plain


def _refused(where: str, why: str) -> ParameterError:
    return ParameterError(f"parameter {where} {why}", position=where)
