"""Converts the Arrow data of DuckDB's lossless export to the Arrow form of our types.

DuckDB offers two exports. The lossy one writes UUID as text and silently wraps a HUGEINT of more than 38 digits to a
wrong number. The lossless one keeps both as 16 raw bytes, which become ``pa.uuid()`` and ``decimal128(38, 0)`` (the
same bytes under another type) without cost; its only cost is BOOLEAN, a byte per value that has to be packed.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from secateur.errors import DataError, InternalError
from secateur.partitioning.types.held_values import check_held
from secateur.partitioning.types.nested_parts import with_parts

_HUGEINT: Final = pa.decimal128(38, 0)
_DIGITS_HIGH: Final = 10**38 >> 64
"""Upper 8 bytes of 10**38, the first integer that has 39 digits."""


def conform(table: pa.Table, types: list[pa.DataType], names: list[str]) -> pa.Table:
    """Give the columns of an exported table their names and delivered types.

    Args:
        table: The result of DuckDB's lossless export, columns in order.
        types: The delivered Arrow type of each column (``result_types.arrow_type``).
        names: The name of each column; names may repeat.

    Returns:
        The same rows. Columns whose type is already right are passed on without a copy.

    Raises:
        DataError: A HUGEINT has more than 38 digits, or a TIME is the end of a day.
    """
    for column, name in zip(table.columns, names, strict=True):
        check_held(column, name)
    columns = [
        (
            column
            if column.type.equals(wanted)
            else pa.chunked_array([_converted(chunk, wanted) for chunk in column.chunks], wanted)
        )
        for column, wanted in zip(table.columns, types, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=names)


def _converted(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    given = array.type
    if given.equals(wanted):
        return array
    if isinstance(given, pa.Bool8Type):
        return array.storage.cast(pa.bool_())
    if isinstance(given, pa.OpaqueType) and given.type_name == "hugeint":
        return _decimal_of_hugeint(array.storage)
    if pa.types.is_map(given):
        return with_parts(array, lambda part, at: _converted(part, (wanted.key_type, wanted.item_type)[at]), wanted)
    if pa.types.is_nested(given):
        return with_parts(array, lambda part, at: _converted(part, wanted.field(at).type), wanted)
    if pa.types.is_timestamp(given) or pa.types.is_null(given):
        return array.cast(wanted)
    raise InternalError(
        f"DuckDB exported {given} where {wanted} was expected; this is a bug, please report it with the statement"
    )


def _decimal_of_hugeint(storage: pa.FixedSizeBinaryArray) -> pa.Array:
    """Read 16-byte little-endian integers as ``decimal128(38, 0)``.

    The bytes stay the same, once none of them is found to have more than 38 digits.
    """
    validity, data = storage.buffers()
    count, offset = len(storage), storage.offset
    if data is None:
        return pa.nulls(count, _HUGEINT)
    halves = np.frombuffer(data, dtype=np.dtype([("low", "<u8"), ("high", "<i8")]), count=count, offset=offset * 16)
    high = halves["high"]
    suspects = np.flatnonzero((high >= _DIGITS_HIGH) | (high <= -_DIGITS_HIGH - 1))
    for index in suspects:
        value = (int(high[index]) << 64) + int(halves["low"][index])
        if abs(value) >= 10**38 and storage[int(index)].is_valid:
            raise DataError(
                f"HUGEINT value {value} of the result has more than 38 digits; cast it to DOUBLE or VARCHAR"
            )
    return pa.Array.from_buffers(_HUGEINT, count, [validity, data], offset=offset)
