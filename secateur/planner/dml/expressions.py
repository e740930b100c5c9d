"""Finds the span of an expression in a statement that we parse: it ends at a word or symbol that cannot continue it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from secateur.errors import SqlSyntaxError
from secateur.planner.text.token_cursor import TokenCursor

OPENING: Final = frozenset("([{")
CLOSING: Final = frozenset(")]}")


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A part of the user's text: its first offset and the one behind it."""

    start: int
    end: int


def read_expression(cursor: TokenCursor, *ends: str, what: str = "a value") -> TextSpan:
    """Skip an expression and return its span.

    Args:
        cursor: At its first token.
        ends: Words and symbols before which it ends (``"ON CONFLICT"`` are two), outside of parentheses, brackets
            and CASE ... END; the end of the statement always ends it.
        what: A description of the expression, for the error when there is none.

    Raises:
        SqlSyntaxError: There is none, or an unmatched closing parenthesis.
    """
    start = end = cursor.offset
    depth, previous = 0, ""
    while not cursor.at_end and (depth or not _ends(cursor, previous, ends)):
        is_word = cursor.at("CASE") or cursor.at("END")
        token = cursor.take()
        if token.word in OPENING or (is_word and token.text.upper() == "CASE"):
            depth += 1
        elif token.word in CLOSING or (is_word and depth):
            if depth == 0:
                raise cursor.error(SqlSyntaxError, f"{token.text!r} closes nothing", token.start)
            depth -= 1
        end, previous = token.end + 1, token.text.upper()
    if depth:
        raise cursor.expected("more")
    if start == end:
        raise cursor.expected(what)
    return TextSpan(start, end)


def read_parenthesized(cursor: TokenCursor) -> TextSpan:
    """Skip a parenthesis, which comes next, and return the span of its content.

    Raises:
        SqlSyntaxError: No parenthesis closes it.
    """
    start, depth = cursor.offset, 0
    while not cursor.at_end:
        token = cursor.take()
        depth += (token.word in OPENING) - (token.word in CLOSING)
        if not depth:
            return TextSpan(start, token.end + 1)
    raise cursor.expected("more")


def is_default(cursor: TokenCursor, *ends: str) -> bool:
    """Whether DEFAULT comes next as a complete value, followed by one of ``ends`` or the end of the statement."""
    return cursor.at("DEFAULT") and (cursor.peek(1) is None or any(cursor.at("DEFAULT", end) for end in ends))


def _ends(cursor: TokenCursor, previous: str, ends: tuple[str, ...]) -> bool:
    # FROM also occurs inside a value: a IS DISTINCT FROM b.
    return any(cursor.at(*end.split()) for end in ends) and not (previous == "DISTINCT" and cursor.at("FROM"))
