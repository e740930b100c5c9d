"""Sets of texts that patterns match: finitely many whole texts, and everything that begins with some prefixes.

A pattern is read from left to right as a product of such sets. Where a product has more texts than the limit, the texts
found so far become prefixes: the set grows, so pruning by it keeps more, and never too little.
"""

from __future__ import annotations

from collections.abc import Callable
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

    Args:
        texts_max: The maximum number of texts of a set.
        length_max: Longer texts, in characters, are left out; None if they count as well.
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
    """The domain of a pattern.

    Args:
        read: Reads the pattern with some sets.
        length_max: Longer texts, in characters, do not count; None if all do.
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
