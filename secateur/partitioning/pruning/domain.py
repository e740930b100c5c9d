"""Value domains: the values of one column that a predicate leaves possible.

A :class:`Domain` is a finite set of points together with a list of spans (intervals, each side open, closed or
unbounded). All of pruning works on domains: every supported predicate on a column becomes a domain, AND intersects
domains, OR unites them, NOT takes the complement, and a scheme turns the domains of its columns into partitions
(:mod:`secateur.partitioning.pruning.select_partitions`).

A domain never holds NULL. A predicate that is TRUE for a NULL in the column has no domain, and its reader must use
:data:`EVERYTHING` (*no statement made*). All values of one domain are canonical values of one column type, so they are
comparable with each other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.counting import Counting, counting_of


class Span(msgspec.Struct, frozen=True, array_like=True):
    """An interval of column values.

    Attributes:
        lower: The smallest value, or None for no bound below.
        upper: The largest value, or None for no bound above.
        lower_closed: Whether ``lower`` itself belongs to the span; without a bound it has no meaning.
        upper_closed: Whether ``upper`` itself belongs to the span; without a bound it has no meaning.
    """

    lower: Any = None
    upper: Any = None
    lower_closed: bool = True
    upper_closed: bool = True

    def __contains__(self, value: Any) -> bool:
        if self.lower is not None and (value < self.lower or (value == self.lower and not self.lower_closed)):
            return False
        return self.upper is None or value < self.upper or (value == self.upper and self.upper_closed)

    @property
    def is_empty(self) -> bool:
        if self.lower is None or self.upper is None:
            return False
        return bool(
            self.upper < self.lower or (self.upper == self.lower and not (self.lower_closed and self.upper_closed))
        )

    def intersect(self, other: Span) -> Span:
        """The values in both; possibly an empty span."""
        lower, lower_closed = self.lower, self.lower_closed
        if other.lower is not None and (
            lower is None or other.lower > lower or (other.lower == lower and not other.lower_closed)
        ):
            lower, lower_closed = other.lower, other.lower_closed
        upper, upper_closed = self.upper, self.upper_closed
        if other.upper is not None and (
            upper is None or other.upper < upper or (other.upper == upper and not other.upper_closed)
        ):
            upper, upper_closed = other.upper, other.upper_closed
        return Span(lower, upper, lower_closed, upper_closed)


class Domain(msgspec.Struct, frozen=True, array_like=True):
    """A set of non-NULL values of one column: ``points`` and everything inside ``spans``.

    The spans are sorted, hold two values or more each, and neither overlap nor touch; no point is inside a span or on
    its end. Equal sets are therefore equal domains. The functions of this module preserve that, and code that
    constructs a Domain directly must do so too.
    """

    points: frozenset[Any] = frozenset()
    spans: tuple[Span, ...] = ()

    def __contains__(self, value: Any) -> bool:
        return value in self.points or _covers(self.spans, value)

    @property
    def parts(self) -> tuple[Span, ...]:
        """The points, each as a span of its own, and the spans."""
        return (*(Span(value, value) for value in self.points), *self.spans)

    @property
    def is_nothing(self) -> bool:
        return not self.points and not self.spans

    @property
    def is_everything(self) -> bool:
        return len(self.spans) == 1 and self.spans[0].lower is None and self.spans[0].upper is None

    @property
    def is_finite(self) -> bool:
        """Whether the domain consists of points alone."""
        return not self.spans

    def intersect(self, other: Domain) -> Domain:
        """The values in both.

        Cost: linear in the spans of both sides, and in the points times the logarithm of the other side's spans.
        """
        if self.is_everything:
            return other
        if other.is_everything:
            return self
        kept = self.points & other.points
        if other.spans:
            kept |= {value for value in self.points if _covers(other.spans, value)}
        if self.spans:
            kept |= {value for value in other.points if _covers(self.spans, value)}
        met = within(_meet(self.spans, other.spans)) if self.spans and other.spans else NOTHING
        return Domain(kept | met.points, met.spans)

    def unite(self, other: Domain) -> Domain:
        """The values in either. Cost: linear in the points, and in the spans times their logarithm."""
        if not self.spans and not other.spans:
            return Domain(self.points | other.points)
        return _merged(self.points | other.points, self.spans + other.spans)

    def complement(self) -> Domain:
        """The non-NULL values that are not in it. Cost: linear in the points and spans, times their logarithm."""
        gaps: list[Span] = []
        lower, lower_closed = None, True
        for span in sorted(self.parts, key=_start):
            if span.lower is not None:
                gaps.append(Span(lower, span.lower, lower_closed, not span.lower_closed))
            if span.upper is None:
                break
            lower, lower_closed = span.upper, not span.upper_closed
        else:
            gaps.append(Span(lower, None, lower_closed))
        return within(gaps)


NOTHING: Final = Domain()
EVERYTHING: Final = Domain(spans=(Span(),))


def within(spans: Iterable[Span]) -> Domain:
    """The domain of all values inside some span; a span of one value becomes a point."""
    return _merged(frozenset(), spans)


def points(values: Iterable[Any]) -> Domain:
    """The domain of exactly these values."""
    return Domain(frozenset(values))


def _start(span: Span) -> tuple[Any, ...]:
    return (False,) if span.lower is None else (True, span.lower, not span.lower_closed)


def _covers(spans: Sequence[Span], value: Any) -> bool:
    """Whether a value lies in one of some sorted, disjoint spans."""
    behind = bisect_left(spans, True, key=lambda span: span.lower is not None and bool(span.lower > value))
    return behind > 0 and value in spans[behind - 1]


def _meet(left: Sequence[Span], right: Sequence[Span]) -> Iterator[Span]:
    """Intersect two sorted lists of spans; the result may contain empty spans."""
    a, b = 0, 0
    while a < len(left) and b < len(right):
        yield left[a].intersect(right[b])
        if right[b].upper is None or (left[a].upper is not None and left[a].upper <= right[b].upper):
            # A span that ends together with this one has nothing behind that end to lose.
            a += 1
        else:
            b += 1


def _merged(values: frozenset[Any], spans: Iterable[Span]) -> Domain:
    """The union of points and spans in the form of :class:`Domain`."""
    proper = [span for span in spans if not span.is_empty]
    if not proper:
        return Domain(values)
    ends = {end for span in proper for end in (span.lower, span.upper) if end is not None}
    merged: list[Span] = []
    for span in sorted((*proper, *(Span(value, value) for value in values & ends)), key=_start):
        last = merged[-1] if merged else None
        if last is None or not _touch(last, span):
            merged.append(span)
        elif last.upper is not None and (
            span.upper is None or span.upper > last.upper or (span.upper == last.upper and span.upper_closed)
        ):
            merged[-1] = Span(last.lower, span.upper, last.lower_closed, span.upper_closed)
    single = frozenset(span.lower for span in merged if span.lower is not None and span.lower == span.upper)
    kept = tuple(span for span in merged if span.lower is None or span.lower != span.upper)
    loose = (values - ends) | single
    return Domain(frozenset(value for value in loose if not _covers(kept, value)), kept)


def _touch(span: Span, following: Span) -> bool:
    """Whether no value lies between a span and one that does not start before it."""
    if span.upper is None or following.lower is None:
        return True
    return bool(
        following.lower < span.upper
        or (following.lower == span.upper and (following.lower_closed or span.upper_closed))
    )


# Types that are not counted, but have a value below which there is none.
_LEAST: Final[dict[TypeKind, Any]] = {TypeKind.VARCHAR: "", TypeKind.BLOB: b""}


def close_spans(domain: Domain, column_type: SqlType) -> Domain:
    """The same domain with closed bounds where the type is counted; spans that no value of the type is in vanish.

    Indexes turn a closed range into points that can be hashed (``a BETWEEN 3 AND 5``) and an open bound into a closed
    one (``day > X`` is ``day >= X + 1``). Two ranges that only touch are then recognised as disjoint.

    Values that Python has no object for (dates after the year 9999) are unbounded sides and stay so.
    """
    if not domain.spans:
        return domain
    counting = counting_of(column_type)
    if counting is None:
        least = _LEAST.get(column_type.kind)
        spans = tuple(span for span in domain.spans if span.upper is None or span.upper != least or span.upper_closed)
        return domain if len(spans) == len(domain.spans) else Domain(domain.points, spans)
    closed = (_close(span, counting) for span in domain.spans)
    return Domain(domain.points).unite(within(span for span in closed if span is not None))


def enumerate_points(domain: Domain, column_type: SqlType, count_max: int) -> frozenset[Any] | None:
    """All values of a domain, or None when there are more than ``count_max`` or they cannot be counted.

    Args:
        domain: The values.
        column_type: The type of the column. An unbounded span ends where the type ends; one of dates or instants is not
            counted.
        count_max: How many values are worth hashing.
    """
    counting = counting_of(column_type)
    if domain.is_finite:
        return _inside(domain.points, counting) if len(domain.points) <= count_max else None
    if counting is None:
        return None
    found = set(domain.points)
    for span in domain.spans:
        if not counting.whole and (span.lower is None or span.upper is None):
            return None
        first, last = _indexes(span, counting)
        if last - first >= count_max:
            return None
        found.update(counting.value(index) for index in range(first, last + 1))
        if len(found) > count_max:
            return None
    return frozenset(found)


def _inside(points: frozenset[Any], counting: Counting | None) -> frozenset[Any]:
    """Return the points that the type has.

    Two bounds may have met at a value beyond the type's ends, which no row holds and no encoder accepts.
    """
    if counting is None or not counting.whole or not points:
        return points
    smallest, largest = counting.value(counting.smallest), counting.value(counting.largest)
    return (
        points
        if smallest <= min(points) and max(points) <= largest
        else frozenset(point for point in points if smallest <= point <= largest)
    )


def _indexes(span: Span, counting: Counting) -> tuple[int, int]:
    """First and last index of a span inside the type; first > last when it is empty."""
    first = (
        counting.smallest
        if span.lower is None
        else max(counting.smallest, counting.index(span.lower) + (not span.lower_closed))
    )
    last = (
        counting.largest
        if span.upper is None
        else min(counting.largest, counting.index(span.upper) - (not span.upper_closed))
    )
    return first, last


def _close(span: Span, counting: Counting) -> Span | None:
    first, last = _indexes(span, counting)
    if first > last:
        # Beyond the last value that Python can hold there may still be values of the column.
        return None if counting.whole or (span.lower is not None and span.upper is not None) else span
    return Span(
        None if span.lower is None else counting.value(first), None if span.upper is None else counting.value(last)
    )
