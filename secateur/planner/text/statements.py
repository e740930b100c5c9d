"""Cuts a text of several statements into statements, for shells and scripts."""

from __future__ import annotations

from secateur.errors import SqlSyntaxError
from secateur.planner.text.tokens import tokenize


def split_statements(text: str) -> list[tuple[str, int, int]]:
    """Return the statements of a text without their semicolons; empty ones are left out.

    A semicolon in a string, a quoted name or a comment ends nothing.

    Returns:
        Of each its text, which may begin with comments, the offset of that, and that of its first word.

    Raises:
        SqlSyntaxError: A string, quoted name or comment does not end.
    """
    found: list[tuple[str, int, int]] = []
    start, first = 0, -1

    def end(stop: int) -> None:
        if first >= 0:
            written = text[start:stop]
            found.append((written.strip(), start + len(written) - len(written.lstrip()), first))

    for token in tokenize(text):
        if token.word == ";":
            end(token.start)
            start, first = token.end + 1, -1
        elif first < 0:
            first = token.start
    end(len(text))
    return found


def is_finished(text: str) -> bool:
    """Whether a text ends with the semicolon of its last statement, so that nobody has to write on."""
    try:
        tokens = tokenize(text)
    except SqlSyntaxError:
        return False  # a string is still open
    return bool(tokens) and tokens[-1].word == ";"
