"""Comparison targets: the bare column, or an invertible expression of it, on one side of a comparison.

``a + 1 = 5`` restricts ``a`` as ``a = 4`` does, and ``CAST(ts AS DATE) = X`` requires that ``ts`` lies in the day X.
The values that pass are computed for the expression first and then mapped back to the column. Expressions whose order
differs from the column's, such as ``a % 2``, are not comparison targets.

Source: the rules ``move_constants`` and ``timestamp_comparison`` of DuckDB's optimizer do the same for its zone maps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, assert_never

import msgspec

from secateur.partitioning.pruning.comparison import OPERATORS, Basis, Comparison, compare
from secateur.partitioning.pruning.comparison_bound import representable
from secateur.partitioning.pruning.domain import NOTHING, Domain, Span, within
from secateur.partitioning.types.calendar import UNITS, following, start_of
from secateur.partitioning.types.column_type import SqlType, TypeKind


class BareColumn(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="bare"):
    """The column itself."""


class WidenedColumn(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="widened"):
    """``CAST(column AS type)`` of an integer column to an integer type that holds all its values, DOUBLE or VARCHAR."""

    type: SqlType


class LinearColumn(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="linear"):
    """``offset + factor * column``, where the factor is not 0.

    The column is an integer column, or a DATE, whose offset counts days and whose factor is 1.
    """

    offset: int
    factor: int = 1

    def __post_init__(self) -> None:
        if self.factor == 0:
            raise ValueError("a column times 0 does not depend on the column")


class AbsoluteColumn(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="absolute"):
    """``offset + factor * abs(CAST(column AS type))`` of an integer column.

    The type is an integer type that holds all its values, and the factor is not 0.
    """

    type: SqlType
    offset: int = 0
    factor: int = 1

    def __post_init__(self) -> None:
        LinearColumn(self.offset, self.factor)


class TruncatedColumn(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="truncated"):
    """``date_trunc(unit, column)`` of a TIMESTAMP or DATE column; the result is a TIMESTAMP.

    With ``as_date`` it is ``CAST(column AS DATE)`` of a TIMESTAMP, which truncates to days.
    """

    unit: str
    as_date: bool = False

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"{self.unit!r} is no unit to which a column is truncated")


class ShortText(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="short"):
    """A text column, beside a condition that lets only texts of at most ``length_max`` characters pass.

    If it is ``relative``, the last operand of the comparison is a number to which ``length_max`` is added. A fraction
    sets no bound, and beside NULL nothing passes.
    """

    length_max: int
    relative: bool = False


class RowField(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="field"):
    """The column as a field of a row value.

    Fields compare in the common type of all rows of the comparison, which is not the column's when one of them is a
    text, and NULL is their greatest value. So all operands are judged, and only the first ``compared`` are compared;
    the others are the same field of the rows beside.
    """

    compared: int


ComparisonTarget = BareColumn | WidenedColumn | LinearColumn | AbsoluteColumn | TruncatedColumn | ShortText | RowField

BARE: Final = BareColumn()

_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,38}")
_ALSO_OWN: Final = {TypeKind.TIMESTAMP: datetime, TypeKind.DECIMAL: Decimal}
"""The classes of values that are canonical as they stand without a zone, or with the scale."""


def allowed(
    comparison_target: ComparisonTarget, comparison: Comparison, values: Sequence[Any], column_type: SqlType
) -> Domain | None:
    """The non-NULL column values for which ``target <comparison> values`` is TRUE: :func:`compare` for any target.

    Returns:
        The domain, or None when no statement can be made.
    """
    match comparison_target:
        case BareColumn():
            return compare(comparison, values, column_type)
        case WidenedColumn(SqlType(kind=TypeKind.VARCHAR) as text):
            # The order of texts is another than that of numbers, and '01' is the text of none.
            if OPERATORS[comparison].basis is not Basis.EQUALITY or compare(Comparison.IN, values, text) is None:
                return None
            numbers = [None if value is None else int(value) for value in values if value is None or _is_number(value)]
            return compare(comparison, numbers, column_type)
        case WidenedColumn(SqlType(kind=TypeKind.DOUBLE)):
            # As a DOUBLE the column compares exactly with numbers below 2**53, whose neighbours it holds as well.
            if not all(value is None or type(value) in (int, float) for value in values):
                return None
            try:
                return compare(comparison, [None if value is None else float(value) for value in values], column_type)
            except OverflowError:
                return None
        case WidenedColumn(wide):
            found = compare(comparison, values, wide)
            return (
                None
                if found is None
                else Domain(
                    frozenset(value for value in found.points if representable(value, column_type)), found.spans
                )
            )
        case LinearColumn():
            return _linear(comparison_target, comparison, values, column_type)
        case AbsoluteColumn(wide, 0, 1):
            return _absolute(compare(comparison, values, wide), column_type)
        case AbsoluteColumn(wide, offset, factor):
            return _absolute(_linear(LinearColumn(offset, factor), comparison, values, wide), column_type)
        case TruncatedColumn():
            return _truncated(comparison_target, comparison, values, column_type)
        case ShortText(length_max, relative=True):
            *operands, given = values
            if given is None:
                return NOTHING
            longest = given + length_max if type(given) is int else None
            return compare(comparison, operands, column_type, length_max=longest)
        case ShortText(length_max):
            return compare(comparison, values, column_type, length_max=length_max)
        case RowField(compared):
            return (
                compare(comparison, values[:compared], column_type)
                if all(is_own(value, column_type) for value in values)
                else None
            )
        case _:
            assert_never(comparison_target)


def _linear(
    comparison_target: LinearColumn, comparison: Comparison, values: Sequence[Any], column_type: SqlType
) -> Domain | None:
    kind = date if column_type.kind is TypeKind.DATE else int
    basis = OPERATORS[comparison].basis
    if basis is Basis.TEXT or not all(value is None or type(value) is kind for value in values):
        return None
    if kind is date:
        shift = timedelta(days=comparison_target.offset)
        try:
            return compare(comparison, [None if value is None else value - shift for value in values], column_type)
        except OverflowError:
            return None
    factor = comparison_target.factor
    moved: list[int | None] = [None if value is None else value - comparison_target.offset for value in values]
    if basis is Basis.EQUALITY:
        whole = [value if value is None else value // factor for value in moved if value is None or value % factor == 0]
        return compare(comparison, whole, column_type)
    if basis is Basis.RANGE:
        low, high = moved if factor > 0 else reversed(moved)
        return compare(comparison, [_ceiling(low, factor), _floor(high, factor)], column_type)
    if factor < 0:
        comparison = OPERATORS[comparison].mirrored or comparison
    rounded = _ceiling if comparison in (Comparison.LESS, Comparison.GREATER_EQUAL) else _floor
    return compare(comparison, [rounded(value, factor) for value in moved], column_type)


def _floor(value: int | None, divisor: int) -> int | None:
    return None if value is None else value // divisor


def _ceiling(value: int | None, divisor: int) -> int | None:
    return None if value is None else -(value // -divisor)


def _absolute(found: Domain | None, column_type: SqlType) -> Domain | None:
    """The values whose absolute value is in a domain."""
    if found is None:
        return None
    found = found.intersect(within([Span(0, None)]))
    positive = Domain(frozenset(value for value in found.points if representable(value, column_type)), found.spans)
    negative = Domain(frozenset(-value for value in found.points if representable(-value, column_type))).unite(
        within(
            Span(
                None if span.upper is None else -span.upper,
                None if span.lower is None else -span.lower,
                span.upper_closed,
                span.lower_closed,
            )
            for span in found.spans
        )
    )
    return positive.unite(negative)


def _truncated(
    comparison_target: TruncatedColumn, comparison: Comparison, values: Sequence[Any], column_type: SqlType
) -> Domain | None:
    found = compare(comparison, values, SqlType(TypeKind.DATE if comparison_target.as_date else TypeKind.TIMESTAMP))
    if found is None:
        return None
    try:
        spans = [span for part in found.parts if (span := _starts_in(part, comparison_target.unit)) is not None]
    except OverflowError:
        # The unit ends behind the last instant that Python has.
        return None
    if column_type.kind is TypeKind.DATE:
        spans = [Span(_day(span.lower), _day(span.upper), upper_closed=span.upper_closed) for span in spans]
    return within(spans)


def _starts_in(span: Span, unit: str) -> Span | None:
    """The instants whose unit starts inside a span; None when no unit does."""
    lower = None if span.lower is None else _first_start(_instant(span.lower), unit, closed=span.lower_closed)
    upper = None if span.upper is None else _first_start(_instant(span.upper), unit, closed=not span.upper_closed)
    if lower is not None and upper is not None and lower >= upper:
        return None
    return Span(lower, upper, upper_closed=upper is None)


def _first_start(instant: datetime, unit: str, *, closed: bool) -> datetime:
    """The first start of a unit that is not before an instant, or, if not ``closed``, behind it."""
    start = start_of(instant, unit)
    return start if closed and start == instant else following(start, unit)


def _instant(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time.min)


def _day(value: datetime | None) -> date | None:
    return None if value is None else value.date()


def _is_number(text: str) -> bool:
    """Whether a text is that of an integer, as a cast writes it."""
    return _NUMBER.fullmatch(text) is not None


def is_own(value: Any, column_type: SqlType) -> bool:
    """Whether a value of an operand has the column's own type, or is an integer as the column's values are."""
    if column_type.is_integer:
        return type(value) is int
    if type(value) is not (column_type.value_class or _ALSO_OWN.get(column_type.kind)):
        return False
    if isinstance(value, Decimal):
        return (
            value.is_finite() and value.as_tuple().exponent == -column_type.scale and representable(value, column_type)
        )
    return not isinstance(value, datetime) or value.tzinfo is None
