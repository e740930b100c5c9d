"""Positions in the user's text, and how an error shows them."""

from __future__ import annotations

from typing import Final, TypeVar

from secateur.errors import Error, SqlSyntaxError

_EXCERPT_CHARS_MAX: Final = 120

_E = TypeVar("_E", bound=Error)


def position_of(sql: str, offset: int) -> tuple[int, int]:
    """Line and column, both counted from 1, of a character offset."""
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def excerpt(sql: str, offset: int, length: int = 1) -> str:
    """The line of the offset with carets under ``length`` characters; a long line is cut around them."""
    start = sql.rfind("\n", 0, offset) + 1
    stop = sql.find("\n", offset)
    line = sql[start : len(sql) if stop < 0 else stop]
    column = offset - start
    if len(line) > _EXCERPT_CHARS_MAX:
        first = max(0, column - _EXCERPT_CHARS_MAX // 2)
        line, column = line[first : first + _EXCERPT_CHARS_MAX], column - first
    marker = "".join("\t" if character == "\t" else " " for character in line[:column])
    return f"  {line}\n  {marker}{'^' * max(1, min(length, len(line) - column))}"


def located(kind: type[_E], message: str, sql: str, offset: int, length: int = 1, **details: object) -> _E:
    """Make an error with its position: in ``details`` as ``line`` and ``column``, in the message with an excerpt."""
    line, column = position_of(sql, offset)
    return kind(
        f"{message} (line {line}, column {column})\n{excerpt(sql, offset, length)}", line=line, column=column, **details
    )


def syntax_error(message: str, sql: str, offset: int, length: int = 1) -> SqlSyntaxError:
    """A :class:`SqlSyntaxError` with its position."""
    return located(SqlSyntaxError, message, sql, offset, length)
