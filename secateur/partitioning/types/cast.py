"""Converts an Arrow column to the Arrow form of a column type, or raises a clear error.

This is the vectorised counterpart of :mod:`~secateur.partitioning.types.coerce`.

Only conversions that lose nothing are made: dictionaries and large strings to plain ones; integers and decimals to any
type that holds every value; floats to integers and decimals where each is exactly representable (pandas turns integers
with a gap into floats); coarser and finer times where no digit is lost; text to UUID; lists and maps whose elements
convert; structs whose fields convert, which are matched by name without regard to case and are NULL where they are
missing.
Times without a zone are read as UTC, times with one are moved to UTC. Decimals and wider floats round to FLOAT and
DOUBLE, since such a column asks for rounding. Everything else is an error that names the column, the first value that
does not fit, and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import DataError
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.nested_parts import list_elements, map_entries
from secateur.partitioning.types.row_numbers import row_numbers

__all__ = ["cast_column", "scalar_text"]

_Column: TypeAlias = pa.ChunkedArray | pa.Array

_UUID_TEXT_BYTES: Final = 36
_DASHES: Final = [8, 13, 18, 23]
_DIGITS: Final = np.array([i for i in range(_UUID_TEXT_BYTES) if i not in _DASHES])
_NOT_HEX: Final = 255
_NIBBLE: Final = np.full(256, _NOT_HEX, dtype=np.uint8)
_NIBBLE[list(b"0123456789abcdef")] = range(16)
_NIBBLE[list(b"ABCDEF")] = range(10, 16)
_TEXT_SHOWN_MAX: Final = 80
_ALL_INTEGERS: Final = pa.decimal128(20, 0)


def cast_column(column: _Column, type_: SqlType, *, name: str) -> pa.ChunkedArray:
    """Convert a column to exactly ``type_.arrow``.

    Args:
        column: Any Arrow column.
        type_: The type wanted.
        name: The column's name, for messages.

    Returns:
        The column itself when it is right already (nothing is copied), else a converted one of the same length. Nulls
        stay nulls.

    Raises:
        DataError: Some value cannot be held, or the types do not convert; ``details`` has ``column``, ``type`` and,
            where one value is to blame, ``row``.
    """
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    target = type_.arrow
    if chunked.type == target:
        return chunked
    convert = _conversion(chunked.type, type_)
    if convert is None:
        place, given, wanted = _unconvertible(chunked.type, type_, name)
        raise DataError(
            f"column {place}: the data are {given}, which is not converted to {wanted} automatically;"
            f" cast the column to {wanted.arrow} first",
            column=name,
            type=str(type_),
        )
    try:
        return pa.chunked_array([convert(chunk) for chunk in chunked.chunks], type=target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, _NotExactError) as error:
        row = _first_failure(chunked, convert)
        message = (
            f"column {name}, row {row}: {scalar_text(chunked[row])} ({chunked.type}) does not fit {type_}{_hint(type_)}"
        )
        raise DataError(message, column=name, type=str(type_), row=row) from error


class _NotExactError(Exception):
    """A conversion of ours met a value that it would change."""


def scalar_text(value: pa.Scalar) -> str:
    """An Arrow value for a message: not too long, and never an error of its own."""
    try:
        text = repr(value.as_py())
    except (OverflowError, ValueError):
        return "a value beyond the range of Python"
    return text if len(text) <= _TEXT_SHOWN_MAX else f"{text[:_TEXT_SHOWN_MAX]}..."


def _hint(type_: SqlType) -> str:
    if type_.is_integer and type_.kind is not TypeKind.HUGEINT:
        low, high = type_.integer_range
        return f", which holds whole numbers from {low} to {high}"
    match type_.kind:
        case TypeKind.DECIMAL:
            return f", which holds {type_.precision - type_.scale} digits before and {type_.scale} behind the point"
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            return ", which holds whole microseconds"
        case TypeKind.UUID:
            return "; write it as 8-4-4-4-12 hexadecimal digits"
        case _:
            return " without loss"


def _conversion(source: pa.DataType, type_: SqlType) -> Callable[[pa.Array], pa.Array] | None:
    """The function that converts one chunk, or None when the types do not convert.

    The order matters only in that the first match wins.
    """
    target = type_.arrow
    numeric = type_.is_integer or type_.kind is TypeKind.DECIMAL

    def exact(array: pa.Array) -> pa.Array:
        return array.cast(target)

    def exact_both_ways(array: pa.Array) -> pa.Array:
        converted = array.cast(target)
        back = converted.cast(source)
        if not pc.all(pc.equal(back, array), min_count=0).as_py():
            raise _NotExactError
        return converted

    def rounded(array: pa.Array) -> pa.Array:
        wide = array.cast(pa.float64())
        converted = wide.cast(target, safe=False)
        if not pc.all(pc.equal(pc.is_inf(converted), pc.is_inf(wide)), min_count=0).as_py():
            raise _NotExactError
        return converted

    def exact_decimal(array: pa.Array) -> pa.Array:
        # Arrow refuses INTEGER to DECIMAL(10,2) because of values that the type could hold; through a wide decimal it
        # looks at the values.
        return array.cast(_ALL_INTEGERS).cast(target)

    if source == target:
        return lambda array: array
    if pa.types.is_null(source):
        return lambda array: pa.nulls(len(array), target)
    if pa.types.is_dictionary(source):
        plain = _conversion(source.value_type, type_)
        return None if plain is None else lambda array: plain(array.dictionary_decode())
    if type_.kind is TypeKind.DECIMAL and pa.types.is_integer(source):
        return exact_decimal
    if numeric and (pa.types.is_integer(source) or pa.types.is_decimal(source)):
        return exact
    if type_.is_integer and type_.kind is not TypeKind.HUGEINT and pa.types.is_boolean(source):
        return exact
    if numeric and pa.types.is_floating(source):
        return exact_both_ways
    if type_.is_float and (pa.types.is_floating(source) or pa.types.is_decimal(source)):
        return rounded
    if type_.is_float and pa.types.is_integer(source):
        return exact
    match type_.kind:
        case TypeKind.VARCHAR if pa.types.is_large_string(source) or pa.types.is_string_view(source):
            return exact
        case TypeKind.BLOB if _is_binary(source):
            return exact
        case TypeKind.DATE if pa.types.is_date(source) or pa.types.is_timestamp(source):
            return _to_date
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ if pa.types.is_timestamp(source) or pa.types.is_date(source):
            return _timestamps(target)
        case TypeKind.TIME if pa.types.is_time(source):
            return exact
        case TypeKind.UUID if (
            pa.types.is_string(source) or pa.types.is_large_string(source) or pa.types.is_string_view(source)
        ):
            return _parse_uuids
        case TypeKind.UUID if _is_binary(source):
            return _wrap_uuids
        case TypeKind.LIST if _is_list(source):
            return _lists(source, type_)
        case TypeKind.STRUCT if pa.types.is_struct(source):
            return _structs(source, type_)
        case TypeKind.MAP if pa.types.is_map(source):
            return _maps(source, type_)
        case _:
            return None


def _is_binary(source: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(source)
        or pa.types.is_large_binary(source)
        or pa.types.is_binary_view(source)
        or pa.types.is_fixed_size_binary(source)
    )


def _is_list(source: pa.DataType) -> bool:
    return bool(pa.types.is_list(source) or pa.types.is_large_list(source) or pa.types.is_fixed_size_list(source))


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

    def convert_maps(array: pa.Array) -> pa.Array:
        offsets, keys, items = map_entries(array)
        converted = convert_key(keys)
        if converted.null_count:
            raise _NotExactError
        return pa.MapArray.from_arrays(
            offsets,
            converted,
            convert_value(items),
            type=type_.arrow,
            mask=array.is_null() if array.null_count else None,
        )

    return convert_maps


def _lists(source: pa.DataType, type_: SqlType) -> Callable[[pa.Array], pa.Array] | None:
    assert type_.element is not None
    convert = _conversion(source.value_type, type_.element)
    if convert is None:
        return None

    def convert_lists(array: pa.Array) -> pa.Array:
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
        offsets = row_numbers(np.concatenate(([0], np.cumsum(lengths)))).cast(pa.int32())  # refuses what is too long
        return pa.ListArray.from_arrays(
            offsets, convert(list_elements(array)), type=type_.arrow, mask=array.is_null() if array.null_count else None
        )

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
        return array.cast(pa.timestamp("us", zone)).cast(pa.int64()).cast(target)

    return convert


def _wrap_uuids(array: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.uuid(), array.cast(pa.binary()).cast(pa.binary(16)))


def _parse_uuids(array: pa.Array) -> pa.Array:
    """Parse 8-4-4-4-12 text without a Python object per row."""
    present = array.drop_null().cast(pa.large_binary())
    if not pc.all(pc.equal(pc.binary_length(present), _UUID_TEXT_BYTES), min_count=0).as_py():
        raise _NotExactError
    raw: npt.NDArray[np.uint8] = np.empty((0, 16), dtype=np.uint8)
    if len(present):
        _, offsets, data = present.buffers()
        start = int(np.frombuffer(offsets, dtype=np.int64, count=1, offset=8 * present.offset)[0])
        text = np.frombuffer(data, dtype=np.uint8, count=len(present) * _UUID_TEXT_BYTES, offset=start).reshape(
            -1, _UUID_TEXT_BYTES
        )
        nibbles = _NIBBLE[text[:, _DIGITS]]
        if (nibbles == _NOT_HEX).any() or (text[:, _DASHES] != ord("-")).any():
            raise _NotExactError
        raw = (nibbles[:, 0::2] << np.uint8(4)) | nibbles[:, 1::2]
    return pa.ExtensionArray.from_storage(pa.uuid(), _fixed_binary(raw, array))


def _fixed_binary(raw: npt.NDArray[np.uint8], like: pa.Array) -> pa.Array:
    """16-byte values, one per non-null row of ``like``, as an array with nulls where ``like`` has them."""
    values = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), len(raw), [None, pa.py_buffer(np.ascontiguousarray(raw).tobytes())]
    )
    if like.null_count == 0:
        return values
    valid = like.is_valid().to_numpy(zero_copy_only=False)
    return values.take(pa.array(np.cumsum(valid) - 1, mask=~valid))


def _first_failure(column: pa.ChunkedArray, convert: Callable[[pa.Array], Any]) -> int:
    """Find the first row that does not convert, by bisection: a slice fails if one of its rows does."""
    start, stop = 0, len(column)
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            for chunk in column.slice(start, middle - start).chunks:
                convert(chunk)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, _NotExactError):
            stop = middle
        else:
            start = middle
    return start
