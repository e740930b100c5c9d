"""The texts that LIKE, ILIKE and GLOB patterns match.

A pattern is a run of characters and wildcards. The characters before the first wildcard bound the text, and a wildcard
that stands for few characters, such as a class, or a letter in either case, multiplies them.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator
from typing import Final

from secateur.partitioning.pruning import text_sets

_BEYOND_ASCII: Final = {"i": "\u0130", "k": "\u212a"}
_ANY_CASE: Final = {
    letter: frozenset({letter.lower(), letter.upper(), *_BEYOND_ASCII.get(letter.lower(), "")})
    for letter in string.ascii_letters
}
"""The characters that are a letter in lower case, as DuckDB's ILIKE finds them."""
_ALPHANUMERIC: Final = frozenset(string.ascii_letters + string.digits)
_PATTERN_LENGTH_MAX: Final = 1000


def texts_like(pattern: str, escape: str = "", *, length_max: int | None = None) -> text_sets.PatternDomain | None:
    """The texts that ``text LIKE pattern ESCAPE escape`` may match.

    Args:
        pattern: ``%`` stands for any text, ``_`` for one character.
        escape: Makes the character behind it stand for itself; empty for none.
        length_max: Longer texts, in characters, do not count.

    Returns:
        None for patterns that the dialect refuses or reads in its own way: a pattern that ends with the escape
        character, an escape of several bytes, a NUL.
    """
    tokens = _like_tokens(pattern, escape)
    return None if tokens is None else text_sets.pattern_domain(lambda sets: _product(sets, tokens), length_max)


def texts_like_in_any_case(
    pattern: str, escape: str = "", *, length_max: int | None = None
) -> text_sets.PatternDomain | None:
    """The texts that ``text ILIKE pattern ESCAPE escape`` may match; as :func:`texts_like`."""
    if escape in _ANY_CASE or len(pattern) > _PATTERN_LENGTH_MAX:
        return None
    tokens = _like_tokens(pattern, escape)
    if tokens is None:
        return None

    def cased() -> Iterator[str | text_sets.TextSet]:
        for token in tokens:
            if isinstance(token, text_sets.TextSet):
                yield token
                continue
            for character in token:
                yield (
                    text_sets.TextSet(_ANY_CASE.get(character, frozenset({character})))
                    if character.isascii()
                    else text_sets.ANY_CHARACTER
                )

    return text_sets.pattern_domain(lambda sets: _product(sets, cased()), length_max)


def texts_globbed(pattern: str, *, length_max: int | None = None) -> text_sets.PatternDomain | None:
    """The texts that ``text GLOB pattern`` may match.

    Args:
        pattern: ``*`` stands for any text, ``?`` for one byte, ``[abc]`` and ``[a-c]`` for one of some bytes.
        length_max: Longer texts, in characters, do not count.

    Returns:
        None for patterns that are not read.
    """
    if not text_sets.is_text(pattern) or "\0" in pattern or len(pattern) > _PATTERN_LENGTH_MAX:
        return None
    tokens = list(_glob_tokens(pattern))
    return text_sets.pattern_domain(lambda sets: _product(sets, tokens), length_max)


def _product(sets: text_sets.TextSets, tokens: Iterable[str | text_sets.TextSet]) -> text_sets.TextSet:
    found = text_sets.EMPTY_TEXT
    for token in tokens:
        found = sets.product(found, sets.of(frozenset({token})) if isinstance(token, str) else token)
    return found


def _like_tokens(pattern: str, escape: str) -> list[str | text_sets.TextSet] | None:
    """The runs of characters and the wildcards of a pattern."""
    if not text_sets.is_text(pattern) or "\0" in pattern or len(escape) > 1 or not escape.isascii():
        return None
    tokens: list[str | text_sets.TextSet] = []
    run: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            character = next(characters, "")
            if not character:
                return None
        elif character in "%_":
            if run:
                tokens.append("".join(run))
                run.clear()
            tokens.append(text_sets.ANY_TEXT if character == "%" else text_sets.ANY_CHARACTER)
            continue
        run.append(character)
    return [*tokens, "".join(run)] if run else tokens


def _glob_tokens(pattern: str) -> Iterator[str | text_sets.TextSet]:
    position = 0
    while position < len(pattern):
        character = pattern[position]
        match character:
            case "*":
                yield text_sets.ANY_TEXT
            case "?":
                yield text_sets.ANY_CHARACTER
            case "[":
                end = pattern.find("]", position)
                characters = _listed(pattern[position + 1 : end]) if end > 0 else None
                if characters is None:
                    # The bytes that such a class stands for, and where it ends, only DuckDB knows.
                    yield text_sets.ANY_CHARACTER
                    return
                yield text_sets.TextSet(characters)
                position = end
            case "\\":
                position += 1
                if pattern[position : position + 1] not in tuple(string.punctuation):
                    yield text_sets.ANY_CHARACTER
                    return
                yield pattern[position]
            case _:
                yield character
        position += 1


def _listed(content: str) -> frozenset[str] | None:
    """The characters of a class of letters and digits, and ranges of them; None for any other."""
    found: set[str] = set()
    position = 0
    while position < len(content):
        first = last = content[position]
        if content[position + 1 : position + 2] == "-":
            last = content[position + 2 : position + 3]
            position += 2
        if first not in _ALPHANUMERIC or last not in _ALPHANUMERIC or last < first:
            return None
        found.update(map(chr, range(ord(first), ord(last) + 1)))
        position += 1
    return frozenset(found) or None
