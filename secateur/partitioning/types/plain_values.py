"""Python values that are values of a column as they stand, without a cast."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from secateur.errors import DataError
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import SqlType, TypeKind

_SAME: Final[dict[TypeKind, type]] = {
    **dict.fromkeys((TypeKind.TINYINT, TypeKind.SMALLINT, TypeKind.INTEGER, TypeKind.BIGINT), int),
    **dict.fromkeys((TypeKind.UTINYINT, TypeKind.USMALLINT, TypeKind.UINTEGER, TypeKind.UBIGINT), int),
    TypeKind.BOOLEAN: bool,
    TypeKind.VARCHAR: str,
    TypeKind.BLOB: bytes,
    TypeKind.DOUBLE: float,
    TypeKind.DATE: date,
    TypeKind.TIMESTAMP: datetime,
    TypeKind.DECIMAL: Decimal,
}
"""The Python types whose values need no cast; integers are taken by their range. No other type has one."""


def as_they_stand(values: list[Any], column_type: SqlType) -> pa.Array | None:
    """Values as a column, if each is NULL or of the column's type without a cast; else None."""
    if not _need_no_cast(values, column_type):
        return None
    try:
        return pa.array(values, column_type.arrow)
    except (pa.ArrowException, OverflowError, UnicodeError, ValueError):
        # out of range, too many digits, not UTF-8: only DuckDB converts it, or reports the error, as the dialect does
        return None


def canonical_as_it_stands(value: Any, column_type: SqlType) -> Any:
    """One value as a canonical Python value, which a few are faster kept as than in Arrow.

    Raises:
        DataError: It is not one of the column's type without a cast, or not one that the type holds.
    """
    if value is None:
        return None
    has_zone = isinstance(value, datetime) and value.tzinfo is not None
    if type(value) is not _SAME.get(column_type.kind) or has_zone:
        raise DataError(f"{value!r} ({type(value).__name__}) is no {column_type} as it stands: it needs a cast")
    return coerce(value, column_type)


def _need_no_cast(values: list[Any], column_type: SqlType) -> bool:
    kinds = set(map(type, values)) - {type(None)}
    if not kinds <= {_SAME.get(column_type.kind)}:
        return False
    return column_type.kind is not TypeKind.TIMESTAMP or all(value is None or value.tzinfo is None for value in values)
