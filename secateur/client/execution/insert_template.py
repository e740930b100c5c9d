"""``INSERT ... VALUES`` with only parameters and literals: the client makes the rows without any request.

It does so only where the result is certainly that of the dialect: a value of its column's exact type needs no cast. For
any other value the controller evaluates the statement, as it does for every expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from secateur.errors import DataError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.python_column import as_they_stand, canonical_as_it_stands
from secateur.protocol.statements import InsertTemplate, Literal
from secateur.wire import SHORT_ROWS_MAX, ShortTable, is_short, travels_short


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
        column = as_they_stand(_given(template, position, values), table.column(name).type)
        if column is None:
            return None
        columns.append(column)
    return pa.table(columns, names=list(template.columns))


def few_filled_rows(table: TableDef, template: InsertTemplate, values: Sequence[Any]) -> ShortTable | None:
    """Return a few rows for one set of parameters as plain values of all columns of the table.

    Args:
        table: The table of the rows.
        template: The rows, with parameters that are not bound yet.
        values: Plain parameters in the order of the statement.

    Returns:
        The rows, with NULL where the template has no column; None when a value is not exactly of its column's type,
        when the rows are better sent in Arrow, or when the table does not take a NULL.

    Cost: a microsecond for each value.
    """
    count = len(template.rows)
    types = [column.type for column in table.columns]
    if count > SHORT_ROWS_MAX or not travels_short(types):
        return None
    positions = {name.casefold(): position for position, name in enumerate(template.columns)}
    columns: list[list[Any]] = []
    for column in table.columns:
        position = positions.get(column.name.casefold())
        plain = [None] * count
        if position is not None:
            try:
                for number, row in enumerate(template.rows):
                    cell = row[position]
                    given = cell.value if isinstance(cell, Literal) else values[cell]
                    plain[number] = canonical_as_it_stands(given, column.type)
            except DataError:
                return None
        if None in plain and not column.nullable:
            return None
        columns.append(plain)
    return ShortTable(columns, count) if is_short(columns, types) else None


def _given(template: InsertTemplate, position: int, values: Sequence[Sequence[Any]]) -> list[Any]:
    """The values of one column, of all rows for each set of parameters."""
    cells = [row[position] for row in template.rows]
    return [cell.value if isinstance(cell, Literal) else params[cell] for params in values for cell in cells]
