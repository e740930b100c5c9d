"""Ranges of primary keys in lexicographic order, bounded by places between keys.

A :class:`KeyBoundary` is a place in the order of keys: before or after all keys that begin with some values. No next or
previous value has to be computed, so nothing can overflow at the end of a type (KUDU-1766), and a bound on a prefix of
the key determines whether it includes the keys that extend the prefix (KUDU-2173):

======================  ==========================================
bound                   place
======================  ==========================================
``key >= (500, 500)``   before (500, 500)
``key > (500, 500)``    after (500, 500)
``key < (500, 750)``    before (500, 750)
``key <= (500)``        after (500): all keys (500, ...) belong
no bound below / above  before / after (), the prefix of every key
======================  ==========================================

Source: Apache Kudu, "Scan Optimization & Partition Pruning", primary key bounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final, TypeAlias

import msgspec


class KeyBoundary(msgspec.Struct, frozen=True, array_like=True):
    """A place between keys.

    Attributes:
        values: Canonical values of leading primary-key columns, none of them NULL.
        after: Whether the place is after all keys that begin with the values, or before them.
    """

    values: tuple[Any, ...]
    after: bool

    @property
    def order(self) -> tuple[tuple[Any, ...], ...]:
        """Return a sort key.

        A boundary before a prefix sorts before every boundary on a longer key with that prefix, and one after it sorts
        after.
        """
        return (*((0, value) for value in self.values), (1,) if self.after else (-1,))


class KeyRange(msgspec.Struct, frozen=True, array_like=True):
    """The keys between two cuts."""

    lower: KeyBoundary
    upper: KeyBoundary

    @classmethod
    def of_prefix(cls, values: tuple[Any, ...]) -> KeyRange:
        """All keys that begin with some values."""
        return cls(KeyBoundary(values, after=False), KeyBoundary(values, after=True))

    @property
    def is_empty(self) -> bool:
        return self.lower.order >= self.upper.order


EVERY_KEY: Final = KeyRange.of_prefix(())


class KeyPrefix(msgspec.Struct, frozen=True, array_like=True, tag="prefix"):
    """The rows whose primary key begins with some values: the form of a single look-up.

    Attributes:
        values: Canonical values of leading primary-key columns.
    """

    values: tuple[Any, ...]


class KeyRanges(msgspec.Struct, frozen=True, array_like=True, tag="ranges"):
    """The rows whose primary key lies in one of some ranges.

    Attributes:
        ranges: Ascending; none is empty, and no two overlap or touch.
    """

    ranges: tuple[KeyRange, ...]


_LOWER: Final = itemgetter(0)


class IndexSlice(msgspec.Struct, frozen=True, array_like=True, tag="index"):
    """Rows that a secondary index finds, and perhaps others.

    Attributes:
        name: The index.
        columns: The columns of the index that are searched; ``part`` is over them as over a key.
        part: The rows.
    """

    name: str
    columns: tuple[str, ...]
    part: KeyPrefix | KeyRanges


KeySlice: TypeAlias = KeyPrefix | KeyRanges | IndexSlice
"""A part of a partition that binary search finds."""


def unite_ranges(ranges: Iterable[KeyRange]) -> KeyRanges:
    """Return the union of some ranges, given in any order; ranges that overlap or touch become one."""
    found: list[KeyRange] = []
    end: Any = None
    for low, high, current in sorted(((r.lower.order, r.upper.order, r) for r in ranges), key=_LOWER):
        if low >= high:
            continue
        if found and low <= end:
            if high > end:
                found[-1], end = KeyRange(found[-1].lower, current.upper), high
        else:
            found.append(current)
            end = high
    return KeyRanges(tuple(found))


def intersect_ranges(left: KeyRanges, right: KeyRanges) -> KeyRanges:
    """The keys in both. Cost: linear in the ranges."""
    found: list[KeyRange] = []
    a = b = 0
    while a < len(left.ranges) and b < len(right.ranges):
        first, second = left.ranges[a], right.ranges[b]
        met = KeyRange(max(first.lower, second.lower, key=_order), min(first.upper, second.upper, key=_order))
        if not met.is_empty:
            found.append(met)
        if first.upper.order < second.upper.order:
            a += 1
        else:
            b += 1
    return KeyRanges(tuple(found))


def _order(cut: KeyBoundary) -> tuple[tuple[Any, ...], ...]:
    return cut.order
