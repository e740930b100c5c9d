"""The values that a statement writes: pieces of the user's text, or DEFAULT, each for a column that it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from secateur.drawing.quantity import count_text
from secateur.errors import ProgrammingError, UnknownColumnError
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.default_value import FUNCTIONS
from secateur.partitioning.types.sql_text import quoted
from secateur.planner.binding.catalog_view import similar_names
from secateur.planner.text.token_cursor import TextSpan, TokenCursor, read_expression
from secateur.planner.text.tokens import TokenKind

Words: TypeAlias = tuple[str | TextSpan, ...]
"""A part of a composed query, as words of ours and pieces of the user's text."""
IN_LIST: Final = (",", ")")
"""The words that may follow a value of a list in parentheses."""
_LITERALS: Final = frozenset({TokenKind.STRING, TokenKind.NUMBER})
_LITERAL_WORDS: Final = frozenset({"NULL", "TRUE", "FALSE"})


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a column.

    Attributes:
        span: Its place in the user's text; None for DEFAULT.
        is_literal: Whether it is a single literal, or a DEFAULT that is constant.
        parameter: The index of the parameter that it is; None when it is something else.
        default: What DEFAULT means.
    """

    span: TextSpan | None
    is_literal: bool
    parameter: int | None = None
    default: str = "NULL"

    @property
    def is_plain(self) -> bool:
        """Whether it has the same value everywhere, as it stands."""
        return self.is_literal or self.parameter is not None

    @property
    def words(self) -> Words:
        """Return it as a part of a composed query."""
        return (self.default,) if self.span is None else (self.span,)

    def text(self, sql: str) -> str:
        """Return it as it is written in the user's text; of DEFAULT, what it means."""
        return self.default if self.span is None else sql[self.span.start : self.span.end]


def item(words: Words, type_: SqlType, name: str) -> Words:
    """A column of a select list: a value, cast to a type as the dialect does it when a column gets the value."""
    return (*cast_words(words, type_), f" AS {quoted(name)}")


def cast_words(words: Words, type_: SqlType) -> Words:
    """A value, cast to a type."""
    return ("CAST((", *words, f") AS {type_})")


def default_value(column: Column) -> Value:
    """DEFAULT as a value of a column, and what a column without one gets."""
    return Value(None, column.default not in FUNCTIONS, default=column.default or "NULL")


def read_value(cursor: TokenCursor, *ends: str) -> Value | None:
    """Read the expression that comes next, up to one of ``ends``; None for DEFAULT, which means what its column has.

    Raises:
        SqlSyntaxError: There is none.
    """
    if cursor.at("DEFAULT") and (cursor.peek(1) is None or any(cursor.at_ahead(1, end) for end in ends)):
        cursor.take()
        return None
    first, second = cursor.peek(), cursor.peek(1)
    span = read_expression(cursor, *ends)
    assert first is not None
    is_single = first.end + 1 == span.end
    parameter = None
    if first.kind is TokenKind.PARAMETER and second is not None and second.end + 1 == span.end:
        parameter = int(second.text) - 1
    return Value(span, is_single and (first.kind in _LITERALS or first.word in _LITERAL_WORDS), parameter)


def read_list(
    cursor: TokenCursor, read: Callable[[TokenCursor], Value | None] = lambda cursor: read_value(cursor, *IN_LIST)
) -> list[Value | None]:
    """Read ``(value, ...)``."""
    cursor.expect("(")
    values = [read(cursor)]
    while not cursor.accept(")"):
        if not cursor.accept(","):
            raise cursor.expected("',' or ')'")
        values.append(read(cursor))
    return values


def of_columns(
    cursor: TokenCursor, values: Sequence[Value | None], columns: Sequence[Column], offset: int, before: str = ""
) -> tuple[Value, ...]:
    """The values of a row, each of its column.

    Args:
        cursor: Of the statement, for positions.
        values: The values as they were read.
        columns: The columns that get them.
        offset: Where it is said that there are more or fewer values.
        before: Words in front of that.

    Raises:
        ProgrammingError: There are more or fewer values than columns.
    """
    if len(values) != len(columns):
        names = ", ".join(column.name for column in columns)
        message = f"{before}{count_text(len(values), 'value')} for the {len(columns)} columns {names}"
        raise cursor.error(ProgrammingError, message, offset)
    pairs = zip(values, columns, strict=True)
    return tuple(default_value(column) if value is None else value for value, column in pairs)


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


def read_new_column(cursor: TokenCursor, table: TableDef, taken: set[str], how: str) -> str:
    """As :func:`read_column`, for a column that a statement names once, and that is taken then.

    Args:
        cursor: At the name.
        table: The table.
        taken: Those that it has named.
        how: What a second time is, such as ``assigned``.

    Raises:
        ProgrammingError: The column is taken.
    """
    offset = cursor.offset
    column = read_column(cursor, table)
    if column in taken:
        raise cursor.error(ProgrammingError, f"column {column!r} is {how} twice", offset, len(column))
    taken.add(column)
    return column


def read_columns(cursor: TokenCursor, table: TableDef) -> tuple[str, ...]:
    """Read ``(column, ...)``, the columns that get the values of rows.

    Raises:
        Error: As :func:`read_new_column`.
    """
    taken: set[str] = set()
    return tuple(cursor.in_parentheses(lambda cursor: read_new_column(cursor, table, taken, "named")))
