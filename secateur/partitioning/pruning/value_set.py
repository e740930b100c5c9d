"""Value sets: the values that one column can have in one partition of an external table.

The owner of the partition declares them. Together with the domains of a predicate they decide whether the partition can
hold a row of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from secateur.partitioning.pruning.domain import EVERYTHING, NOTHING, Domain, Span, points, within
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import SqlType


class ValueSet(msgspec.Struct, frozen=True, array_like=True):
    """The values that a column can have in a partition.

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
