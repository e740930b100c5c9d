"""``INSERT ... VALUES`` with only parameters and literals: the client makes the rows without any request.

It does so only where the result is certainly that of the dialect: a value of its column's exact type needs no cast. For
any other value the controller evaluates the statement, as it does for every expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.protocol.statements import InsertTemplate, Literal

__all__ = ["as_they_stand", "filled_rows"]

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


def filled_rows(table: TableDef, template: InsertTemplate, values: Sequence[Sequence[Any]]) -> pa.Table | None:
    """Return the rows for some sets of parameters; None when a value is not exactly of its column's type.

    Args:
        table: The table of the rows.
        template: The rows, with parameters that are not bound yet.
        values: Plain parameters in the order of the statement, at least one set.

    Returns:
        The columns named, in the types of the table. NOT NULL is not checked here.

    Cost: some 10 microseconds, and a microsecond for each value.
    """
    columns: list[pa.Array] = []
    for position, name in enumerate(template.columns):
        cells = [row[position] for row in template.rows]
        given = [cell.value if isinstance(cell, Literal) else params[cell] for params in values for cell in cells]
        column = as_they_stand(given, table.column(name).type)
        if column is None:
            return None
        columns.append(column)
    return pa.table(columns, names=list(template.columns))


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
        # out of range, too many digits, not UTF-8: the controller reports the error, or converts it as the dialect
        # does
        return None
