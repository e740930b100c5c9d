"""UPDATE: the rows as they will be.

::

    UPDATE t [[AS] x] SET a = value, ... [WHERE condition]

Each value is cast to the type of its column, as the dialect does it; all values are computed from the row as it was before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlglot import Token, TokenType

from secateur.errors import ProgrammingError, SqlSyntaxError, UnknownColumnError
from secateur.partitioning.table import TableDef
from secateur.planner.dml.change import ChangeQuery, inserted, read_condition
from secateur.planner.dml.target import Target, read_target
from secateur.planner.query import near_names
from secateur.planner.statement import ChangeKind
from secateur.planner.text.dialect import quoted
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import TokenCursor

__all__ = ["read_update"]

_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})


@dataclass(frozen=True, slots=True)
class _Assignment:
    """``column = value``; the value's span in the text, or None for DEFAULT, which is NULL: columns have no defaults."""

    column: str
    value: tuple[int, int] | None
    end: int


def read_update(cursor: TokenCursor, find: Callable[[str], TableDef]) -> ChangeQuery:
    """Read an UPDATE statement.

    Args:
        cursor: At the word UPDATE; its tokens have numbered parameters.
        find: The catalog's lookup by name.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError, UnknownColumnError: With the position of the name.
        ProgrammingError: A column of the primary key is assigned, or a column twice.
        NotSupportedError: A form that we do not have.
    """
    whole, start = cursor.rest(), cursor.offset
    cursor.expect("UPDATE")
    target = read_target(cursor, find)
    begin = cursor.offset
    cursor.expect("SET")
    assigned = [_read_assignment(cursor, target, ())]
    while cursor.accept(","):
        assigned.append(_read_assignment(cursor, target, assigned))
    if cursor.at("FROM"):
        raise cursor.unsupported("UPDATE ... FROM", "take values from a subquery over a replicated table, or pass them as parameters")
    where = read_condition(cursor, "',', WHERE or the end of the statement")
    return _query(whole, start, begin, target, assigned, where)


def _read_assignment(cursor: TokenCursor, target: Target, before: list[_Assignment] | tuple[()]) -> _Assignment:
    if cursor.at("("):
        raise cursor.unsupported("assigning several columns at once", "write SET a = 1, b = 2")
    offset = cursor.offset
    name = cursor.name("a column")
    if cursor.at("."):
        raise cursor.expected("'=' (columns are assigned by their bare names)")
    table = target.table
    declared = {column.name.casefold(): column.name for column in table.columns}
    column = declared.get(name.casefold())
    if column is None:
        message = f"table {table.name} has no column {name!r}; {near_names(name, list(declared.values()))}"
        raise located(UnknownColumnError, message, cursor.sql, offset, len(name), table=table.name)
    if column in table.primary_key:
        message = f"column {column!r} belongs to the primary key ({', '.join(table.primary_key)}), which names the row: DELETE the row and INSERT it anew"
        raise located(ProgrammingError, message, cursor.sql, offset, len(name), table=table.name)
    if any(column == other.column for other in before):
        raise located(ProgrammingError, f"column {column!r} is assigned twice", cursor.sql, offset, len(name))
    cursor.expect("=")
    return _read_value(cursor, column)


def _read_value(cursor: TokenCursor, column: str) -> _Assignment:
    start = end = cursor.offset
    first, depth, count, previous = cursor.peek(), 0, 0, ""
    while depth or not _ends_value(cursor, previous):
        token = cursor.take()
        if depth == 0 and token.token_type in _CLOSING:
            raise located(SqlSyntaxError, f"{token.text!r} closes nothing", cursor.sql, token.start)
        end, previous, count = token.end + 1, token.text.upper(), count + 1
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
    if start == end:
        raise cursor.expected("a value")
    is_default = count == 1 and first is not None and first.text.upper() == "DEFAULT" and first.token_type is not TokenType.STRING
    return _Assignment(column, None if is_default else (start, end), end)


def _ends_value(cursor: TokenCursor, previous: str) -> bool:
    # FROM also stands inside a value: a IS DISTINCT FROM b.
    return cursor.at_end or cursor.at(",") or cursor.at("WHERE") or cursor.at("RETURNING") or (cursor.at("FROM") and previous != "DISTINCT")


def _query(whole: tuple[Token, ...], start: int, begin: int, target: Target, assigned: list[_Assignment], where: tuple[Token, ...]) -> ChangeQuery:
    """The query, as tokens and as splices: the words between the values are exchanged, the values stay."""
    table = target.table
    columns = [assignment.column for assignment in assigned]
    kept = [column.name for column in table.columns if column.name not in columns]
    splices: list[tuple[int, int, str]] = [(start, target.start, "FROM ")]
    tokens = [*inserted("FROM", start), *(token for token in whole if target.start <= token.start < target.end)]
    position, words = begin, "SELECT "
    for assignment in assigned:
        value = assignment.value
        opened = f"{words}CAST(({'NULL' if value is None else ''}"
        behind = assignment.end if value is None else value[0]
        splices.append((position, behind, opened))
        tokens.extend(inserted(opened, behind))
        if value is not None:
            tokens.extend(token for token in whole if value[0] <= token.start < value[1])
        position, words = assignment.end, f") AS {table.column(assignment.column).type}) AS {quoted(assignment.column)}, "
    closed = words + ", ".join(f"{quoted(target.alias)}.{quoted(name)}" for name in kept)
    splices.append((position, position, closed))
    tokens.extend([*inserted(closed, position), *where])
    return ChangeQuery(target, ChangeKind.UPDATE, tuple(tokens), tuple(splices), (*columns, *kept))
