"""Converts an Arrow column to the Arrow form of a column type, each value exactly, or raises a clear error.

This is the vectorised form of :mod:`~secateur.partitioning.types.coerce`, which says what converts: a value that comes
in as Arrow is stored as the same value that comes in as a Python object. Arrow's own kernels are called only where they
do that; everything else is computed here, or value by value by ``coerce``.

====================  ==================================================================================================
data                  column types
====================  ==================================================================================================
whole numbers         integers, DECIMAL, FLOAT and DOUBLE that hold the number; BOOLEAN of 0 and 1
decimals              integers and DECIMALs that hold the number; the nearest FLOAT or DOUBLE
floats                integers that hold the number; DECIMALs with a number of which it is the nearest float, as that
                      of 19.99; DOUBLE; FLOAT by rounding
booleans              BOOLEAN; numbers, as 0 and 1
texts                 VARCHAR; JSON and ENUM, if they are; what the text spells: numbers, BOOLEAN, dates and times in
                      ISO form, UUID
bytes                 BLOB; UUID of 16 bytes
dates, instants       DATE at midnight; TIMESTAMPs of any unit, and TIMESTAMPTZ, of whole numbers of their unit
times of day          TIME of whole microseconds
durations             INTERVAL
lists, maps, structs  the same whose parts convert; fields are matched by name without regard to case, missing ones NULL
lists of one length   ARRAY of that length; any other list is refused
====================  ==================================================================================================

Dictionaries, run ends and views are read as the values that they stand for, and Arrow's JSON as texts. Times without
a zone are read as UTC, times with one are moved to UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import DataError
from secateur.partitioning.types.arrow_layout import in_fixed_lists, list_elements, plain_type, plain_values, with_parts
from secateur.partitioning.types.calendar import INFINITE, instant_text
from secateur.partitioning.types.coerce import coerce, wrong_length
from secateur.partitioning.types.column_type import TEXTUAL, UNIT_TIMESTAMPS, WORD_INTEGERS, SqlType, TypeKind
from secateur.partitioning.types.json_text import check_json
from secateur.partitioning.types.python_column import canonical_column, decimals_of_floats, parse_uuids, wrap_uuids

_Column: TypeAlias = pa.ChunkedArray | pa.Array

_TEXT_SHOWN_MAX: Final = 80
_ALL_INTEGERS: Final = pa.decimal128(20, 0)
_MOMENTS: Final = UNIT_TIMESTAMPS | {TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ, TypeKind.TIME}
_NARROW_BITS: Final = 64
_WHOLE: Final = {
    **dict.fromkeys((TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ), "microseconds"),
    TypeKind.TIMESTAMP_S: "seconds",
    TypeKind.TIMESTAMP_MS: "milliseconds",
    TypeKind.TIMESTAMP_NS: "nanoseconds of the years 1677 to 2262",
}


def cast_column(column: _Column, type_: SqlType, *, name: str, first_row: int = 1) -> pa.ChunkedArray:
    """Convert a column to exactly ``type_.arrow``.

    Messages have the column's name, and the number of a row among the caller's, of which ``first_row`` is the first;
    they count from 1.

    Returns:
        The column itself when it is right already (nothing is copied), else a converted one of the same length. Nulls
        stay nulls.

    Raises:
        DataError: Some value cannot be held, or the types do not convert; ``details`` has ``column``, ``type`` and,
            where one value is to blame, ``row``.
    """
    target = type_.arrow
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    is_checked = type_.contains(TEXTUAL)
    if chunked.type == target and not is_checked:
        return chunked
    convert = _conversion(chunked.type, type_)
    if convert is None:
        place, given, wanted = _unconvertible(chunked.type, type_, name)
        raise DataError(
            f"column {place}: the data are {given}, which is not converted to {wanted.shown} automatically;"
            f" cast the column to {wanted.arrow} first",
            column=name,
            type=str(type_),
        )
    try:
        return pa.chunked_array([convert(chunk) for chunk in chunked.chunks], type=target)
    except _NOT_EXACT as caught:
        row, error = _first_failure(chunked, convert, caught)
        shown = f"{scalar_text(chunked[row])} ({chunked.type})"
        why = f": {error}" if is_checked else _hint(type_, error)
        message = f"column {name}, row {first_row + row}: {shown} does not fit {type_.shown}{why}"
        raise DataError(message, column=name, type=str(type_), row=first_row + row) from error


class _NotExactError(ValueError):
    """A conversion of ours met a value that it would change."""


class _WrongLengthError(ValueError):
    """A list has another number of elements than the ARRAY that it is to be; the message has both."""


_NOT_EXACT: Final = (pa.ArrowInvalid, pa.ArrowNotImplementedError, DataError, OverflowError, ValueError)
"""The errors that a conversion raises for a value that it cannot convert."""


def scalar_text(value: pa.Scalar) -> str:
    """An Arrow value for a message: not too long, and never an error of its own."""
    try:
        text = repr(value.as_py())
    except UnicodeDecodeError as error:
        text = repr(bytes(error.object))
    except (OverflowError, ValueError):
        return instant_text(value) or "a value beyond the range of Python"
    return text if len(text) <= _TEXT_SHOWN_MAX else f"{text[:_TEXT_SHOWN_MAX]}..."


def _hint(type_: SqlType, error: Exception) -> str:
    if isinstance(error, _WrongLengthError):
        return f": {error}"
    if type_.kind in WORD_INTEGERS:
        low, high = type_.integer_range
        return f", which holds whole numbers from {low} to {high}"
    if type_.kind is TypeKind.DECIMAL:
        return f", which holds {type_.precision - type_.scale} digits before and {type_.scale} behind the point"
    if type_.kind is TypeKind.UUID:
        return "; write it as 8-4-4-4-12 hexadecimal digits"
    unit = _WHOLE.get(type_.kind)
    return " without loss" if unit is None else f", which holds whole {unit}"


def _conversion(source: pa.DataType, type_: SqlType) -> Callable[[pa.Array], pa.Array] | None:
    """The function that converts one chunk, or None when the types do not convert.

    The order matters only in that the first match wins.
    """
    target, kind = type_.arrow, type_.kind

    def exact(array: pa.Array) -> pa.Array:
        return array.cast(target)

    def one_by_one(array: pa.Array) -> pa.Array:
        return canonical_column([coerce(value, type_) for value in array.to_pylist()], type_)

    if source == target and not type_.contains(TEXTUAL):
        return lambda array: array
    if pa.types.is_null(source):
        return lambda array: pa.nulls(len(array), target)
    if (plain := plain_type(source)) != source:
        inner = _conversion(plain, type_)
        return None if inner is None else lambda array: inner(plain_values(array))
    if isinstance(source, pa.JsonType):
        of_text = _conversion(source.storage_type, type_)
        return of_text and (lambda array: of_text(array.storage))
    if isinstance(source, pa.Bool8Type):
        of_boolean = _conversion(pa.bool_(), type_)
        return of_boolean and (lambda array: of_boolean(pc.not_equal(array.storage, 0)))
    if type_.is_integer or kind is TypeKind.DECIMAL or type_.is_float or kind is TypeKind.BOOLEAN:
        return _to_number(source, type_, exact, one_by_one)
    is_text = pa.types.is_string(source) or pa.types.is_large_string(source)
    is_day = pa.types.is_timestamp(source) or pa.types.is_date(source)
    match kind:
        case TypeKind.VARCHAR if is_text:
            return exact
        case TypeKind.JSON if is_text:
            return _checked_json
        case TypeKind.ENUM if is_text:
            return _checked_enum(type_)
        case TypeKind.JSON if pa.types.is_primitive(source) and not pa.types.is_temporal(source):
            return one_by_one
        case TypeKind.BLOB if _is_binary(source):
            return exact
        case TypeKind.DATE if is_day:
            return _to_date
        case _ if is_day and pa.types.is_timestamp(target):
            return _timestamps(target)
        case TypeKind.TIME if pa.types.is_time(source):
            return exact
        case _ if is_text and kind in _MOMENTS:
            return one_by_one
        case TypeKind.INTERVAL if pa.types.is_duration(source):
            return lambda array: one_by_one(array.cast(pa.duration("us")))
        case TypeKind.UUID if is_text:
            return parse_uuids
        case TypeKind.UUID if _is_binary(source):
            return wrap_uuids
        case TypeKind.LIST if _is_list(source):
            return _lists(source, type_)
        case TypeKind.ARRAY if _is_list(source):
            return _arrays(source, type_)
        case TypeKind.STRUCT if pa.types.is_struct(source):
            return _structs(source, type_)
        case TypeKind.MAP if pa.types.is_map(source):
            return _maps(source, type_)
        case _:
            return None


_Convert: TypeAlias = Callable[[pa.Array], pa.Array]


def _to_number(source: pa.DataType, type_: SqlType, exact: _Convert, one_by_one: _Convert) -> _Convert | None:
    """As :func:`_conversion`, to a number or BOOLEAN.

    ``exact`` is Arrow's own conversion, and ``one_by_one`` that of Python values.
    """
    is_boolean = type_.kind is TypeKind.BOOLEAN

    def whole(array: pa.Array) -> pa.Array:
        wide = array.cast(pa.float64())
        converted = wide.cast(type_.arrow)
        if not pc.all(pc.equal(converted.cast(pa.float64()), wide), min_count=0).as_py():
            raise _NotExactError
        return converted

    def rounded(array: pa.Array) -> pa.Array:
        wide = array.cast(pa.float64())
        converted = wide.cast(type_.arrow, safe=False)
        if not pc.all(pc.equal(pc.is_inf(converted), pc.is_inf(wide)), min_count=0).as_py():
            raise _NotExactError
        return converted

    def exact_decimal(array: pa.Array) -> pa.Array:
        # Arrow refuses INTEGER to DECIMAL(10,2) because of values that the type could hold; through a wide decimal it
        # looks at the values.
        return array.cast(_ALL_INTEGERS).cast(type_.arrow)

    def exact_float(array: pa.Array) -> pa.Array:
        try:
            return exact(array)
        except pa.ArrowInvalid:  # Arrow takes no number beyond those that are all floats, such as 2**60
            return one_by_one(array)

    def unscaled(array: pa.Array) -> pa.Array:
        # Arrow converts narrow decimals to few integers.
        return exact(array if source.bit_width > _NARROW_BITS else array.cast(pa.decimal128(38, source.scale)))

    if pa.types.is_string(source) or pa.types.is_large_string(source):
        return one_by_one
    if pa.types.is_boolean(source):
        return exact if type_.kind in WORD_INTEGERS else one_by_one
    if pa.types.is_integer(source):
        if type_.is_float:
            return exact_float
        return one_by_one if is_boolean else exact if type_.arrow.id != pa.lib.Type_DECIMAL128 else exact_decimal
    if pa.types.is_decimal(source) and not is_boolean:
        # Arrow's own decimal to double is not the nearest one; the text of a number is read exactly.
        return unscaled if not type_.is_float else lambda array: rounded(array.cast(pa.string()))
    if pa.types.is_floating(source) and not is_boolean:
        if type_.is_float:
            return rounded
        if pa.types.is_decimal(type_.arrow):
            return decimals_of_floats(type_)
        return whole if type_.kind is not TypeKind.UBIGINT else one_by_one  # of which Arrow knows the lower half alone
    return None


def _is_binary(source: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(source)
        or pa.types.is_large_binary(source)
        or pa.types.is_binary_view(source)
        or pa.types.is_fixed_size_binary(source)
    )


def _is_list(source: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(source)
        or pa.types.is_large_list(source)
        or pa.types.is_fixed_size_list(source)
        or pa.types.is_list_view(source)
        or pa.types.is_large_list_view(source)
    )


def _unconvertible(source: pa.DataType, type_: SqlType, place: str) -> tuple[str, pa.DataType, SqlType]:
    """The innermost place at which types do not convert, and the two types there."""
    inner: list[tuple[str, pa.DataType, SqlType]] = []
    if type_.element is not None and _is_list(source):
        inner = [(f"{place}[]", source.value_type, type_.element)]
    elif type_.kind is TypeKind.MAP and pa.types.is_map(source):
        key, value = type_.parts
        inner = [(f"the keys of {place}", source.key_type, key), (f"the values of {place}", source.item_type, value)]
    elif type_.kind is TypeKind.STRUCT and pa.types.is_struct(source) and (given := _fields_given(source, type_)):
        inner = [
            (f"{place}.{field.name}", source.field(position).type, field.type)
            for field, position in zip(type_.fields, given, strict=True)
            if position is not None
        ]
    for where, part, wanted in inner:
        if _conversion(part, wanted) is None:
            return _unconvertible(part, wanted, where)
    return place, source, type_


def _fields_given(source: pa.DataType, type_: SqlType) -> list[int | None] | None:
    """The position in a struct of each field of a STRUCT, None where it is missing.

    None if the struct has a field that the STRUCT lacks, has one twice, or has none of its fields.
    """
    names = [source.field(index).name.casefold() for index in range(source.num_fields)]
    wanted = [field.name.casefold() for field in type_.fields]
    if not names or len(set(names)) < len(names) or not set(names) <= set(wanted):
        return None
    return [names.index(name) if name in names else None for name in wanted]


def _structs(source: pa.DataType, type_: SqlType) -> Callable[[pa.Array], pa.Array] | None:
    given = _fields_given(source, type_)
    if given is None:
        return None
    converts = [
        None if position is None else _conversion(source.field(position).type, field.type)
        for field, position in zip(type_.fields, given, strict=True)
    ]
    if any(convert is None and position is not None for convert, position in zip(converts, given, strict=True)):
        return None
    target = type_.arrow

    def convert_structs(array: pa.Array) -> pa.Array:
        children = array.flatten()  # a field of a NULL is NULL
        return pa.StructArray.from_arrays(
            [
                pa.nulls(len(array), wanted.type)
                if convert is None or position is None
                else convert(children[position])
                for convert, position, wanted in zip(converts, given, target, strict=True)
            ],
            fields=list(target),
            mask=array.is_null() if array.null_count else None,
        )

    return convert_structs


def _maps(source: pa.DataType, type_: SqlType) -> Callable[[pa.Array], pa.Array] | None:
    key, value = type_.parts
    convert_key, convert_value = _conversion(source.key_type, key), _conversion(source.item_type, value)
    if convert_key is None or convert_value is None:
        return None

    def convert_part(part: pa.Array, index: int) -> pa.Array:
        converted = (convert_value if index else convert_key)(part)
        if converted.null_count and not index:
            raise _NotExactError
        return converted

    return lambda array: with_parts(array, convert_part, type_.arrow)


def _lists(source: pa.DataType, type_: SqlType) -> Callable[[pa.Array], pa.Array] | None:
    assert type_.element is not None
    convert = _conversion(source.value_type, type_.element)
    return convert and (lambda array: with_parts(array, lambda part, _: convert(part), type_.arrow))


def _checked_json(array: pa.Array) -> pa.Array:
    for text in array.drop_null().to_pylist():
        check_json(text)
    return array.cast(pa.string())


def _checked_enum(type_: SqlType) -> _Convert:
    values = pa.array(type_.values, pa.string())

    def checked(array: pa.Array) -> pa.Array:
        texts = array.cast(pa.string())
        if not pc.all(pc.is_in(texts.drop_null(), values), min_count=0).as_py():
            raise _NotExactError("it is none of the values")
        return texts

    return checked


def _arrays(source: pa.DataType, type_: SqlType) -> Callable[[pa.Array], pa.Array] | None:
    assert type_.element is not None
    convert = _conversion(source.value_type, type_.element)
    if convert is None:
        return None

    def convert_lists(array: pa.Array) -> pa.Array:
        lengths = pc.list_value_length(array).drop_null()
        wrong = lengths.filter(pc.not_equal(lengths, type_.length))
        if len(wrong):
            raise _WrongLengthError(wrong_length(wrong[0].as_py(), type_))
        return in_fixed_lists(convert(list_elements(array)), array, type_.arrow)

    return convert_lists


def _to_date(array: pa.Array) -> pa.Array:
    moments = _timestamps(pa.timestamp("us"))(array)
    days = moments.cast(pa.date32(), safe=False)
    if not pc.all(pc.equal(days.cast(pa.timestamp("us")), moments), min_count=0).as_py():
        raise _NotExactError
    return days


def _timestamps(target: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    def convert(array: pa.Array) -> pa.Array:
        # Arrow keeps the instant in UTC for any zone: through the bare integer it is only relabelled; a
        # direct cast would convert to local time.
        zone = None if pa.types.is_date(array.type) else array.type.tz
        return array.cast(pa.timestamp(target.unit, zone)).cast(pa.int64()).cast(target)

    def with_infinities(array: pa.Array) -> pa.Array:
        if pa.types.is_date(array.type) or array.type.unit in ("ns", target.unit):
            return convert(array)  # pandas' last nanosecond is a day in 2262
        numbers = array.cast(pa.int64())
        is_infinite = pc.or_(pc.equal(numbers, INFINITE), pc.equal(numbers, -INFINITE))
        if not pc.any(is_infinite).as_py():
            return convert(array)
        finite = convert(pc.if_else(is_infinite, pa.scalar(None, array.type), array))
        return pc.if_else(is_infinite, numbers.cast(target), finite)

    return with_infinities


def _first_failure(
    column: pa.ChunkedArray, convert: Callable[[pa.Array], Any], error: Exception
) -> tuple[int, Exception]:
    """Find the first row that does not convert, and its error, by bisection: a slice fails if one of its rows does.

    ``error`` is that of the whole column.
    """
    start, stop = 0, len(column)
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            for chunk in column.slice(start, middle - start).chunks:
                convert(chunk)
        except _NOT_EXACT as caught:
            stop, error = middle, caught
        else:
            start = middle
    return start, error
