"""Discrete types: every value has an integer index, and the order of values is the order of indexes.

Indexes turn a closed range into points that can be hashed (``a BETWEEN 3 AND 5``) and an open bound into a closed one
(``day > X`` is ``day >= X + 1``). Two ranges that only touch are then recognised as disjoint.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from secateur.partitioning.pruning.domain import Domain, Span, within
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import from_unscaled, unscaled


@dataclass(frozen=True, slots=True)
class _Counting:
    """The numbering of one type: ``smallest`` and ``largest`` are the indexes of the extreme values that Python has.

    ``whole`` says that these are the extreme values of the type itself: there are dates after the last one that Python
    can hold.
    """

    index: Callable[[Any], int]
    value: Callable[[int], Any]
    smallest: int
    largest: int
    whole: bool = True


_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _instants(epoch: datetime) -> _Counting:
    def index(value: datetime) -> int:
        return (value - epoch) // _MICROSECOND

    def value(index: int) -> datetime:
        return epoch + index * _MICROSECOND

    return _Counting(
        index,
        value,
        index(datetime.min.replace(tzinfo=epoch.tzinfo)),
        index(datetime.max.replace(tzinfo=epoch.tzinfo)),
        whole=False,
    )


_COUNTED: Final = {
    TypeKind.BOOLEAN: _Counting(int, bool, 0, 1),
    TypeKind.DATE: _Counting(date.toordinal, date.fromordinal, 1, date.max.toordinal(), whole=False),
    TypeKind.TIMESTAMP: _instants(_EPOCH),
    TypeKind.TIMESTAMPTZ: _instants(_EPOCH_UTC),
    TypeKind.UUID: _Counting(lambda value: value.int, lambda index: uuid.UUID(int=index), 0, 2**128 - 1),
}


# Types that are not counted, but have a value below which there is none.
_LEAST: Final[dict[TypeKind, Any]] = {TypeKind.VARCHAR: "", TypeKind.BLOB: b""}


def _counting(column_type: SqlType) -> _Counting | None:
    if column_type.is_integer:
        return _Counting(int, int, *column_type.integer_range)
    if column_type.kind is TypeKind.DECIMAL:
        scale, largest = column_type.scale, int(10**column_type.precision) - 1
        return _Counting(
            lambda value: unscaled(value, scale), lambda index: from_unscaled(index, scale), -largest, largest
        )
    return _COUNTED.get(column_type.kind)


def close_spans(domain: Domain, column_type: SqlType) -> Domain:
    """The same domain with closed bounds where the type is counted; spans that no value of the type is in vanish.

    Values that Python has no object for (dates after the year 9999) are unbounded sides and stay so.
    """
    if not domain.spans:
        return domain
    counting = _counting(column_type)
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
    counting = _counting(column_type)
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


def _inside(points: frozenset[Any], counting: _Counting | None) -> frozenset[Any]:
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


def _indexes(span: Span, counting: _Counting) -> tuple[int, int]:
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


def _close(span: Span, counting: _Counting) -> Span | None:
    first, last = _indexes(span, counting)
    if first > last:
        # Beyond the last value that Python can hold there may still be values of the column.
        return None if counting.whole or (span.lower is not None and span.upper is not None) else span
    return Span(
        None if span.lower is None else counting.value(first), None if span.upper is None else counting.value(last)
    )
