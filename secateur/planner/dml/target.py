"""The table that a statement changes: ``t``, ``t x`` or ``t AS x``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from secateur.errors import UnknownTableError
from secateur.partitioning.tables.table import TableDef
from secateur.planner.text.token_cursor import TokenCursor, is_name

_R = TypeVar("_R")
FindTable: TypeAlias = Callable[[str], TableDef]
"""The catalog's lookup by name."""

_BEHIND: Final = ("WHERE", "SET", "USING", "FROM", "ON", "RETURNING")
"""Words that may follow a table, and so are not its alias."""


@dataclass(frozen=True, slots=True)
class ChangeTarget:
    """The table that a statement changes.

    Attributes:
        table: The table.
        alias: The name by which the statement calls it.
        end: Offset behind its name or alias.
    """

    table: TableDef
    alias: str
    end: int


def read_relation(cursor: TokenCursor, find: Callable[[str], _R]) -> _R:
    """Read a name and return the object that ``find`` finds for it.

    Raises:
        SqlSyntaxError: No name comes next.
        UnknownTableError: There is no such table; with the position of the name.
        NotSupportedError: A schema other than main in front of the name.
    """
    return found(cursor, cursor.name_in_main("the name of a table"), find)


def found(cursor: TokenCursor, name: str, find: Callable[[str], _R]) -> _R:
    """The object that ``find`` finds for the name that was read last.

    Raises:
        UnknownTableError: There is none; with the position of the name.
    """
    token = cursor.peek(-1)
    assert token is not None
    try:
        return find(name)
    except UnknownTableError as error:
        raise cursor.error(
            UnknownTableError, error.message, token.start, token.end - token.start + 1, **error.details
        ) from None


def read_target(cursor: TokenCursor, find: FindTable, *, of_insert: bool = False) -> ChangeTarget:
    """The table that comes next, with its alias if it has one.

    Args:
        cursor: At its name.
        find: As of :func:`read_relation`.
        of_insert: Whether an alias comes behind AS only, and may have columns behind it.

    Raises:
        Error: As :func:`read_relation`.
    """
    table = read_relation(cursor, find)
    name = cursor.peek(-1)
    assert name is not None
    has_alias = cursor.accept("AS") or (not of_insert and is_alias(cursor))
    alias = cursor.name("an alias") if has_alias else name.text
    if cursor.at("(") and not of_insert:
        raise cursor.unsupported("a list of columns behind the table", "use the columns' own names")
    return ChangeTarget(table, alias, cursor.end)


def is_alias(cursor: TokenCursor) -> bool:
    """Whether a name comes next that is the alias of the table before it."""
    token = cursor.peek()
    return token is not None and is_name(token) and not any(map(cursor.at, _BEHIND))
