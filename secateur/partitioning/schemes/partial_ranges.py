"""The ranges of a table as far as a client knows them, and the pages in which it learns more.

A client of a table with 100,000 ranges needs those of its keys. It holds the *outline* of the scheme, which is
everything but the ranges, and fetches pages of neighbouring ranges when a statement needs them. A page covers an
interval of keys completely, the gaps in it included, so a key of that interval without a range has none.

The keys of which no page is known are *unknown intervals*. The resolved form of the scheme has a pseudo range for each
of them, so that the search for a key and the pruning by intervals need no rule of their own: whoever reaches a pseudo
range has to fetch its ranges first (:class:`~secateur.errors.UnknownRangesError`).

Source: Apache Kudu, "Scan Optimization & Partition Pruning", section "Tablet Lookup Optimization", and the batches of
    its GetTableLocations.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from secateur.errors import UnknownRangesError
from secateur.partitioning.schemes.components import (
    Bound,
    HashComponent,
    RangeColumns,
    RangePartition,
    by_lower_bound,
    earlier,
    later,
    packed,
    unpacked,
)

PAGE_RANGES: Final = 256
"""Ranges in one page: some kilobytes, which cost little more than one range and spare the neighbours a round trip."""
ANSWER_PAGES_MAX: Final = 64
"""Pages in one answer, so that a statement that needs all ranges holds up nobody else at the server for long."""


class KeyInterval(NamedTuple):
    """Keys of the range columns, or of the first of them.

    Attributes:
        lower: The first key, or the beginning of it; None where unbounded.
        upper: The last key, or the beginning of it, all keys with this beginning included; None where unbounded. In
            :attr:`PartialRanges.unknown` and of a page it is the first key behind.
    """

    lower: Bound
    upper: Bound


EVERY_KEY: Final = KeyInterval(None, None)


class RangePage(msgspec.Struct, frozen=True, array_like=True):
    """Some neighbouring ranges.

    Attributes:
        keys: The interval that the page covers.
        columns: The ranges, without names; their hash components are in :attr:`PartialRanges.hash_lists`.
        bases: For each of them the first of its partition ids; int32, little-endian.
    """

    keys: KeyInterval
    columns: RangeColumns
    bases: bytes


class PartialRanges(msgspec.Struct, frozen=True, array_like=True):
    """The known ranges of a scheme.

    Attributes:
        partition_count: The size of the id space.
        retired: The ids that hold no rows, as intervals ``[start, stop)``, ascending.
        hash_lists: The distinct lists of hash components of the live ranges.
        has_gaps: Whether some keys have no partition.
        catch_all_base: The first id of the catch-all; None without one.
        ranges: The known ranges, and the gaps that the catch-all fills between them, sorted by lower bound.
        bases: For each of them the first of its partition ids.
        unknown: The intervals of which nothing is known, ascending and disjoint.
    """

    partition_count: int
    retired: tuple[tuple[int, int], ...]
    hash_lists: tuple[tuple[HashComponent, ...], ...]
    has_gaps: bool
    catch_all_base: int | None
    ranges: tuple[RangePartition, ...] = ()
    bases: tuple[int, ...] = ()
    unknown: tuple[KeyInterval, ...] = (EVERY_KEY,)

    def with_pages(self, pages: Iterable[RangePage]) -> PartialRanges:
        """The known ranges, with those of some more pages. Cost: linear in the ranges known."""
        known = dict(zip(self.ranges, self.bases, strict=True))
        unknown = list(self.unknown)
        for page in pages:
            known.update(zip(page.columns.ranges(self.hash_lists), unpacked(page.bases), strict=True))
            unknown = [rest for interval in unknown for rest in _without(interval, page.keys)]
        ranges = sorted(known, key=by_lower_bound)
        return replace(self, ranges=tuple(ranges), bases=tuple(known[r] for r in ranges), unknown=tuple(unknown))


def pages_of(
    ranges: Sequence[RangePartition],
    bases: dict[int, int],
    hash_lists: Sequence[tuple[HashComponent, ...]],
    wanted: Iterable[KeyInterval],
) -> list[RangePage]:
    """The pages with the ranges of some keys.

    The ranges are all live ones, sorted and disjoint, those of the catch-all included; ``bases`` has the first
    partition id by ordinal.

    Returns:
        Neighbouring pages come as one. The size of an answer is limited: it has some of what is wanted at least, and
        the rest has to be asked for again.
        Cost: linear in the ranges returned.
    """
    last = max(len(ranges) - 1, 0) // PAGE_RANGES
    numbers: set[int] = set()
    for interval in wanted:
        first, behind = wanted_in(ranges, interval)
        numbers.update(range(min(first // PAGE_RANGES, last), min(max(first, behind - 1) // PAGE_RANGES, last) + 1))
        if len(numbers) >= ANSWER_PAGES_MAX:
            break
    pages = []
    for start, stop in _runs(sorted(numbers)[:ANSWER_PAGES_MAX]):
        inside = ranges[start * PAGE_RANGES : stop * PAGE_RANGES]
        keys = KeyInterval(
            ranges[start * PAGE_RANGES - 1].upper if start else None,
            ranges[stop * PAGE_RANGES].lower if stop <= last else None,
        )
        pages.append(RangePage(keys, RangeColumns.of(inside, hash_lists), packed(bases[r.ordinal] for r in inside)))
    return pages


def unknown_ranges(reference: str | None, wanted: Sequence[KeyInterval]) -> UnknownRangesError:
    """The error for keys whose ranges have to be fetched first."""
    return UnknownRangesError(
        "the ranges of some keys are not known here yet: fetch them", reference=reference, wanted=list(wanted)
    )


def wanted_in(ranges: Sequence[RangePartition], interval: KeyInterval) -> tuple[int, int]:
    """The positions ``[first, behind)`` of the ranges that have keys of an interval, which may be beginnings of keys.

    Cost: two binary searches.
    """
    lower, upper = interval
    first, behind = 0, len(ranges)
    if lower is not None:
        first = bisect_left(ranges, True, key=lambda r: r.upper is None or r.upper > lower)
    if upper is not None:
        behind = bisect_left(ranges, True, key=lambda r: r.lower is not None and r.lower[: len(upper)] > upper)
    return first, behind


def _without(interval: KeyInterval, covered: KeyInterval) -> Iterable[KeyInterval]:
    """The parts of an interval on both sides of another; the upper bounds of both are the first keys behind."""
    if covered.lower is not None and (interval.lower is None or interval.lower < covered.lower):
        yield KeyInterval(interval.lower, earlier(interval.upper, covered.lower))
    if covered.upper is not None and (interval.upper is None or covered.upper < interval.upper):
        yield KeyInterval(later(interval.lower, covered.upper), interval.upper)


def _runs(numbers: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Ascending numbers as intervals ``[start, stop)``."""
    start = 0
    for position in range(1, len(numbers) + 1):
        if position == len(numbers) or numbers[position] != numbers[position - 1] + 1:
            yield numbers[start], numbers[position - 1] + 1
            start = position
