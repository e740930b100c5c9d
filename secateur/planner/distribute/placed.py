"""Where the rows of a relation are computed.

Source: the distributions of a parallel plan as properties of its operators (Graefe, "Volcano", 1994), as in
    AddExchanges of Presto and Trino; replicated tables are Ignite's ANY.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final, TypeAlias

from secateur.planner.tree.columns import column_types
from secateur.planner.tree.equal_columns import EqualColumns
from secateur.planner.tree.relations import AnyRelation
from secateur.planner.tree.types import LogicalType

Columns: TypeAlias = Collection[tuple[int, int]]
"""The columns that one relation has of another: the number of each there, and here. One may be here several times."""

Key: TypeAlias = tuple[int, ...]
"""Columns in the order of a partitioning key: a row is where the partition of their values is."""


_WIDTHS: Final = {
    "BOOLEAN": 1,
    "SMALLINT": 2,
    "INTEGER": 4,
    "DATE": 4,
    "VARCHAR": 16,
    "BLOB": 16,
    "HUGEINT": 16,
    "DECIMAL": 16,
}
_WIDTH: Final = 8
"""About how many bytes a value of a type has, and one of any other type."""
_COPIES_MAX: Final = 4
"""Of so many copies of a column it is known that they say where a row is."""


@dataclass(frozen=True, slots=True)
class AtCoordinator:
    """In one place."""


@dataclass(frozen=True, slots=True)
class AtEveryMember:
    """All rows at every member."""


@dataclass(frozen=True, slots=True)
class AtMembers:
    """Each row at one member.

    Attributes:
        group: The affinity group whose owners have the rows, or a name for rows that were shuffled alike.
        keys: Alternative keys, each of which determines where a row is.
        types: The types of such a key; an equal column may be a wider integer.
        anchor: The scan whose partitions are where the rows are; None where rows were shuffled.
        nullable_keys: Columns that are all NULL in some rows, and else determine where a row is: an outer join has
            filled them. A NULL equals nothing, so they will do for a join by equality, and not for GROUP BY.
    """

    group: str
    keys: frozenset[Key]
    types: tuple[LogicalType, ...]
    anchor: str | None
    nullable_keys: frozenset[Key] = frozenset()

    def with_keys(self, keys: frozenset[Key], nullable_keys: frozenset[Key] = frozenset()) -> AtMembers:
        """The same place, by other columns."""
        return replace(self, keys=keys, nullable_keys=nullable_keys)

    def shifted(self, by: int) -> AtMembers:
        """The same place where ``by`` other columns stand before these."""
        return self.with_keys(_shifted(self.keys, by), _shifted(self.nullable_keys, by))

    @property
    def some_keys(self) -> frozenset[Key]:
        """All keys, those that may be NULL as well."""
        return self.keys | self.nullable_keys

    def meets(self, other: AtMembers, equal: EqualColumns, never_null: EqualColumns) -> bool:
        """Whether rows of two places that are joined are at one member.

        Args:
            other: The other place.
            equal: The columns that the join compares.
            never_null: Those of them that it compares so that a NULL equals nothing.
        """
        return self.group == other.group and (
            equal.any_alike(self.keys, other.keys) or never_null.any_alike(self.some_keys, other.some_keys)
        )

    def route_of(
        self, columns: Sequence[int], types: Sequence[LogicalType], equal: EqualColumns
    ) -> tuple[str, Key] | None:
        """How other rows can follow these to their members.

        Returns:
            The scan whose partitions they follow, and the positions in ``columns`` that say where; None if they cannot.
        """
        if self.anchor is None:
            return None
        for key in sorted(self.keys):
            found = equal.within(key, columns)
            positions = () if found is None else tuple(columns.index(column) for column in found)
            if found is not None and tuple(types[position] for position in positions) == self.types:
                return self.anchor, positions
        return None


Place: TypeAlias = AtCoordinator | AtEveryMember | AtMembers


@dataclass(frozen=True, slots=True)
class Placed:
    """A relation that is computed without a further exchange.

    Attributes:
        relation: Over scans, and over the rows of earlier stages.
        place: Where.
        rows: The estimated number of its rows.
        distinct: The number of distinct values of columns, where that is known.
        widths: The bytes of a value of columns, where these are known; a type has an assumed width.
        largest: The rows of the largest input of the joins in it; 0 where it is no join.
    """

    relation: AnyRelation
    place: Place
    rows: float
    distinct: Mapping[int, float] = field(default_factory=dict)
    widths: Mapping[int, float] = field(default_factory=dict)
    largest: float = 0.0

    def over(self, relation: AnyRelation, rows: float | None = None, place: Place | None = None) -> Placed:
        """Another relation with the same columns."""
        return replace(
            self,
            relation=relation,
            place=self.place if place is None else place,
            rows=self.rows if rows is None else rows,
        )

    def with_columns(self, relation: AnyRelation, columns: Columns, rows: float | None = None) -> Placed:
        """Another relation, some of whose columns are columns of this one.

        Args:
            relation: The relation.
            columns: Each column that it has of this one: the old and the new number.
            rows: Its rows, if they are others.
        """
        return Placed(
            relation,
            moved(self.place, columns),
            self.rows if rows is None else rows,
            {new: self.distinct[old] for old, new in columns if old in self.distinct},
            {new: self.widths[old] for old, new in columns if old in self.widths},
        )

    def nbytes(self, columns: Iterable[int]) -> float:
        """The estimated bytes of all rows in some columns."""
        types = column_types(self.relation)
        return self.rows * (sum(self.widths.get(one, _WIDTHS.get(types[one].id, _WIDTH)) for one in columns) or _WIDTH)


def _shifted(keys: frozenset[Key], by: int) -> frozenset[Key]:
    """The same keys where ``by`` other columns stand before theirs."""
    return frozenset(tuple(column + by for column in key) for key in keys)


PlaceRelation: TypeAlias = Callable[[AnyRelation, frozenset[int]], Placed]
"""Places a relation of which some columns are read."""


def moved(place: Place, columns: Columns) -> Place:
    """The place of rows whose columns are elsewhere now.

    Args:
        place: The place.
        columns: Each column that is left, perhaps more than once: the old and the new number.
    """
    if not isinstance(place, AtMembers):
        return place
    return place.with_keys(_moved(place.keys, columns), _moved(place.nullable_keys, columns))


def _moved(keys: frozenset[Key], columns: Columns) -> frozenset[Key]:
    new: dict[int, list[int]] = {}
    for old, made in columns:
        if len(new.setdefault(old, [])) < _COPIES_MAX:
            new[old].append(made)
    return frozenset(one for key in keys for one in product(*(new.get(column, ()) for column in key)))
