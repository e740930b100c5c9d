"""The parts of a type's SQL text: elements of ``T[]``, arguments of ``STRUCT(a T, b U)``, names of fields."""

from __future__ import annotations

import re
from typing import Final

from secateur.partitioning.types.keywords import KEYWORDS

_SUFFIX: Final = re.compile(r"(.*)\[\s*(\d*)\s*\]", re.DOTALL)
_QUOTED_NAME: Final = re.compile(r'"(?:[^"]|"")*"')
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def without_suffix(text: str) -> tuple[str, int | None] | None:
    """The element type and the length of ``T[3]``, the length None for ``T[]``; None for a text that is no list."""
    found = _SUFFIX.fullmatch(text)
    return None if found is None else (found[1].rstrip(), int(found[2]) if found[2] else None)


def arguments(text: str, word: str) -> list[str]:
    """Split ``WORD(a T, b U)`` into its arguments; empty when ``text`` is built otherwise."""
    if not (text.startswith(f"{word}(") and text.endswith(")")):
        return []
    parts, depth, quote, start = [], 0, "", len(word) + 1
    for index in range(start, len(text) - 1):
        char = text[index]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:-1].strip())
    return parts


def name_and_type(text: str) -> tuple[str, str]:
    """Split ``name T`` or ``"quoted name" T`` of a STRUCT, the name as written."""
    if quoted := _QUOTED_NAME.match(text):
        return quoted[0], text[quoted.end() :].strip()
    name, _, kind = text.partition(" ")
    return name, kind.strip()


def unquoted(name: str) -> str:
    """A name as it is, of a name as it is written."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def field_name(name: str) -> str:
    """A name of a field as DuckDB writes it: in quotation marks if it is a keyword, or more than a plain word."""
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'
