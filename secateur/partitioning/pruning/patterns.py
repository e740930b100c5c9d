"""Domains of prefixes and LIKE patterns.

The texts that begin with ``abc`` are ``[abc, abd)``: from the prefix itself up to the first text after all of them.
Texts are ordered by code points, which is the order of their UTF-8 bytes. After the last code point, the character
before it is advanced instead; surrogates, which no text holds, are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from secateur.partitioning.pruning.domain import EVERYTHING, Domain, Span, points

__all__ = ["PatternDomain", "starting_with", "texts_like"]

_CODE_POINT_MAX: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class PatternDomain:
    """The texts that a pattern can match: all are in ``superset``; ``exact`` is True if every text of it matches."""

    superset: Domain
    exact: bool


def starting_with(prefix: str) -> Domain | None:
    """The texts that begin with a prefix; None when it is no text that UTF-8 has."""
    if not _is_text(prefix):
        return None
    behind = _behind(prefix)
    return Domain(spans=(Span(prefix, behind, upper_closed=behind is None),)) if prefix else EVERYTHING


def texts_like(pattern: str, escape: str = "") -> PatternDomain | None:
    """The texts that ``text LIKE pattern ESCAPE escape`` may match.

    Args:
        pattern: ``%`` stands for any text, ``_`` for one character.
        escape: Makes the character behind it stand for itself; empty for none.

    Returns:
        None for patterns that the dialect refuses or reads in its own way: a pattern that ends with the escape
        character, an escape of several bytes, a NUL.
    """
    if not _is_text(pattern) or "\0" in pattern or len(escape) > 1 or not escape.isascii():
        return None
    prefix: list[str] = []
    rest = ""
    characters = iter(pattern)
    for character in characters:
        literal = character == escape
        if literal:
            character = next(characters, "")
            if not character:
                return None
        if rest or (not literal and character in "%_"):
            rest += "x" if literal else character
        else:
            prefix.append(character)
    found = starting_with("".join(prefix))
    if not rest:
        return PatternDomain(points(["".join(prefix)]), exact=True)
    return None if found is None else PatternDomain(found, exact=not rest.strip("%"))


def _behind(prefix: str) -> str | None:
    """The smallest text that is greater than all texts that begin with the prefix."""
    for position in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[position]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _CODE_POINT_MAX:
            return prefix[:position] + chr(following)
    return None


def _is_text(value: str) -> bool:
    return not any(ord(character) in _SURROGATES for character in value)
