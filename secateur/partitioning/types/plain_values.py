"""Python values that are values of a column as they stand, without a cast."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from secateur.errors import DataError
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import SqlType, TypeKind

__all__ = ["as_they_stand", "canonical_as_they_stand"]

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
    if not _need_no_cast(values, column_type):
        return None
    try:
        return pa.array(values, column_type.arrow)
    except (pa.ArrowException, OverflowError, UnicodeError, ValueError):
        # out of range, too many digits, not UTF-8: only DuckDB converts it, or reports the error, as the dialect does
        return None


def canonical_as_they_stand(values: list[Any], column_type: SqlType) -> list[Any] | None:
    """The same as canonical Python values, which a few are faster kept as than in Arrow."""
    if not _need_no_cast(values, column_type):
        return None
    try:
        return [coerce(value, column_type) for value in values]
    except DataError:
        return None


def _need_no_cast(values: list[Any], column_type: SqlType) -> bool:
    kinds = set(map(type, values)) - {type(None)}
    if column_type.is_integer:
        return kinds <= {int} and column_type.kind is not TypeKind.HUGEINT
    if not kinds <= {_SAME.get(column_type.kind)}:
        return False
    return column_type.kind is not TypeKind.TIMESTAMP or all(value is None or value.tzinfo is None for value in values)
