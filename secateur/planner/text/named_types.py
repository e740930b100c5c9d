"""The places of a text where a type stands that has a name of the user's.

A type stands behind ``::``, in CAST and TRY_CAST, and in front of a text, as in ``mood 'ok'``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from secateur.partitioning.tables.table import NamedType
from secateur.planner.text.tokens import Token, TokenKind

_CASTS: Final = frozenset({"CAST", "TRY_CAST"})
_WITH_NAMES: Final = frozenset({"STRUCT", "ROW", "UNION"})


@dataclass(frozen=True, slots=True)
class NamedTypePlace:
    """A named type in a text.

    Attributes:
        start: Its first offset.
        end: The offset behind it.
        named: The type.
        literal: The place of the text behind it, which it makes a value; ``end`` is behind it. None for other places.
    """

    start: int
    end: int
    named: NamedType
    literal: tuple[int, int] | None = None


def named_types_in(tokens: Sequence[Token], types: Mapping[str, NamedType]) -> list[NamedTypePlace]:
    """The places of named types in the order of the text.

    Args:
        tokens: The tokens of a statement.
        types: The named types by case-folded name.
    """
    if not types or not any(token.text.casefold() in types for token in tokens):
        return []
    found: dict[int, NamedTypePlace] = {}
    for index, token in enumerate(tokens):
        if token.word == "::":
            places = _in_type(tokens, index + 1, types)
        elif token.word in _CASTS and _word(tokens, index + 1) == "(":
            places = _in_type(tokens, _behind_as(tokens, index + 2), types)
        else:
            places = _literal(tokens, index, types)
        found.update((place.start, place) for place in places)
    return [found[start] for start in sorted(found)]


def _literal(tokens: Sequence[Token], index: int, types: Mapping[str, NamedType]) -> Iterator[NamedTypePlace]:
    named = _named(tokens, index, types)
    is_text = index + 1 < len(tokens) and tokens[index + 1].kind is TokenKind.STRING
    if named is not None and is_text and _word(tokens, index - 1) not in (".", "AS", "::"):
        text = tokens[index + 1]
        yield NamedTypePlace(tokens[index].start, text.end + 1, named, (text.start, text.end + 1))


def _in_type(tokens: Sequence[Token], index: int, types: Mapping[str, NamedType]) -> Iterator[NamedTypePlace]:
    """The places in the type that begins with a token."""
    named = _named(tokens, index, types)
    if named is not None and _word(tokens, index + 1) not in (".", "("):
        yield NamedTypePlace(tokens[index].start, tokens[index].end + 1, named)
    if _word(tokens, index + 1) != "(":
        return
    has_names = _word(tokens, index) in _WITH_NAMES
    depth, at, is_start = 1, index + 2, True
    while at < len(tokens) and depth:
        if is_start and depth == 1:
            yield from _in_type(tokens, at + has_names, types)
        word = _word(tokens, at)
        depth += (word == "(") - (word == ")")
        is_start = word == ","
        at += 1


def _behind_as(tokens: Sequence[Token], index: int) -> int:
    """The index of the token behind the AS of a CAST, whose value begins at a token; behind all without one."""
    depth = 1
    for at in range(index, len(tokens)):
        word = tokens[at].word
        depth += (word in ("(", "[", "{")) - (word in (")", "]", "}"))
        if depth == 1 and word == "AS":
            return at + 1
        if not depth:
            break
    return len(tokens)


def _named(tokens: Sequence[Token], index: int, types: Mapping[str, NamedType]) -> NamedType | None:
    if not 0 <= index < len(tokens) or tokens[index].kind not in (TokenKind.WORD, TokenKind.QUOTED):
        return None
    return types.get(tokens[index].text.casefold())


def _word(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].word if 0 <= index < len(tokens) else ""
