"""Literals in our own DDL: the values of range bounds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from secateur.errors import SchemeError
from secateur.partitioning.types.decimals import negated
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import TokenKind

_TYPED: Final[dict[str, Callable[[str], Any]]] = {
    "DATE": date.fromisoformat,
    "TIMESTAMP": datetime.fromisoformat,
    "TIMESTAMPTZ": datetime.fromisoformat,
    "UUID": UUID,
}
_STRINGS: Final = (TokenKind.STRING, TokenKind.DOLLAR_STRING)


def at_literal(cursor: TokenCursor) -> bool:
    """Whether the next tokens are a value."""
    token, behind = cursor.peek(), cursor.peek(1)
    if token is None:
        return False
    if token.kind in (TokenKind.NUMBER, TokenKind.HEX_STRING, *_STRINGS) or token.word in ("(", "-"):
        return True
    typed = token.text.upper() in _TYPED and behind is not None and behind.kind in _STRINGS
    return typed or any(cursor.at(word) for word in ("TRUE", "FALSE", "NULL"))


def read_tuple(cursor: TokenCursor, columns: int) -> tuple[Any, ...]:
    """One value per range column: ``v`` for one column, ``(v1, v2)`` for several; parentheses around one are allowed.

    Raises:
        SqlSyntaxError: No value, or another number of them than columns.
        SchemeError: A NULL, or a text that is invalid for its type.
    """
    if not cursor.accept("("):
        if columns > 1:
            raise cursor.expected(f"({', '.join(['value'] * columns)}), one value for each range column")
        return (read_literal(cursor),)
    values = [read_literal(cursor)]
    while len(values) < columns:
        if not cursor.accept(","):
            raise cursor.expected(f"{columns} values, one for each range column")
        values.append(read_literal(cursor))
    if not cursor.accept(")"):
        raise cursor.expected(f"')' behind {columns} value{'s' if columns > 1 else ''}, one for each range column")
    return tuple(values)


def read_literal(cursor: TokenCursor) -> Any:
    """One value as a Python object: int, Decimal, str, bool, bytes, date, datetime or UUID."""
    offset, token = cursor.offset, cursor.peek()
    if token is not None and token.kind is TokenKind.NUMBER:
        return _number(cursor)
    if cursor.accept("-"):
        return negated(_number(cursor))
    if cursor.accept("TRUE"):
        return True
    if cursor.accept("FALSE"):
        return False
    if cursor.accept("NULL"):
        raise cursor.error(SchemeError, "a range bound cannot be NULL: partitioning columns are NOT NULL", offset, 4)
    behind = cursor.peek(1)
    if token is None:
        raise cursor.expected("a value")
    if token.kind in _STRINGS:
        return cursor.take().text
    if token.kind is TokenKind.HEX_STRING:
        return bytes.fromhex(cursor.take().text)
    if token.text.upper() in _TYPED and behind is not None and behind.kind in _STRINGS:
        cursor.take()
        text = cursor.take().text
        try:
            return _TYPED[token.text.upper()](text)
        except ValueError:
            raise cursor.error(
                SchemeError,
                f"{text!r} is not a valid {token.text.upper()}",
                offset,
                behind.end - offset + 1,
            ) from None
    raise cursor.expected("a value (a number, a string, TRUE, FALSE, X'..', DATE '..', TIMESTAMP '..' or UUID '..')")


def _number(cursor: TokenCursor) -> int | Decimal:
    token = cursor.peek()
    if token is None or token.kind is not TokenKind.NUMBER:
        raise cursor.expected("a number")
    cursor.take()
    return int(token.text) if token.text.isdecimal() else Decimal(token.text)
