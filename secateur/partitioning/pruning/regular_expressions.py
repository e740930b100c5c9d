"""The texts that simple regular expressions match.

DuckDB matches with RE2. The expressions read here are those of which RE2's documentation leaves no doubt: characters,
``.``, classes, groups, alternatives, repetition, and ``^`` and ``$`` at the ends. Everything else is left to DuckDB,
also what RE2 refuses, so that its error is raised.

Source: the syntax of RE2, https://github.com/google/re2/wiki/Syntax.
"""

from __future__ import annotations

import re
import string
from typing import Final

from secateur.partitioning.pruning import text_sets

_LENGTH_MAX: Final = 1000
_DEPTH_MAX: Final = 32
_REPETITIONS_MAX: Final = 1000
"""RE2 refuses expressions that repeat more than this; the sum of all repetitions is never less than what it counts."""
_RANGE_MAX: Final = 1024
"""Ranges of more characters are not listed. There are more surrogates than that, so none of them is ever listed."""
_SPECIAL: Final = frozenset("\\.+*?()|[]{}^$")
_PERL_CLASSES: Final = {"d": string.digits, "w": string.ascii_letters + string.digits + "_", "s": "\t\n\f\r "}
_CONTROL: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_SIGNS: Final[dict[str, tuple[int, int | None]]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_ANY_CASE: Final = {
    letter: frozenset({letter, letter.upper(), *{"k": "\u212a", "s": "\u017f"}.get(letter, "")})
    for letter in string.ascii_lowercase
}
"""The characters that match a letter in either case: also the sign of Kelvin, and a long s."""
_OPTIONS: Final = frozenset("cilmnps")
_COUNTS: Final = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{0,4}))?\}")


def texts_similar(pattern: str, options: str = "", *, length_max: int | None = None) -> text_sets.PatternDomain | None:
    """The texts that a regular expression matches as a whole: ``SIMILAR TO`` and ``regexp_full_match``.

    Args:
        pattern: The expression.
        options: ``i`` matches letters in either case, ``c`` does not; ``l`` takes the expression as a text. With ``s``,
            ``m``, ``n`` or ``p``, ``.`` matches a line break or does not. Others are not read.
        length_max: Longer texts, in characters, do not count.

    Returns:
        None for expressions that are not read.
    """
    return _domain(pattern, options, length_max, whole=True)


def texts_matched(pattern: str, options: str = "", *, length_max: int | None = None) -> text_sets.PatternDomain | None:
    """The texts in which a regular expression matches some part: ``~`` and ``regexp_matches``.

    Only one that begins with ``^`` bounds them.

    Arguments and result are those of :func:`texts_similar`.
    """
    return _domain(pattern, options, length_max, whole=False)


def _domain(pattern: str, options: str, length_max: int | None, *, whole: bool) -> text_sets.PatternDomain | None:
    if (
        len(pattern) > _LENGTH_MAX
        or not text_sets.is_text(pattern)
        or "\0" in pattern
        or not _OPTIONS.issuperset(options)
    ):
        return None
    any_case = options.rfind("i") > options.rfind("c")  # the last one counts

    def read(sets: text_sets.TextSets) -> text_sets.TextSet:
        reader = _Reader(pattern, sets, whole=whole, any_case=any_case)
        return reader.read_literally() if "l" in options else reader.read()

    try:
        return text_sets.pattern_domain(read, length_max)
    except _NotReadError:
        return None


class _NotReadError(Exception):
    """The expression has something whose meaning is not certain here."""


class _Reader:
    """A recursive descent over one expression."""

    def __init__(self, pattern: str, sets: text_sets.TextSets, *, whole: bool, any_case: bool) -> None:
        self._pattern = pattern
        self._sets = sets
        self._whole = whole
        self._any_case = any_case
        self._position = 0
        self._repetitions = 0

    def read(self) -> text_sets.TextSet:
        found = self._anchored()
        while self._skip("|"):
            found = self._sets.union(found, self._anchored())
        if self._next:
            raise _NotReadError
        return found

    def read_literally(self) -> text_sets.TextSet:
        """The same for an expression whose characters all stand for themselves."""
        if not self._whole:
            return text_sets.ANY_CHARACTER
        found = text_sets.EMPTY_TEXT
        for character in self._pattern:
            found = self._sets.product(found, text_sets.TextSet(frozenset(self._cased({character}))))
        return found

    @property
    def _next(self) -> str:
        return self._pattern[self._position : self._position + 1]

    def _skip(self, text: str) -> bool:
        if not self._pattern.startswith(text, self._position):
            return False
        self._position += len(text)
        return True

    def _take(self) -> str:
        character = self._next
        if not character:
            raise _NotReadError
        self._position += 1
        return character

    def _anchored(self) -> text_sets.TextSet:
        """One alternative of the whole expression, with what may stand before and behind it."""
        begins = self._skip("^") or self._whole
        found = self._sequence(0)
        ends = self._skip("$") or self._whole
        if not begins:
            return text_sets.ANY_CHARACTER
        return found if ends else self._sets.product(found, text_sets.ANY_TEXT)

    def _alternatives(self, depth: int) -> text_sets.TextSet:
        if depth > _DEPTH_MAX:
            raise _NotReadError
        found = self._sequence(depth)
        while self._skip("|"):
            found = self._sets.union(found, self._sequence(depth))
        return found

    def _sequence(self, depth: int) -> text_sets.TextSet:
        found = text_sets.EMPTY_TEXT
        while self._next and self._next not in "|)$":
            counted = self._repetitions
            part = self._atom(depth)
            if self._next == "{" and self._repetitions > counted:
                # The counts of nested repetitions multiply, and RE2 refuses large products.
                raise _NotReadError
            found = self._sets.product(found, self._quantified(part))
        return found

    def _atom(self, depth: int) -> text_sets.TextSet:
        match self._take():
            case "(":
                self._skip("?:")
                found = self._alternatives(depth + 1)
                if not self._skip(")"):
                    raise _NotReadError
                return found
            case "[":
                return self._class()
            case ".":
                return text_sets.ANY_CHARACTER
            case "\\" if self._next in ("D", "W", "S"):
                self._position += 1
                return text_sets.ANY_CHARACTER
            case "\\":
                return self._sets.of(frozenset(self._escaped()))
            case character if character in _SPECIAL:
                raise _NotReadError
            case character:
                return text_sets.TextSet(frozenset(self._cased({character})))

    def _cased(self, characters: set[str]) -> set[str]:
        """Some characters, and what they are in the other case if that does not matter."""
        if not self._any_case:
            return characters
        if not all(character.isascii() for character in characters):
            raise _NotReadError
        return {cased for character in characters for cased in _ANY_CASE.get(character.lower(), character)}

    def _quantified(self, part: text_sets.TextSet) -> text_sets.TextSet:
        counts = self._counts()
        if counts is None:
            return part
        self._skip("?")  # prefers the shortest match, which changes nothing about whether there is one
        if self._next in ("?", "*", "+", "{"):
            raise _NotReadError
        return self._sets.repeated(part, *counts)

    def _counts(self) -> tuple[int, int | None] | None:
        """Read ``?``, ``*``, ``+``, ``{n}``, ``{n,}`` or ``{n,m}``: how often what stands before it is repeated."""
        if self._next in _SIGNS:
            return _SIGNS[self._take()]
        if self._next != "{":
            return None
        found = _COUNTS.match(self._pattern, self._position)
        if found is None:
            raise _NotReadError
        low = int(found[1])
        high = low if found[2] is None else int(found[3]) if found[3] else None
        self._repetitions += max(low, high or 0, 1)
        if (high is not None and high < low) or self._repetitions > _REPETITIONS_MAX:
            raise _NotReadError
        self._position = found.end()
        return low, high

    def _class(self) -> text_sets.TextSet:
        """``[...]``, whose first bracket has been read."""
        unlisted = self._skip("^")
        characters: set[str] = set()
        if self._next == "]":
            raise _NotReadError
        behind_range = False
        while not self._skip("]"):
            if behind_range and self._next == "-" and not self._pattern.startswith("-]", self._position):
                raise _NotReadError
            first = self._class_item()
            behind_range = self._next == "-" and not self._pattern.startswith("-]", self._position)
            if not behind_range:
                characters.update(first)
                continue
            self._position += 1
            last = self._class_item()
            if len(first) != 1 or len(last) != 1 or last < first:
                raise _NotReadError
            if ord(last) - ord(first) < _RANGE_MAX:
                characters.update(map(chr, range(ord(first), ord(last) + 1)))
            else:
                unlisted = True
        return text_sets.ANY_CHARACTER if unlisted else self._sets.of(frozenset(self._cased(characters)))

    def _class_item(self) -> str:
        """The characters that an item of a class stands for: one, except for an escape such as that of digits."""
        character = self._take()
        if character == "\\":
            return self._escaped()
        if character == "[" and self._next in (":", ".", "="):
            raise _NotReadError
        return character

    def _escaped(self) -> str:
        """The characters that a backslash, which has been read, and what follows it stand for."""
        character = self._take()
        if character in string.punctuation:
            return character
        found = _PERL_CLASSES.get(character) or _CONTROL.get(character)
        if found is None or (self._any_case and character in _PERL_CLASSES):
            raise _NotReadError
        return found
