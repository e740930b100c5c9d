"""``INSERT ... VALUES`` with only parameters and literals: the client makes the rows without any request.

It does so only where the result is certainly that of the dialect: a value of its column's exact type needs no cast. For
any other value the controller evaluates the statement, as it does for every expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType, TypeKind

__all__ = ["Cell", "InsertTemplate", "Literal", "as_they_stand"]

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


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that the text itself gives."""

    value: Any


Cell: TypeAlias = int | Literal
"""The index of a parameter, or a literal."""


@dataclass(frozen=True, slots=True)
class InsertTemplate:
    """The rows of an INSERT, with parameters that are not bound yet.

    Attributes:
        table: The table.
        columns: Those that get values, in order; the others become NULL.
        rows: The values, one row of cells for each row of the statement.
        mode: The treatment of keys that exist already.
        parameter_count: How many parameters the statement has.
        parameter_names: Their names in order, when they are named, else empty.
        catalog_version: The catalog it was read for.
    """

    table: TableDef
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    mode: str
    parameter_count: int
    parameter_names: tuple[str, ...]
    catalog_version: int

    def fill(self, values: Sequence[Sequence[Any]]) -> pa.Table | None:
        """Return the rows for some sets of parameters; None when a value is not exactly of its column's type.

        Args:
            values: Plain parameters in the order of the statement, at least one set.

        Returns:
            The columns named, in the types of the table. NOT NULL is not checked here.

        Cost: some 10 microseconds, and a microsecond for each value.
        """
        columns: list[pa.Array] = []
        for position, name in enumerate(self.columns):
            cells = [row[position] for row in self.rows]
            given = [cell.value if isinstance(cell, Literal) else params[cell] for params in values for cell in cells]
            column = as_they_stand(given, self.table.column(name).type)
            if column is None:
                return None
            columns.append(column)
        return pa.table(columns, names=list(self.columns))


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
