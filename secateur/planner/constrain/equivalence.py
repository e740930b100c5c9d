"""Equivalence classes: columns that are equal wherever it matters, which carry conditions across joins.

Source: the co-location tree of IEP-24 (Ignite); predicate move-around (Levy, Mumick, Sagiv, VLDB 1994). Unlike in
    IEP-24 the partition *set* of one table is never applied to another: the condition is carried over, and each scan
    reads it with its own scheme.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import pairwise

from secateur.planner.constrain.condition import Condition, in_type_of, with_equal_columns
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import compared
from secateur.planner.tree.equal_columns import equated
from secateur.planner.tree.rewriting import input_columns


class Equivalence:
    """The classes that conditions make which all hold for the rows that matter."""

    def __init__(self, conditions: Iterable[Condition]) -> None:
        self._class_of: dict[int, list[ex.InputColumn]] = {}
        for one in conditions:
            pair = equated(one.expression)
            if pair is not None:
                self._unite(*pair)

    def _unite(self, left: ex.InputColumn, right: ex.InputColumn) -> None:
        ours = self._class_of.setdefault(left.index, [left])
        theirs = self._class_of.setdefault(right.index, [right])
        if ours is not theirs:
            ours += theirs
            for column in theirs:
                self._class_of[column.index] = ours

    def equal_to(self, column: int) -> Sequence[ex.InputColumn]:
        """The class of a column; empty where it has none."""
        return self._class_of.get(column, ())

    def are_equal(self, left: int, right: int) -> bool:
        """Whether two columns are in one class."""
        return left == right or any(column.index == right for column in self.equal_to(left))

    def carry(self, condition: Condition, side: Set[int]) -> Condition | None:
        """A condition from elsewhere as one of a side; None where no column of it has an equal there."""
        meaning = {}
        for column in condition.columns:
            others = () if column in side else self.equal_to(column)
            equal = next((other for other in others if other.index in side), None)
            if equal is not None:
                meaning[column] = equal
        if not meaning:
            return None
        pair = equated(condition.expression)
        if pair is not None and self.are_equal(*(meaning.get(one.index, one).index for one in pair)):
            return None
        return Condition(with_equal_columns(condition.expression, meaning), is_moved=True)

    def within(self, side: Set[int], conditions: Iterable[Condition]) -> Iterator[Condition]:
        """The conditions on one column of a side for each column of the side that equals it."""
        for one in conditions:
            if len(one.columns) == 1 and not one.columns.isdisjoint(side):
                (column,) = one.columns
                for other in self.equal_to(column):
                    if other.index != column and other.index in side:
                        yield Condition(with_equal_columns(one.expression, {column: other}), is_moved=True)

    def implied(self, side: Set[int], known: Iterable[Condition]) -> Iterator[Condition]:
        """Equalities of a side that follow through columns from elsewhere."""
        own = Equivalence(one for one in known if one.columns <= side)
        seen: set[int] = set()
        for column, members in self._class_of.items():
            if column in seen:
                continue
            seen.update(member.index for member in members)
            inside = [member for member in members if member.index in side]
            for left, right in pairwise(inside):
                if not own.are_equal(left.index, right.index):
                    same = compared("COMPARE_NOT_DISTINCT_FROM", left, in_type_of(left, right))
                    yield Condition(same, is_moved=True)


def columns_in(node: ex.AnyExpression) -> dict[int, ex.InputColumn]:
    """The columns that an expression reads, by number."""
    return {one.index: one for one in input_columns(node)}
