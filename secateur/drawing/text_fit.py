"""How much room a text takes in a font of fixed width, and what is left of one that takes too much."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

__all__ = ["columns_of", "fit", "fit_lines", "printable"]

_ELLIPSIS: Final = "…"
_REPLACEMENT: Final = "\ufffd"
_UNPRINTABLE: Final = frozenset({"Cc", "Cs", "Cn", "Co"})
"""Control characters, halves of surrogate pairs, and code points without a meaning: XML cannot hold the most of them."""


def printable(text: str) -> str:
    """The text in one line, with a replacement character for each that cannot be shown."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if char in "\n\r\t" else _REPLACEMENT if unicodedata.category(char) in _UNPRINTABLE else char for char in text)


def columns_of(text: str) -> int:
    """The columns of a text on a terminal: wide characters, such as Chinese ones, take two, marks that stand on others none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def fit(text: str, columns_max: int) -> str:
    """The text, or as much of its beginning as fits with an ellipsis behind it."""
    if columns_of(text) <= columns_max:
        return text
    room = columns_max - 1
    for position, char in enumerate(text):
        room -= _columns(char)
        if room < 0:
            return text[:position] + _ELLIPSIS
    raise AssertionError("a text that is too long has a character that is one too many")


def fit_lines(lines: Sequence[str], lines_max: int) -> tuple[str, ...]:
    """The lines, or the first of them with the number of the others as the last."""
    return tuple(lines) if len(lines) <= lines_max else (*lines[: lines_max - 1], f"and {len(lines) - lines_max + 1} more")


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
