"""Ranges of primary keys in lexicographic order, bounded by places between keys.

Boxes over the primary-key columns become such ranges: predicates are pushed into the bounds (:func:`key_ranges`).

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

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeAlias

import msgspec

from secateur.cached_properties import cached_property
from secateur.partitioning.pruning.condition import Box, Choice, Constraint
from secateur.partitioning.pruning.domain import EVERYTHING, Domain, Span, enumerate_points
from secateur.partitioning.pruning.operand import Operand, ParameterList
from secateur.partitioning.types.column_type import SqlType


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
    """The rows whose primary key begins with some canonical values: the form of a single look-up."""

    values: tuple[Any, ...]


class KeyRanges(msgspec.Struct, frozen=True, array_like=True, tag="ranges"):
    """The rows whose primary key lies in one of some ranges: they ascend, none is empty, and no two touch."""

    ranges: tuple[KeyRange, ...]


_ORDER: Final = attrgetter("order")


class IndexSlice(msgspec.Struct, frozen=True, array_like=True, tag="index"):
    """Rows that a secondary index finds, and perhaps others.

    ``part`` is over the columns of the index that are searched, as over a key.
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
    for low, high, current in sorted(((r.lower.order, r.upper.order, r) for r in ranges), key=itemgetter(0)):
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
        met = KeyRange(max(first.lower, second.lower, key=_ORDER), min(first.upper, second.upper, key=_ORDER))
        if not met.is_empty:
            found.append(met)
        if first.upper.order < second.upper.order:
            a += 1
        else:
            b += 1
    return KeyRanges(tuple(found))


RANGES_MAX: Final = 64
"""The maximum number of ranges of one scan. Each costs a binary search in each partition, which takes some
microseconds."""


class KeyBounds(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """The bounds of one scan's primary key, with parameters that are not bound yet.

    The factors are a conjunction of unions of boxes over the primary-key columns, most significant first.
    """

    columns: tuple[tuple[str, SqlType], ...]
    factors: tuple[tuple[Box, ...], ...]

    @cached_property
    def _constant(self) -> KeyRanges | None:
        constant = all(box.is_constant for boxes in self.factors for box in boxes)
        return self._resolve(()) if constant else None

    @classmethod
    def of(cls, columns: Sequence[tuple[str, SqlType]], factors: Iterable[Sequence[Box]]) -> KeyBounds | None:
        """Return the bounds that follow from some factors, or None when they do not bound the first column.

        A list with too many alternatives for ranges of its own is replaced by its hull, so that a long IN list is
        neither sent nor sorted again for bounds.
        """
        leading = columns[0][0]
        useful = [boxes for boxes in map(_few, factors) if all(box[leading].choices for box in boxes)]
        return cls(tuple(columns), tuple(useful)) if useful else None

    @property
    def is_constant(self) -> bool:
        """Whether the ranges do not depend on parameters."""
        return self._constant is not None

    def bind(self, params: Sequence[Any]) -> KeyRanges:
        """Return the ranges for these parameters.

        A value that cannot be compared exactly with its column leaves the column unbounded.

        Raises:
            IndexError: There are fewer parameters than the bounds use.

        Cost: nothing for constants; some 10 microseconds for a box of two columns with parameters.
        """
        return self._resolve(params) if self._constant is None else self._constant

    def _resolve(self, params: Sequence[Any]) -> KeyRanges:
        types = dict(self.columns)
        found = []
        for boxes in self.factors:
            share = max(RANGES_MAX // max(len(boxes), 1), 1)
            ranges: list[KeyRange] = []
            for box in boxes:
                domains = _short(box, params).resolve(params, types)
                ranges.extend(
                    key_ranges([domains.get(name, EVERYTHING) for name, _ in self.columns], list(types.values()), share)
                )
            found.append(unite_ranges(ranges))
        return reduce(intersect_ranges, found)


def key_ranges(
    domains: Sequence[Domain], types: Sequence[SqlType], ranges_max: int, prefix: tuple[Any, ...] = ()
) -> list[KeyRange]:
    """Ranges that hold every key of the product of some domains.

    ``user_id = 500 AND target_id < 700`` is ``(500) <= key < (500, 700)``. Lifting row-value bounds into predicates
    needs no code here. The planner reads ``(a, b) >= (500, 500)`` as the boxes ``a > 500`` and ``a = 500, b >= 500``.
    Partitions are pruned by these like by any others, and their ranges ``(500) < key`` and ``(500, 500) <= key <=
    (500)`` touch, which makes them one range again.

    Every range covers what its box allows and perhaps more. A column after a range of values narrows only the two ends
    of that range, unless the values are few and discrete; then each becomes a range of its own.

    There are at most ``ranges_max``; where there would be more, a column counts with the hull of its values. The
    columns of ``domains`` come behind those of ``prefix``.

    Returns:
        Possibly overlapping ranges, in any order.

    Source: Apache Kudu, "Scan Optimization & Partition Pruning" (pushing predicates into bounds).
    """
    if any(domain.is_nothing for domain in domains):
        return []
    while domains and domains[-1].is_everything:
        domains = domains[:-1]
    if not domains:
        return [KeyRange.of_prefix(prefix)]
    first, rest = domains[0], domains[1:]
    counted = enumerate_points(first, types[0], ranges_max) if rest and first.spans else None
    if counted is not None:
        first = Domain(counted)
    if first.is_nothing:
        return []
    if len(first.points) + len(first.spans) > ranges_max:
        first = Domain(spans=(_hull(first),))
    share = ranges_max // (len(first.points) + len(first.spans))
    found = [
        KeyRange(_end(prefix, span, rest, lower=True), _end(prefix, span, rest, lower=False)) for span in first.spans
    ]
    for value in first.points:
        found.extend(key_ranges(rest, types[1:], share, (*prefix, value)))
    return found


def _end(prefix: tuple[Any, ...], span: Span, rest: Sequence[Domain], *, lower: bool) -> KeyBoundary:
    """Return the boundary at one end of the keys that begin with ``prefix``, a value of ``span`` and of ``rest``."""
    value, closed = (span.lower, span.lower_closed) if lower else (span.upper, span.upper_closed)
    if value is None:
        return KeyBoundary(prefix, after=not lower)
    prefix = (*prefix, value)
    if not closed:
        return KeyBoundary(prefix, after=lower)
    return _end(prefix, _hull(rest[0]), rest[1:], lower=lower) if rest else KeyBoundary(prefix, after=not lower)


def _hull(domain: Domain) -> Span:
    """The smallest span that holds a domain, which is not nothing."""
    spans = [*domain.spans, *([Span(min(domain.points), max(domain.points))] if domain.points else ())]
    lower = None if any(span.lower is None for span in spans) else min(span.lower for span in spans)
    upper = None if any(span.upper is None for span in spans) else max(span.upper for span in spans)
    return Span(
        lower,
        upper,
        lower_closed=any(span.lower_closed for span in spans if span.lower == lower),
        upper_closed=any(span.upper_closed for span in spans if span.upper == upper),
    )


def _few(boxes: Sequence[Box]) -> tuple[Box, ...]:
    """Return at most :data:`RANGES_MAX` boxes, with at most so many alternatives each, that cover the given ones."""
    boxes = [box for box in boxes if not box.is_nothing]
    if len(boxes) <= RANGES_MAX:
        return tuple(
            Box.of({column: _few_choices(constraint) for column, constraint in box.constraints}) for box in boxes
        )
    columns = set.intersection(
        *({column for column, constraint in box.constraints if constraint.is_constant} for box in boxes)
    )
    return (Box.of({column: Constraint((Choice(Domain(spans=(_hull_of(column, boxes),))),)) for column in columns}),)


def _hull_of(column: str, boxes: Sequence[Box]) -> Span:
    """Return the hull of the values that boxes allow for a column that each of them bounds by constants alone."""
    domains = [choice.domain for box in boxes for choice in box[column].choices[:1]]
    return _hull(
        Domain(
            frozenset().union(*(domain.points for domain in domains)),
            tuple(span for domain in domains for span in domain.spans),
        )
    )


def _short(box: Box, params: Sequence[Any]) -> Box:
    """The box without the columns that are compared with lists too long for ranges of their own."""
    lists = [(column, operand.index) for column, operand in _operands(box) if isinstance(operand, ParameterList)]
    long = {column for column, index in lists if hasattr(params[index], "__len__") and len(params[index]) > RANGES_MAX}
    return Box(tuple(pair for pair in box.constraints if pair[0] not in long)) if long else box


def _operands(box: Box) -> Iterator[tuple[str, Operand | ParameterList]]:
    for column, constraint in box.constraints:
        for test in constraint.tests:
            yield from ((column, operand) for operand in test.operands)


def _few_choices(constraint: Constraint) -> Constraint:
    found = []
    for choice in constraint.choices:
        operands = sum(len(test.operands) for test in choice.tests)
        if operands > RANGES_MAX:
            continue
        domain = choice.domain
        if len(domain.points) + len(domain.spans) > RANGES_MAX:
            domain = Domain(spans=(_hull(domain),))
        found.append(Choice(domain, choice.tests))
    return Constraint(tuple(found))
