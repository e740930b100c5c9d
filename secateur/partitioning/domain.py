"""Value domains: which values of one column a predicate leaves possible.

A :class:`Domain` is a finite set of points together with a list of spans (intervals, each side open, closed or unbounded). It is the one currency of pruning:
every supported predicate on a column becomes a domain, AND intersects domains, OR unites them, and a scheme turns the domains of its columns into partitions
(:mod:`secateur.partitioning.reach`).

A domain never holds NULL: a predicate that is TRUE for a column value that is NULL has no domain, and whoever builds domains must then use :data:`EVERYTHING`
for *no statement made*. All values of one domain are canonical values of one column type, so they are comparable with each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["EVERYTHING", "NOTHING", "Domain", "Span", "points", "within"]


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of column values.

    Attributes:
        lower: The smallest value, or None for no bound below.
        upper: The largest value, or None for no bound above.
        lower_closed: Whether ``lower`` itself belongs to the span; without a bound it says nothing.
        upper_closed: Whether ``upper`` itself belongs to the span; without a bound it says nothing.
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
        return bool(self.upper < self.lower or (self.upper == self.lower and not (self.lower_closed and self.upper_closed)))

    def intersect(self, other: Span) -> Span:
        """The values in both; possibly an empty span."""
        lower, lower_closed = self.lower, self.lower_closed
        if other.lower is not None and (lower is None or other.lower > lower or (other.lower == lower and not other.lower_closed)):
            lower, lower_closed = other.lower, other.lower_closed
        upper, upper_closed = self.upper, self.upper_closed
        if other.upper is not None and (upper is None or other.upper < upper or (other.upper == upper and not other.upper_closed)):
            upper, upper_closed = other.upper, other.upper_closed
        return Span(lower, upper, lower_closed, upper_closed)


@dataclass(frozen=True, slots=True)
class Domain:
    """A set of non-NULL values of one column: ``points`` and everything inside ``spans``.

    The spans may overlap each other and the points; membership is what counts. Neither part holds an empty span.
    """

    points: frozenset[Any] = frozenset()
    spans: tuple[Span, ...] = ()

    def __contains__(self, value: Any) -> bool:
        return value in self.points or any(value in span for span in self.spans)

    @property
    def is_nothing(self) -> bool:
        return not self.points and not self.spans

    @property
    def is_everything(self) -> bool:
        return any(span.lower is None and span.upper is None for span in self.spans)

    @property
    def is_finite(self) -> bool:
        """Whether the domain consists of points alone."""
        return not self.spans

    def intersect(self, other: Domain) -> Domain:
        """The values in both. Cost: linear in the points, times the spans of the other side."""
        if self.is_everything:
            return other
        if other.is_everything:
            return self
        kept = self.points & other.points
        if other.spans:
            kept |= {value for value in self.points if any(value in span for span in other.spans)}
        if self.spans:
            kept |= {value for value in other.points if any(value in span for span in self.spans)}
        met = within(a.intersect(b) for a in self.spans for b in other.spans)
        return Domain(frozenset(kept | met.points), met.spans)

    def unite(self, other: Domain) -> Domain:
        """The values in either."""
        if self.is_everything or other.is_everything:
            return EVERYTHING
        return Domain(self.points | other.points, tuple(dict.fromkeys(self.spans + other.spans)))


NOTHING: Final = Domain()
EVERYTHING: Final = Domain(spans=(Span(),))


def within(spans: Iterable[Span]) -> Domain:
    """The domain of all values inside some span; a span of one value becomes a point."""
    kept = dict.fromkeys(span for span in spans if not span.is_empty)
    single = {span for span in kept if span.lower is not None and span.lower == span.upper}
    return Domain(frozenset(span.lower for span in single), tuple(span for span in kept if span not in single))


def points(values: Iterable[Any]) -> Domain:
    """The domain of exactly these values."""
    return Domain(frozenset(values))
