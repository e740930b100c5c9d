"""The predicate of a statement on the rows of one external table, as data.

The planner reads the conjuncts of a scan into unions of boxes; with the parameters bound, each box is a domain for some
columns. A row outside of them cannot influence the answer. The conditions that the boxes cannot express are missing, so
the rows inside need not be rows of the answer: the statement filters them again.

Source: ``TupleDomain`` of Trino's connectors, as a conjunction of several disjunctions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from secateur.partitioning.pruning.condition import Box
from secateur.partitioning.pruning.domain import EVERYTHING, NOTHING, Domain, Span, points, within
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import WORD_INTEGERS, SqlType, TypeKind

_COMPARED_ALIKE: Final = frozenset({TypeKind.VARCHAR, TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.DECIMAL})
"""Arrow compares values of these as the dialect does.

It does not for floating-point numbers: NaN is the greatest value of the dialect, and in Arrow no value is less or
greater.
"""


class RowPredicate(msgspec.Struct, frozen=True):
    """The rows that a statement can need.

    Attributes:
        factors: A row is needed only if, for **each** factor, **one** of its alternatives holds: each column that the
            alternative names is not NULL and has a value of its domain. No factors: every row is needed.
        nulls: Columns that are NULL in every row that is needed.
    """

    factors: tuple[tuple[Mapping[str, Domain], ...], ...] = ()
    nulls: tuple[str, ...] = ()

    def keeps(self, partition: Mapping[str, ValueSet]) -> bool:
        """Whether a partition whose columns have these values can hold a row that is needed."""
        if any(column in partition and not partition[column].has_null for column in self.nulls):
            return False
        return all(any(may_hold(partition, box) for box in factor) for factor in self.factors)

    def domain_of(self, column: str) -> Domain:
        """The values of a column in the rows that are needed, whatever their other columns have.

        A result other than ``EVERYTHING`` also says that the column is not NULL.
        """
        found = EVERYTHING
        for factor in self.factors:
            union = NOTHING
            for box in factor:
                union = union.unite(box.get(column, EVERYTHING))
            found = found.intersect(union)
        return found

    def to_arrow(self, types: Mapping[str, SqlType]) -> pc.Expression | None:
        """The predicate as an expression of Arrow; None where it keeps everything.

        It keeps all rows that are needed, and others where Arrow cannot express a condition.

        Conditions on columns whose types are not given are left out.
        """
        conditions = [pc.field(column).is_null() for column in self.nulls if column in types]
        return _all_of(
            [*conditions, *(_any_of([_box_expression(box, types) for box in factor]) for factor in self.factors)]
        )


class OpenPredicate(msgspec.Struct, frozen=True):
    """A :class:`RowPredicate` that is open in the parameters of its statement.

    Its factors are a conjunction of unions of boxes, over columns of these types.
    """

    factors: tuple[tuple[Box, ...], ...] = ()
    types: tuple[tuple[str, SqlType], ...] = ()
    nulls: tuple[str, ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it names."""
        return frozenset(self.nulls).union(column for column, _ in self.types)

    def bind(self, params: Sequence[Any]) -> RowPredicate:
        """The predicate for these parameters.

        Raises:
            IndexError: There are fewer parameters than it uses.
        """
        types = dict(self.types)
        factors = tuple(tuple(box.resolve(params, types) for box in boxes) for boxes in self.factors)
        return RowPredicate(factors, self.nulls)


def rows_among(values: ValueSet, column: str, column_type: SqlType) -> pc.Expression | None:
    """The rows in which a column has one of some values, as an expression of Arrow; None where it cannot tell."""
    found = _domain_expression(column, values.values, column_type)
    if found is None:
        # No condition on the values themselves: all are declared, or Arrow does not compare as the dialect does.
        return None
    return found | pc.field(column).is_null() if values.has_null else found


def _any_of(alternatives: Sequence[pc.Expression | None]) -> pc.Expression | None:
    """The union; None for one that keeps everything."""
    if any(alternative is None for alternative in alternatives):
        return None
    return reduce(or_, alternatives) if alternatives else pc.scalar(False)


def _all_of(conditions: Sequence[pc.Expression | None]) -> pc.Expression | None:
    """The intersection; None, too, where it keeps everything."""
    found = [condition for condition in conditions if condition is not None]
    return reduce(and_, found) if found else None


def _box_expression(box: Mapping[str, Domain], types: Mapping[str, SqlType]) -> pc.Expression | None:
    return _all_of(
        [_domain_expression(column, domain, types[column]) for column, domain in box.items() if column in types]
    )


def _domain_expression(column: str, domain: Domain, column_type: SqlType) -> pc.Expression | None:
    if domain.is_everything:
        return None
    is_number = column_type.kind in WORD_INTEGERS
    is_flag = column_type.kind is TypeKind.BOOLEAN and not domain.spans
    if not (is_number or is_flag or column_type.kind in _COMPARED_ALIKE):
        return None
    field, arrow = pc.field(column), column_type.arrow
    alternatives: list[pc.Expression | None] = []
    try:
        if domain.points:
            alternatives.append(field.isin(pa.array(domain.points, arrow)))
        for span in domain.spans:
            bounds: list[pc.Expression | None] = []
            if span.lower is not None:
                lower = pa.scalar(span.lower, arrow)
                bounds.append(field >= lower if span.lower_closed else field > lower)
            if span.upper is not None:
                upper = pa.scalar(span.upper, arrow)
                bounds.append(field <= upper if span.upper_closed else field < upper)
            alternatives.append(_all_of(bounds))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None  # a value that Arrow's type cannot hold
    return _any_of(alternatives)


class ValueSet(msgspec.Struct, frozen=True, array_like=True):
    """The values that a column can have in a partition.

    The owner of the partition declares them. Together with the domains of a predicate they decide whether the partition
    can hold a row of the answer.

    Attributes:
        values: The values other than NULL.
        has_null: Whether NULL is one of them.
    """

    values: Domain = EVERYTHING
    has_null: bool = False

    def meets(self, domain: Domain) -> bool:
        """Whether a value other than NULL is in both."""
        return not self.values.intersect(domain).is_nothing

    def holds(self, value: Any) -> bool:
        """Whether a canonical value, or NULL, is one of them."""
        return self.has_null if value is None else value in self.values

    def canonical(self, column_type: SqlType, column: str) -> ValueSet:
        """The same values in the canonical form of a type.

        Raises:
            DataError: The type cannot hold one of them.
        """

        def converted(value: Any) -> Any:
            return coerce(value, column_type, column=column)

        spans = within(
            Span(converted(span.lower), converted(span.upper), span.lower_closed, span.upper_closed)
            for span in self.values.spans
        )
        return ValueSet(points(map(converted, self.values.points)).unite(spans), self.has_null)


def one_of(*values: Any) -> ValueSet:
    """The set of some values, None among them for NULL: a list partition, or a directory of Hive."""
    found = [value for value in values if value is not None]
    return ValueSet(points(found) if found else NOTHING, len(found) < len(values))


def between(
    lower: Any, upper: Any, *, lower_closed: bool = True, upper_closed: bool = True, has_null: bool = False
) -> ValueSet:
    """The set of the values of a range; None for no bound at that end."""
    return ValueSet(within([Span(lower, upper, lower_closed, upper_closed)]), has_null)


def may_hold(partition: Mapping[str, ValueSet], box: Mapping[str, Domain]) -> bool:
    """Whether a partition with these values of its columns can hold a row whose columns are all in the domains.

    A column that the partition does not name can have any value. A domain of everything asks nothing.
    """
    return all(
        column not in partition or domain.is_everything or partition[column].meets(domain)
        for column, domain in box.items()
    )
