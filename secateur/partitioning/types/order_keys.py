"""Encodes values of range columns as numbers and bytes that sort as the values do, one by one or a column at once."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.errors import InternalError
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import unscaled
from secateur.partitioning.types.encoding import decimal_words, fixed_width

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
