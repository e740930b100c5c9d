"""Discrete types: each value has an integer index, and the order of values is the order of indexes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import from_unscaled, unscaled


@dataclass(frozen=True, slots=True)
class Counting:
    """The numbering of the canonical values of one type.

    Attributes:
        index: The index of a value: the days or microseconds since 1970, or the integer that it is or holds.
        value: The value of an index.
        smallest: The index of the smallest value that Python has.
        largest: The index of the largest one.
        whole: Whether these are the extreme values of the type itself: there are dates after the last one that Python
            can hold.
    """

    index: Callable[[Any], int]
    value: Callable[[int], Any]
    smallest: int
    largest: int
    whole: bool = True


_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


def _days() -> Counting:
    def index(value: date) -> int:
        return value.toordinal() - _EPOCH_DAY

    return Counting(
        index, lambda index: date.fromordinal(index + _EPOCH_DAY), index(date.min), index(date.max), whole=False
    )


def _instants(epoch: datetime) -> Counting:
    def index(value: datetime) -> int:
        return (value - epoch) // _MICROSECOND

    def value(index: int) -> datetime:
        return epoch + index * _MICROSECOND

    return Counting(
        index,
        value,
        index(datetime.min.replace(tzinfo=epoch.tzinfo)),
        index(datetime.max.replace(tzinfo=epoch.tzinfo)),
        whole=False,
    )


_COUNTED: Final = {
    TypeKind.BOOLEAN: Counting(int, bool, 0, 1),
    TypeKind.DATE: _days(),
    TypeKind.TIMESTAMP: _instants(datetime(1970, 1, 1)),
    TypeKind.TIMESTAMPTZ: _instants(datetime(1970, 1, 1, tzinfo=UTC)),
    TypeKind.UUID: Counting(lambda value: value.int, lambda index: uuid.UUID(int=index), 0, 2**128 - 1),
}


def counting_of(type_: SqlType) -> Counting | None:
    """The numbering of a type; None for one whose values are not counted, such as VARCHAR."""
    if type_.is_integer:
        return Counting(int, int, *type_.integer_range)
    if type_.kind is TypeKind.DECIMAL:
        scale, largest = type_.scale, int(10**type_.precision) - 1
        return Counting(
            lambda value: unscaled(value, scale), lambda index: from_unscaled(index, scale), -largest, largest
        )
    return _COUNTED.get(type_.kind)
