"""The SET clause, ``a = value, (b, c) = (value, DEFAULT), (d, e) = value``, and ON CONFLICT, which has one."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Final, TypeAlias

from secateur.errors import ProgrammingError, UnknownColumnError
from secateur.partitioning.tables.row_ids import check_has_key
from secateur.partitioning.tables.table import TableDef
from secateur.planner.binding.catalog_view import similar_names
from secateur.planner.text.token_cursor import CLOSING, OPENING, TextSpan, TokenCursor, is_default, read_expression
from secateur.protocol.statements import InsertMode

IN_LIST: Final = (",", ")")
"""The words that may follow a value of a list in parentheses."""
QUERY_WORDS: Final = ("SELECT", "WITH", "FROM", "VALUES")
"""Words with which a query begins."""


Assignments: TypeAlias = dict[str, TextSpan | None]
"""The place of each new value in the text, by column as the table spells it; None for DEFAULT."""


def read_assignments(cursor: TokenCursor, table: TableDef, *ends: str) -> Assignments:
    """Read a list of assignments.

    Args:
        cursor: Behind SET.
        table: The table whose columns are assigned.
        ends: Words that may follow the list.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownColumnError: The table has no such column; with its position.
        ProgrammingError: A column is assigned twice, or a list has fewer or more values than columns.
    """
    found: Assignments = {}
    while True:
        if cursor.at("("):
            found |= _read_several(cursor, table, found, ends)
        else:
            column = _read_new_column(cursor, table, found)
            cursor.expect("=")
            found[column] = read_value(cursor, ",", *ends)
        if not cursor.accept(","):
            return found


def read_column(cursor: TokenCursor, table: TableDef) -> str:
    """The name of a column, as the table spells it.

    Raises:
        SqlSyntaxError: No name comes next.
        UnknownColumnError: The table has no such column; with its position.
    """
    offset = cursor.offset
    name = cursor.name("a column")
    declared = {column.name.casefold(): column.name for column in table.visible_columns}
    column = declared.get(name.casefold())
    if column is None:
        message = f"table {table.name} has no column {name!r}; {similar_names(name, list(declared.values()))}"
        raise cursor.error(UnknownColumnError, message, offset, len(name), table=table.name)
    return column


def _read_several(cursor: TokenCursor, table: TableDef, before: Container[str], ends: tuple[str, ...]) -> Assignments:
    """``(a, b) = (x, y)``, ``(a, b) = ROW(x, y)``, or ``(a, b) = x``, which gives x to each of them."""
    cursor.expect("(")
    columns = [_read_new_column(cursor, table, before)]
    while cursor.accept(","):
        columns.append(_read_new_column(cursor, table, before, columns))
    cursor.expect(")")
    cursor.expect("=")
    offset = cursor.offset
    if not _is_row(cursor, ends):
        return dict.fromkeys(columns, read_value(cursor, ",", *ends))
    cursor.accept("ROW")
    cursor.expect("(")
    found: Assignments = {}
    for column in columns:
        found[column] = read_value(cursor, *IN_LIST)
        if not cursor.accept(","):
            break
    if len(found) < len(columns) or not cursor.at(")"):
        message = f"({', '.join(columns)}) = (...) takes one value for each of the {len(columns)} columns"
        raise cursor.error(ProgrammingError, message, offset)
    cursor.expect(")")
    return found


def _is_row(cursor: TokenCursor, ends: tuple[str, ...]) -> bool:
    """Whether a list of values comes next and ends the value: ``(x, y)``, but not ``(x)`` or ``(x, y)[1]``."""
    is_named = cursor.at("ROW", "(")
    if not is_named and not cursor.at("("):
        return False
    depth, commas, ahead = 0, 0, int(is_named)
    while (token := cursor.peek(ahead)) is not None:
        depth += (token.word in OPENING) - (token.word in CLOSING)
        commas += depth == 1 and token.word == ","
        ahead += 1
        if not depth:
            break
    is_whole = cursor.peek(ahead) is None or any(cursor.at_ahead(ahead, word) for word in (",", *ends))
    is_query = any(cursor.at("(", word) for word in QUERY_WORDS)
    return is_whole and not is_query and (is_named or commas > 0)


def _read_new_column(cursor: TokenCursor, table: TableDef, before: Container[str], others: Container[str] = ()) -> str:
    offset = cursor.offset
    qualifier = cursor.peek(1)
    if qualifier is not None and qualifier.text == ".":
        cursor.take()
        raise cursor.expected("'=' (columns are assigned by their bare names)")
    column = read_column(cursor, table)
    if column in others or column in before:
        raise cursor.error(ProgrammingError, f"column {column!r} is assigned twice", offset, len(column))
    return column


def read_value(cursor: TokenCursor, *ends: str) -> TextSpan | None:
    """The place of the expression that comes next, up to one of ``ends``; None for DEFAULT."""
    if is_default(cursor, *ends):
        cursor.take()
        return None
    return read_expression(cursor, *ends)


@dataclass(frozen=True, slots=True)
class DoUpdate:
    """The existing row is changed.

    Attributes:
        assignments: Its new values; they may name columns of the table, and as ``excluded.column`` those of the row
            that was to be inserted.
        condition: Which rows are changed; None for all.
    """

    assignments: Assignments
    condition: TextSpan | None


Conflict: TypeAlias = InsertMode | DoUpdate


def read_conflict(cursor: TokenCursor, table: TableDef, mode: InsertMode) -> Conflict:
    """Read an ON CONFLICT clause; without one, return ``mode``.

    It says what an INSERT does with keys that exist already::

        ON CONFLICT [(key columns)] { DO NOTHING | DO UPDATE SET a = value, ... [WHERE condition] }

    Of rows of one statement that have the same key only the first counts, as in the dialect.

    Raises:
        SqlSyntaxError: At the first invalid token.
        UnknownColumnError: With the position of the name.
        ProgrammingError: The columns are not those of the primary key, the table has none, or the statement has two
            conflict clauses.
        NotSupportedError: A form that is not supported.
    """
    start = cursor.offset
    if not cursor.accept("ON", "CONFLICT"):
        return mode
    check_conflicts(cursor, table, start)
    if mode is not InsertMode.APPEND:
        raise cursor.error(
            ProgrammingError,
            "INSERT OR ... already decides what happens to existing keys: leave out ON CONFLICT",
            start,
            11,
        )
    if cursor.at("("):
        _read_target(cursor, table)
    if cursor.at("WHERE"):
        raise cursor.unsupported("a condition on the conflict itself", "write DO UPDATE SET ... WHERE condition")
    cursor.expect("DO")
    if cursor.accept("NOTHING"):
        return InsertMode.IGNORE
    if not cursor.accept("UPDATE"):
        raise cursor.expected("NOTHING or UPDATE")
    cursor.expect("SET")
    assignments = read_assignments(cursor, table, "WHERE", "RETURNING")
    condition = read_expression(cursor, "RETURNING", what="a condition") if cursor.accept("WHERE") else None
    return DoUpdate(assignments, condition)


def check_conflicts(cursor: TokenCursor, table: TableDef, offset: int) -> None:
    """Refuse what an INSERT does with keys that exist already, where a table has no key.

    Raises:
        ProgrammingError: It has none; with the offset.
    """
    try:
        check_has_key(table, "no row of an INSERT conflicts with another")
    except ProgrammingError as error:
        raise cursor.error(ProgrammingError, error.message, offset, 2, table=table.name) from None


def _read_target(cursor: TokenCursor, table: TableDef) -> None:
    offset = cursor.offset
    cursor.expect("(")
    columns = cursor.listed(lambda cursor: read_column(cursor, table))
    cursor.expect(")")
    if set(columns) != set(table.primary_key):
        message = (
            f"the only unique key of {table.name} is its primary key ({', '.join(table.primary_key)}): name"
            " those columns, or none"
        )
        raise cursor.error(ProgrammingError, message, offset)
