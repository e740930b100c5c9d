"""CREATE INDEX.

::

    CREATE INDEX [IF NOT EXISTS] i ON t (a [ASC | DESC] [NULLS FIRST | NULLS LAST], b, ...)
"""

from __future__ import annotations

from secateur.errors import NotSupportedError, SchemeError
from secateur.partitioning.tables.table import IndexDef
from secateur.planner.dml.target import FindTable, read_relation
from secateur.planner.dml.values import read_column
from secateur.planner.statement import CreateIndex
from secateur.planner.text.token_cursor import TokenCursor
from secateur.storage.key_column import KeyColumn


def read_create_index(cursor: TokenCursor, find: FindTable) -> CreateIndex:
    """Read a CREATE INDEX statement.

    Raises:
        UnknownTableError, UnknownColumnError: With the position of the name.
        SchemeError: A column that is named twice.
        NotSupportedError: A unique index, one of expressions, or a column of a type without an order.
    """
    cursor.expect("CREATE")
    if cursor.at("UNIQUE"):
        raise cursor.unsupported("a UNIQUE index", "only the primary key is unique")
    cursor.expect("INDEX")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name("the name of an index")
    cursor.expect("ON")
    table = read_relation(cursor, find)
    columns: list[str] = []

    def column(cursor: TokenCursor) -> None:
        offset = cursor.offset
        behind = cursor.peek(1)
        if cursor.at("(") or (behind is not None and behind.text == "("):
            raise cursor.unsupported("an index of an expression", "name columns of the table")
        name = read_column(cursor, table)
        if name in columns:
            raise cursor.error(SchemeError, f"column {name!r} is named twice", offset, len(name))
        try:
            KeyColumn.of(table.name, name, table.column(name).type)
        except NotSupportedError as error:
            raise cursor.error(NotSupportedError, error.message, offset, len(name)) from None
        columns.append(name)
        # An index is searched for values and never read in its order, so a direction makes no difference.
        _ = cursor.accept("ASC") or cursor.accept("DESC")
        _ = cursor.accept("NULLS", "FIRST") or cursor.accept("NULLS", "LAST")

    cursor.in_parentheses(column)
    cursor.expect_end()
    return CreateIndex(table, IndexDef(name, tuple(columns)), if_not_exists)
