"""Columns that are equal: what conditions equate, and the classes that follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import bare_column
from secateur.planner.tree.types import INEXACT, LogicalType

Numbers: TypeAlias = tuple[int, ...]
"""Columns by their numbers, in an order."""
_NESTED: Final = frozenset({"LIST", "STRUCT", "MAP", "ARRAY", "UNION", "TUPLE", "VARIANT"})
"""Types whose values may have inexact values in them."""


def equals_are_identical(type_: LogicalType) -> bool:
    """Whether equal values of a type are identical: 0.0 and -0.0 are equal, but as texts they differ."""
    return type_.id not in INEXACT | _NESTED and not type_.collation


def compares_alike(left: ex.InputColumn, right: ex.InputColumn) -> bool:
    """Whether equal columns are interchangeable in every comparison.

    They are if they have one type, or are integers, which DuckDB widens without loss.
    """
    if not equals_are_identical(left.return_type):
        return False
    return left.return_type == right.return_type or (left.return_type.is_integer and right.return_type.is_integer)


def equated(condition: ex.AnyExpression) -> tuple[ex.InputColumn, ex.InputColumn] | None:
    """The two columns of ``a = b`` where they are interchangeable."""
    match condition:
        case ex.Call(type="COMPARE_EQUAL" | "COMPARE_NOT_DISTINCT_FROM", children=(left, right)):
            one, other = bare_column(left), bare_column(right)
            if one is not None and other is not None and one.index != other.index and compares_alike(one, other):
                return one, other
            return None
        case _:
            return None


def equal_columns(conditions: Iterable[ex.AnyExpression], *, null_is_equal: bool = True) -> Iterator[tuple[int, int]]:
    """The pairs of columns that conditions equate, by their numbers.

    Args:
        conditions: The conditions.
        null_is_equal: Whether columns count that are equal where both are NULL.
    """
    for one in conditions:
        pair = equated(one) if null_is_equal or one.type == "COMPARE_EQUAL" else None
        if pair is not None:
            yield pair[0].index, pair[1].index


class EqualColumns:
    """Which columns have equal values in every row, by the pairs that a condition compares."""

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        self._first: dict[int, int] = {}
        for left, right in pairs:
            self.add(left, right)

    def add(self, left: int, right: int) -> None:
        """Two more columns are equal."""
        one, other = self.first(left), self.first(right)
        if one != other:
            self._first[max(one, other)] = min(one, other)

    def first(self, column: int) -> int:
        """The representative of the columns that equal this one."""
        while column in self._first:
            column = self._first[column]
        return column

    def alike(self, one: Numbers, other: Numbers) -> bool:
        """Whether two keys have equal values."""
        return len(one) == len(other) and all(
            self.first(left) == self.first(right) for left, right in zip(one, other, strict=True)
        )

    def any_alike(self, keys: frozenset[Numbers], others: frozenset[Numbers]) -> bool:
        """Whether one of some keys has equal values with one of others."""
        return any(self.alike(one, other) for one in keys for other in others)

    def within(self, key: Numbers, columns: Sequence[int]) -> Numbers | None:
        """The columns, of some, that equal those of a key; None where one has no equal."""
        found = {self.first(column): column for column in reversed(columns)}
        equal = tuple(found.get(self.first(column), -1) for column in key)
        return None if -1 in equal else equal
