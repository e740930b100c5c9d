"""The order of keys: the successor of a key, the smallest key of a type, and numbers and bytes that sort as keys do.

An inclusive bound becomes an exclusive one by its successor: ``VALUE = 9`` is ``9 <= VALUES < 10``. The largest BIGINT
has no successor: then the column before it advances and this one starts over. The largest key of all has no successor.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.errors import InternalError
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import from_unscaled, unscaled
from secateur.partitioning.types.encoding import decimal_words, fixed_width

_UUID_MAX: Final = 2**128 - 1


def successor(key: Sequence[Any], types: Sequence[SqlType]) -> tuple[Any, ...] | None:
    """Return the smallest key that is greater than the given one, in lexicographic order; None after the greatest."""
    values = list(key)
    for position in range(len(values) - 1, -1, -1):
        following = next_value(values[position], types[position])
        if following is not None:
            return (*values[:position], following, *(minimum(type_) for type_ in types[position + 1 :]))
    return None


def next_value(value: Any, type_: SqlType) -> Any:
    """The smallest value greater than a canonical one, or None after the greatest of the type."""
    match type_.kind:
        case TypeKind.VARCHAR:
            return value + "\0"
        case TypeKind.BLOB:
            return value + b"\0"
        case TypeKind.BOOLEAN:
            return None if value else True
        case TypeKind.DATE:
            return None if value == date.max else value + timedelta(days=1)
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            return None if value.replace(tzinfo=None) == datetime.max else value + timedelta(microseconds=1)
        case TypeKind.DECIMAL:
            following = unscaled(value, type_.scale) + 1
            return None if following == 10**type_.precision else from_unscaled(following, type_.scale)
        case TypeKind.UUID:
            return None if value.int == _UUID_MAX else UUID(int=value.int + 1)
        case _ if type_.is_integer:
            return None if value == type_.integer_range[1] else value + 1
        case _:
            raise InternalError(
                f"values of type {type_} were about to be ordered as a key; such a column cannot partition"
            )


def minimum(type_: SqlType) -> Any:
    """The smallest canonical value of a type."""
    match type_.kind:
        case TypeKind.VARCHAR:
            return ""
        case TypeKind.BLOB:
            return b""
        case TypeKind.BOOLEAN:
            return False
        case TypeKind.DATE:
            return date.min
        case TypeKind.TIMESTAMP:
            return datetime.min
        case TypeKind.TIMESTAMPTZ:
            return datetime.min.replace(tzinfo=UTC)
        case TypeKind.DECIMAL:
            return from_unscaled(1 - 10**type_.precision, type_.scale)
        case TypeKind.UUID:
            return UUID(int=0)
        case _ if type_.is_integer:
            return type_.integer_range[0]
        case _:
            raise InternalError(
                f"values of type {type_} were about to be ordered as a key; such a column cannot partition"
            )


_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


def order_key(value: Any, type_: SqlType) -> Any:
    """Return an object whose Python order is the column's order and that equals the result of :func:`order_array`."""
    match type_.kind:
        case TypeKind.VARCHAR:
            return value.encode()
        case TypeKind.BLOB:
            return value
        case TypeKind.BOOLEAN:
            return int(value)
        case TypeKind.DATE:
            return value.toordinal() - _EPOCH_DAY
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            since = value - datetime(1970, 1, 1, tzinfo=value.tzinfo and UTC)
            return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        case TypeKind.DECIMAL:
            return unscaled(value, type_.scale)
        case TypeKind.UUID:
            return value.int
        case _ if type_.is_integer:
            return value
        case _:
            raise InternalError(
                f"a column of type {type_} was about to partition a table by range; its scheme should have been refused"
            )


def order_array(array: pa.Array, type_: SqlType) -> npt.NDArray[Any]:
    """The order keys of a column of a fixed width of up to 64 bits, without nulls."""
    match type_.kind:
        case TypeKind.BOOLEAN:
            return fixed_width(array.cast(pa.uint8()), np.uint8)
        case TypeKind.DATE:
            return fixed_width(array, np.int32)
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            return fixed_width(array, np.int64)
        case TypeKind.DECIMAL:
            return np.ascontiguousarray(decimal_words(array)[:, 0]).view(np.int64)
        case _:
            return fixed_width(array, str(array.type))
