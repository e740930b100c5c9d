"""Sets of texts that patterns match: finitely many whole texts, and everything that begins with some prefixes.

Here are the patterns of LIKE, ILIKE and GLOB; :mod:`~secateur.partitioning.pruning.regular_expressions` has the other
ones.

A pattern is read from left to right as a product of such sets. Where a product has more texts than the limit, the texts
found so far become prefixes: the set grows, so pruning by it keeps more, and never too little.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from secateur.partitioning.pruning.domain import EVERYTHING, Domain, Span, points, within

PATTERN_TEXTS_MAX: Final = 4096
"""A pattern of more matches only bounds ranges of texts."""
_PREFIXES_MAX: Final = 64
"""Of a pattern with infinitely many matches: each prefix is a span, which costs more than a text."""

_CODE_POINT_MAX: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)
_PRODUCTS_PER_TEXT: Final = 16


@dataclass(frozen=True, slots=True)
class PatternDomain:
    """The texts that a pattern can match: all are in ``superset``; ``exact`` is True if every text of it matches."""

    superset: Domain
    exact: bool


@dataclass(frozen=True, slots=True)
class TextSet:
    """The texts ``texts``, and all that begin with one of ``prefixes``.

    ``exact`` is False if the set may hold texts that do not match.
    """

    texts: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    exact: bool = True

    def domain(self) -> PatternDomain:
        """The set as a domain of a text column."""
        if "" in self.prefixes:
            return PatternDomain(EVERYTHING, self.exact)
        if not self.prefixes:
            return PatternDomain(Domain(self.texts), self.exact)
        spans = within(_span(prefix) for prefix in self.prefixes)
        return PatternDomain(spans.unite(points(self.texts)) if self.texts else spans, self.exact)


EMPTY_TEXT: Final = TextSet(frozenset({""}))
ANY_TEXT: Final = TextSet(prefixes=frozenset({""}))
ANY_CHARACTER: Final = TextSet(prefixes=frozenset({""}), exact=False)
"""One character: there are too many to be listed, so this is any text."""


class TextSets:
    """The operations on sets of texts for one pattern.

    A set has at most ``texts_max`` texts. Those with more than ``length_max`` characters are left out; None: none.
    """

    def __init__(self, texts_max: int, length_max: int | None = None) -> None:
        self._texts_max = texts_max
        self._length_max = length_max
        # Many products of few texts cost as much as one product of many.
        self._products_left = _PRODUCTS_PER_TEXT * texts_max

    def of(self, texts: frozenset[str]) -> TextSet:
        """The set of some texts."""
        return self._short(TextSet(texts)) if len(texts) <= self._texts_max else ANY_CHARACTER

    def product(self, left: TextSet, right: TextSet) -> TextSet:
        """The texts that consist of a text of each."""
        if not left.texts:
            # What follows a prefix is in the set already.
            return left if right is ANY_TEXT or not left.exact else TextSet(prefixes=left.prefixes, exact=False)
        count = len(left.texts) * (len(right.texts) + len(right.prefixes))
        self._products_left -= count
        if count + len(left.prefixes) > self._texts_max or self._products_left < 0:
            return self._short(TextSet(prefixes=left.texts | left.prefixes, exact=False))
        return self._short(
            TextSet(
                frozenset(first + second for first in left.texts for second in right.texts),
                left.prefixes | {first + second for first in left.texts for second in right.prefixes},
                left.exact and right.exact and (not left.prefixes or right is ANY_TEXT),
            )
        )

    def union(self, left: TextSet, right: TextSet) -> TextSet:
        """The texts of both."""
        texts, prefixes = left.texts | right.texts, left.prefixes | right.prefixes
        self._products_left -= len(texts) + len(prefixes)
        if len(texts) + len(prefixes) > self._texts_max or self._products_left < 0:
            return ANY_CHARACTER
        return TextSet(texts, prefixes, left.exact and right.exact)

    def repeated(self, part: TextSet, low: int, high: int | None) -> TextSet:
        """The texts that consist of ``low`` to ``high`` texts of ``part``; None is any number."""
        found = EMPTY_TEXT
        for _ in range(low):
            found = self.product(found, part)
            if not found.texts:
                return TextSet(prefixes=found.prefixes, exact=False)
        if high is None:
            return self.product(found, self._any_number(part))
        optional = self.union(EMPTY_TEXT, part)
        for _ in range(high - low):
            longer = self.product(found, optional)
            if longer == found:
                break
            found = longer
        return found

    def _any_number(self, part: TextSet) -> TextSet:
        if self._length_max is not None:
            found = EMPTY_TEXT
            while True:
                longer = self.product(found, self.union(EMPTY_TEXT, part))
                if longer == found:
                    return found
                found = longer
        if part.texts <= {""} and not part.prefixes:
            return TextSet(EMPTY_TEXT.texts, exact=part.exact)
        # The first text that is not empty begins the rest; there may be none.
        return self.union(EMPTY_TEXT, TextSet(prefixes=(part.texts - {""}) | part.prefixes, exact=False))

    def _short(self, found: TextSet) -> TextSet:
        """The set without texts that are too long."""
        longest = self._length_max
        if longest is None:
            return found
        return TextSet(
            frozenset(text for text in found.texts if len(text) <= longest)
            | {prefix for prefix in found.prefixes if len(prefix) == longest},
            frozenset(prefix for prefix in found.prefixes if len(prefix) < longest),
            exact=False,
        )


def pattern_domain(read: Callable[[TextSets], TextSet], length_max: int | None) -> PatternDomain:
    """The domain of a pattern, which ``read`` reads with some sets.

    Texts with more than ``length_max`` characters do not count; None: all do.
    """
    found = read(TextSets(PATTERN_TEXTS_MAX, length_max))
    if len(found.prefixes) > _PREFIXES_MAX:
        found = read(TextSets(_PREFIXES_MAX, length_max))
    return found.domain()


def starting_with(prefix: str) -> Domain | None:
    """The texts that begin with a prefix; None when it is no text that UTF-8 has.

    They are ``[abc, abd)``: from the prefix itself up to the first text after all of them. Texts are ordered by code
    points, which is the order of their UTF-8 bytes.
    """
    if not is_text(prefix):
        return None
    return Domain(spans=(_span(prefix),)) if prefix else EVERYTHING


def is_text(value: str) -> bool:
    """Whether UTF-8 has a form of a string, which is so unless it holds a surrogate."""
    return not any(ord(character) in _SURROGATES for character in value)


def _span(prefix: str) -> Span:
    behind = _behind(prefix)
    return Span(prefix, behind, upper_closed=behind is None)


def _behind(prefix: str) -> str | None:
    """The smallest text that is greater than all texts that begin with the prefix.

    After the last code point, the character before it is advanced instead; surrogates, which no text holds, are
    skipped.
    """
    for position in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[position]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _CODE_POINT_MAX:
            return prefix[:position] + chr(following)
    return None


_BEYOND_ASCII: Final = {"i": "\u0130", "k": "\u212a"}
_ANY_CASE: Final = {
    letter: frozenset({letter.lower(), letter.upper(), *_BEYOND_ASCII.get(letter.lower(), "")})
    for letter in string.ascii_letters
}
"""The characters that are a letter in lower case, as DuckDB's ILIKE finds them."""
_ALPHANUMERIC: Final = frozenset(string.ascii_letters + string.digits)
_PATTERN_LENGTH_MAX: Final = 1000


def texts_like(pattern: str, escape: str = "", *, length_max: int | None = None) -> PatternDomain | None:
    """The texts that ``text LIKE pattern ESCAPE escape`` may match.

    A pattern is a run of characters and wildcards. The characters before the first wildcard bound the text, and a
    wildcard that stands for few characters, such as a class, or a letter in either case, multiplies them.

    Args:
        pattern: ``%`` stands for any text, ``_`` for one character.
        escape: Makes the character behind it stand for itself; empty for none.
        length_max: Longer texts, in characters, do not count.

    Returns:
        None for patterns that the dialect refuses or reads in its own way: a pattern that ends with the escape
        character, an escape of several bytes, a NUL.
    """
    tokens = _like_tokens(pattern, escape)
    return None if tokens is None else pattern_domain(lambda sets: _product(sets, tokens), length_max)


def texts_like_in_any_case(pattern: str, escape: str = "", *, length_max: int | None = None) -> PatternDomain | None:
    """The texts that ``text ILIKE pattern ESCAPE escape`` may match; as :func:`texts_like`."""
    if escape in _ANY_CASE or len(pattern) > _PATTERN_LENGTH_MAX:
        return None
    tokens = _like_tokens(pattern, escape)
    if tokens is None:
        return None

    def cased() -> Iterator[str | TextSet]:
        for token in tokens:
            if isinstance(token, TextSet):
                yield token
                continue
            for character in token:
                yield (
                    TextSet(_ANY_CASE.get(character, frozenset({character}))) if character.isascii() else ANY_CHARACTER
                )

    return pattern_domain(lambda sets: _product(sets, cased()), length_max)


def texts_globbed(pattern: str, *, length_max: int | None = None) -> PatternDomain | None:
    """The texts that ``text GLOB pattern`` may match.

    Args:
        pattern: ``*`` stands for any text, ``?`` for one byte, ``[abc]`` and ``[a-c]`` for one of some bytes.
        length_max: Longer texts, in characters, do not count.

    Returns:
        None for patterns that are not read.
    """
    if not is_text(pattern) or "\0" in pattern or len(pattern) > _PATTERN_LENGTH_MAX:
        return None
    tokens = list(_glob_tokens(pattern))
    return pattern_domain(lambda sets: _product(sets, tokens), length_max)


def _product(sets: TextSets, tokens: Iterable[str | TextSet]) -> TextSet:
    found = EMPTY_TEXT
    for token in tokens:
        found = sets.product(found, sets.of(frozenset({token})) if isinstance(token, str) else token)
    return found


def _like_tokens(pattern: str, escape: str) -> list[str | TextSet] | None:
    """The runs of characters and the wildcards of a pattern."""
    if not is_text(pattern) or "\0" in pattern or len(escape) > 1 or not escape.isascii():
        return None
    tokens: list[str | TextSet] = []
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
            tokens.append(ANY_TEXT if character == "%" else ANY_CHARACTER)
            continue
        run.append(character)
    return [*tokens, "".join(run)] if run else tokens


def _glob_tokens(pattern: str) -> Iterator[str | TextSet]:
    position = 0
    while position < len(pattern):
        character = pattern[position]
        match character:
            case "*":
                yield ANY_TEXT
            case "?":
                yield ANY_CHARACTER
            case "[":
                end = pattern.find("]", position)
                characters = _listed(pattern[position + 1 : end]) if end > 0 else None
                if characters is None:
                    # The bytes that such a class stands for, and where it ends, only DuckDB knows.
                    yield ANY_CHARACTER
                    return
                yield TextSet(characters)
                position = end
            case "\\":
                position += 1
                if pattern[position : position + 1] not in tuple(string.punctuation):
                    yield ANY_CHARACTER
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
