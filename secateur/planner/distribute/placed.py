"""Where the rows of a relation are computed.

Source: the distributions of a parallel plan as properties of its operators (Graefe, "Volcano", 1994), as in
    AddExchanges of Presto and Trino; replicated tables are Ignite's ANY.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from secateur.planner.tree.columns import column_types
from secateur.planner.tree.relations import AnyRelation
from secateur.planner.tree.types import LogicalType

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


def width_of(type_: LogicalType) -> int:
    """About how many bytes a value of a type has."""
    return _WIDTHS.get(type_.id, _WIDTH)


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
    """

    group: str
    keys: frozenset[Key]
    types: tuple[LogicalType, ...]
    anchor: str | None


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
    """

    relation: AnyRelation
    place: Place
    rows: float
    distinct: Mapping[int, float] = field(default_factory=dict)
    widths: Mapping[int, float] = field(default_factory=dict)

    def over(self, relation: AnyRelation, rows: float | None = None, place: Place | None = None) -> Placed:
        """Another relation with the same columns."""
        return replace(
            self,
            relation=relation,
            place=self.place if place is None else place,
            rows=self.rows if rows is None else rows,
        )

    def with_columns(self, relation: AnyRelation, columns: Mapping[int, int], rows: float | None = None) -> Placed:
        """Another relation, some of whose columns are columns of this one.

        Args:
            relation: The relation.
            columns: The new column of each old one that is left.
            rows: Its rows, if they are others.
        """
        return Placed(
            relation,
            moved(self.place, columns),
            self.rows if rows is None else rows,
            {new: self.distinct[old] for old, new in columns.items() if old in self.distinct},
            {new: self.widths[old] for old, new in columns.items() if old in self.widths},
        )

    def nbytes(self, columns: Iterable[int]) -> float:
        """The estimated bytes of all rows in some columns."""
        types = column_types(self.relation)
        return self.rows * (sum(self.widths.get(one, width_of(types[one])) for one in columns) or _WIDTH)


def replace_keys(place: AtMembers, keys: frozenset[Key]) -> AtMembers:
    """The same place, by other columns."""
    return replace(place, keys=keys)


def moved(place: Place, columns: Mapping[int, int]) -> Place:
    """The place of rows whose columns are elsewhere now.

    Args:
        place: The place.
        columns: The new column of each old one that is left.
    """
    if not isinstance(place, AtMembers):
        return place
    keys = (tuple(columns.get(column, -1) for column in key) for key in place.keys)
    return replace(place, keys=frozenset(key for key in keys if -1 not in key))


class EqualColumns:
    """Which columns have equal values in every row.

    Args:
        pairs: Columns that a condition compares.
    """

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        self._first: dict[int, int] = {}
        for left, right in pairs:
            one, other = self.first(left), self.first(right)
            if one != other:
                self._first[max(one, other)] = min(one, other)

    def first(self, column: int) -> int:
        """The representative of the columns that equal this one."""
        while column in self._first:
            column = self._first[column]
        return column

    def alike(self, one: Key, other: Key) -> bool:
        """Whether two keys have equal values."""
        return len(one) == len(other) and all(
            self.first(left) == self.first(right) for left, right in zip(one, other, strict=True)
        )

    def within(self, key: Key, columns: Sequence[int]) -> Key | None:
        """The columns, of some, that equal those of a key; None where one has no equal."""
        found = {self.first(column): column for column in reversed(columns)}
        equal = tuple(found.get(self.first(column), -1) for column in key)
        return None if -1 in equal else equal
