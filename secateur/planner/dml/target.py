"""The table that a statement changes: ``t``, ``t x`` or ``t AS x``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from secateur.errors import UnknownTableError
from secateur.partitioning.table import TableDef
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import TokenCursor, is_name

__all__ = ["Target", "read_insert_target", "read_table", "read_target"]

_BEHIND: Final = ("WHERE", "SET", "USING", "FROM", "RETURNING")
"""Words that may follow a target, and so are not its alias."""


@dataclass(frozen=True, slots=True)
class Target:
    """The table that a statement changes.

    Attributes:
        table: The table.
        alias: The name by which the statement calls it.
        start: Offset in the text of its name.
        end: Offset behind its name or alias.
    """

    table: TableDef
    alias: str
    start: int
    end: int


def read_table(cursor: TokenCursor, find: Callable[[str], TableDef]) -> TableDef:
    """The table whose name comes next.

    Raises:
        SqlSyntaxError: No name comes next.
        UnknownTableError: There is no such table; with the position of the name.
        NotSupportedError: A schema in front of the name.
    """
    offset = cursor.offset
    name = cursor.name("the name of a table")
    if cursor.at("."):
        raise cursor.unsupported("a schema in front of a table name", "tables have a name of one part")
    try:
        return find(name)
    except UnknownTableError as error:
        raise located(UnknownTableError, error.message, cursor.sql, offset, len(name), **error.details) from None


def read_target(cursor: TokenCursor, find: Callable[[str], TableDef]) -> Target:
    """The table that comes next, with its alias if it has one.

    Raises:
        Error: As :func:`read_table`.
    """
    start, last = cursor.offset, cursor.peek()
    table = read_table(cursor, find)
    alias = table.name if last is None else last.text
    if cursor.accept("AS") or _is_alias(cursor):
        last = cursor.peek()
        alias = cursor.name("an alias")
    assert last is not None
    if cursor.at("("):
        raise cursor.unsupported("a list of columns behind the table", "use the columns' own names")
    return Target(table, alias, start, last.end + 1)


def read_insert_target(cursor: TokenCursor, find: Callable[[str], TableDef]) -> Target:
    """As :func:`read_target`, for INSERT: there an alias comes behind AS only, and the columns behind it.

    Raises:
        Error: As :func:`read_table`.
    """
    start, last = cursor.offset, cursor.peek()
    table = read_table(cursor, find)
    alias = table.name
    if cursor.accept("AS"):
        last = cursor.peek()
        alias = cursor.name("an alias")
    assert last is not None
    return Target(table, alias, start, last.end + 1)


def _is_alias(cursor: TokenCursor) -> bool:
    token = cursor.peek()
    return token is not None and is_name(token) and not any(map(cursor.at, _BEHIND))
