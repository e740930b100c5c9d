"""The names that a table may bring: those that a statement can write."""

from __future__ import annotations

from secateur.errors import NotSupportedError, ProgrammingError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType


def check_names(table: TableDef) -> None:
    """Look at the name of a table, those of its columns, and those of fields inside of them.

    Raises:
        ProgrammingError: One is empty, which SQL cannot write.
        NotSupportedError: The name of the table has a schema in front.
    """
    if not table.name:
        raise ProgrammingError("a table has a name of at least one character: give it one")
    if "." in table.name:
        raise NotSupportedError(f"table name {table.name!r}: schemas are not supported, use a name without a dot")
    for position, column in enumerate(table.columns, 1):
        if not column.name:
            raise ProgrammingError(
                f"table {table.name}: column {position} has an empty name, by which no statement could read it: rename"
                " it first"
            )
        if _has_empty_name(column.type):
            raise ProgrammingError(
                f"table {table.name}: column {column.name} has a STRUCT with a field of an empty name, which no"
                " statement could read: rename it first",
                column=column.name,
            )


def _has_empty_name(type_: SqlType) -> bool:
    return any(not field.name for field in type_.fields) or any(map(_has_empty_name, type_.parts))
