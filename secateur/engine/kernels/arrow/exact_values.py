"""Python values that are exact values of a SQL type, so that comparing them with a column needs no cast.

Also integers and decimals as DOUBLE, where every way of converting gives the same one.
"""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa

from secateur.partitioning.types.column_type import WORD_INTEGERS, SqlType, TypeKind
from secateur.partitioning.types.decimals import DOUBLE_INTEGER_MAX, FLOAT_INTEGER_MAX, fits

LISTED_CLASSES: Final[dict[TypeKind, type]] = {
    **dict.fromkeys(WORD_INTEGERS, int),
    TypeKind.VARCHAR: str,
    TypeKind.DATE: dt.date,
}
"""The Python class of a kind's values, for kinds whose lists need no check of each value: Arrow itself refuses a value
out of range.
"""


class InexactError(Exception):
    """The arrow kernel cannot promise DuckDB's answer for these values; never leaves the kernel."""


def compute_type(type_: SqlType) -> pa.DataType:
    """Return the Arrow type in which the kernel computes: that of the column, but raw bytes for UUID.

    Arrow has no functions for its UUID type.
    """
    return pa.binary(16) if type_.kind is TypeKind.UUID else type_.arrow


def exact_scalar(value: Any, type_: SqlType) -> pa.Scalar:
    """The Arrow scalar of a value in the :func:`compute_type` of ``type_``.

    Raises:
        InexactError: ``value`` is NULL, NaN, of another class than the type's own, or outside its range.
    """
    if not belongs(value, type_):
        raise InexactError(f"{value!r} is not a {type_} as it is")
    if type_.kind is TypeKind.UUID:
        value = value.bytes
    elif type_.kind is TypeKind.HUGEINT:
        value = Decimal(value)
    elif type_.is_float:
        value = float(value)
    try:
        return pa.scalar(value, compute_type(type_))
    except (
        pa.ArrowException,
        ValueError,
        OverflowError,
    ) as error:  # a lone surrogate, a year that 64-bit microseconds cannot hold
        raise InexactError(f"{value!r} is not a {type_}: {error}") from error


def exact_array(values: Any, type_: SqlType) -> pa.Array:
    """Return the Arrow array of a list of one or more values, each as in :func:`exact_scalar`.

    The type must be one of :data:`LISTED_CLASSES`.

    Raises:
        InexactError: It is not a list, has no elements, or one of them is not exactly of the type.
    """
    if type(values) is not list or set(map(type, values)) != {LISTED_CLASSES[type_.kind]}:
        raise InexactError(f"the parameter is no list of {type_} values alone")
    try:
        return pa.array(values, compute_type(type_))
    except (pa.ArrowException, ValueError, OverflowError) as error:  # a lone surrogate, a number that is out of range
        raise InexactError(f"the list has a value that is not a {type_}: {error}") from error


def belongs(value: Any, type_: SqlType) -> bool:
    """Whether a value has the type's own class and range; ``type(...) is`` excludes bool for int and the like."""
    match type_.kind:
        case TypeKind.HUGEINT:
            return type(value) is int and abs(value) < 10**38
        case (
            TypeKind.TINYINT
            | TypeKind.SMALLINT
            | TypeKind.INTEGER
            | TypeKind.BIGINT
            | TypeKind.UTINYINT
            | TypeKind.USMALLINT
            | TypeKind.UINTEGER
            | TypeKind.UBIGINT
        ):
            low, high = type_.integer_range
            return type(value) is int and low <= value <= high
        case TypeKind.FLOAT | TypeKind.DOUBLE:
            # DuckDB rounds a larger integer that meets a FLOAT column.
            return (type(value) is float and value == value) or (type(value) is int and abs(value) <= FLOAT_INTEGER_MAX)
        case TypeKind.DECIMAL:
            return (type(value) is int or (type(value) is Decimal and value.is_finite())) and fits(
                value, type_.precision, type_.scale
            )
        case TypeKind.BOOLEAN:
            return type(value) is bool
        case TypeKind.VARCHAR:
            return type(value) is str
        case TypeKind.BLOB:
            return type(value) is bytes
        case TypeKind.DATE:
            return type(value) is dt.date
        case TypeKind.TIME:
            return type(value) is dt.time and value.tzinfo is None
        case TypeKind.TIMESTAMP:
            return type(value) is dt.datetime and value.tzinfo is None
        case TypeKind.TIMESTAMPTZ:
            return type(value) is dt.datetime and value.utcoffset() is not None
        case TypeKind.UUID:
            return type(value) is uuid.UUID
        case TypeKind.JSON | TypeKind.ENUM | TypeKind.INTERVAL:
            return False
        case TypeKind.LIST | TypeKind.ARRAY | TypeKind.STRUCT | TypeKind.MAP:
            return False
        case TypeKind.TIMESTAMP_S | TypeKind.TIMESTAMP_MS | TypeKind.TIMESTAMP_NS:
            return False
        case _:
            assert_never(type_.kind)


SCALE_MAX: Final = 22
"""Powers of ten up to this one are exact doubles; a division by them is therefore rounded once."""


def to_double(decimals: Any) -> Any:
    """Convert ``decimal128`` values to ``float64``, each to the nearest; NULL stays NULL.

    Args:
        decimals: An Array or ChunkedArray of ``decimal128(p, s)`` with s up to :data:`SCALE_MAX`.

    Raises:
        InexactError: A value has more digits than a DOUBLE, and how it is rounded is DuckDB's affair.
    """
    if isinstance(decimals, pa.ChunkedArray):
        return pa.chunked_array([to_double(chunk) for chunk in decimals.chunks], pa.float64())
    filled = decimals.fill_null(0)
    words = np.frombuffer(filled.buffers()[1], "<i8", count=2 * len(filled), offset=16 * filled.offset).reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    if (high != low >> 63).any():  # the upper half is more than the sign of the lower
        raise InexactError("a number that no DOUBLE holds")
    nulls = decimals.is_null().to_numpy(zero_copy_only=False) if decimals.null_count else None
    return pa.array(held_by_double(low) / float(10**decimals.type.scale), pa.float64(), mask=nulls)


def held_by_double(integers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert integers to ``float64``.

    Raises:
        InexactError: One is not a DOUBLE.
    """
    if len(integers) and (integers.max() > DOUBLE_INTEGER_MAX or integers.min() < -DOUBLE_INTEGER_MAX):
        raise InexactError("an integer that no DOUBLE holds")
    return integers.astype(np.float64)
