"""Python values that are values of a column as they stand, without a cast."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from secateur.partitioning.types.column_type import SqlType, TypeKind

__all__ = ["as_they_stand"]

_SAME: Final[dict[TypeKind, type]] = {
    TypeKind.BOOLEAN: bool,
    TypeKind.VARCHAR: str,
    TypeKind.BLOB: bytes,
    TypeKind.DOUBLE: float,
    TypeKind.DATE: date,
    TypeKind.TIMESTAMP: datetime,
    TypeKind.DECIMAL: Decimal,
}
"""The Python types whose values need no cast; integers are taken by their range."""


def as_they_stand(values: list[Any], column_type: SqlType) -> pa.Array | None:
    """Values as a column, if each is NULL or of the column's type without a cast; else None."""
    kinds = set(map(type, values)) - {type(None)}
    if column_type.is_integer:
        if not kinds <= {int} or column_type.kind is TypeKind.HUGEINT:
            return None
    elif not kinds <= {_SAME.get(column_type.kind)}:
        return None
    if column_type.kind is TypeKind.TIMESTAMP and any(
        value is not None and value.tzinfo is not None for value in values
    ):
        return None
    try:
        return pa.array(values, column_type.arrow)
    except (pa.ArrowException, OverflowError, UnicodeError, ValueError):
        # out of range, too many digits, not UTF-8: only DuckDB converts it, or reports the error, as the dialect does
        return None
