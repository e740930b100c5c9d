"""Cuts a text of several statements into statements, for shells and scripts."""

from __future__ import annotations

from sqlglot import TokenType

from secateur.errors import SqlSyntaxError
from secateur.planner.text.dialect import tokenize


def split_statements(text: str) -> list[str]:
    """Return the statements of a text without their semicolons; empty ones are left out.

    A semicolon in a string, a quoted name or a comment ends nothing.

    Raises:
        SqlSyntaxError: A string, quoted name or comment does not end.
    """
    found: list[str] = []
    start, is_empty = 0, True
    for token in tokenize(text):
        if token.token_type is TokenType.SEMICOLON:
            if not is_empty:
                found.append(text[start : token.start].strip())
            start, is_empty = token.end + 1, True
        else:
            is_empty = False
    if not is_empty:
        found.append(text[start:].strip())
    return found


def is_finished(text: str) -> bool:
    """Whether a text ends with the semicolon of its last statement, so that nobody has to write on."""
    try:
        tokens = tokenize(text)
    except SqlSyntaxError:
        return False  # a string is still open
    return bool(tokens) and tokens[-1].token_type is TokenType.SEMICOLON
