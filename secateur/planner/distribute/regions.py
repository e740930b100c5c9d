"""Regions: inner joins, cross products and filters as a set of inputs, and conditions on all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.joins import conditions_of, is_inner
from secateur.planner.tree.rewriting import bare_column, conjuncts, inputs_of, over_columns


@dataclass(slots=True)
class Region:
    """Inputs that are joined in any order.

    Attributes:
        inputs: The relations.
        starts: The column with which each begins among the columns of all.
        conditions: What holds of the joined rows, over the columns of all.
        outputs: The columns of the region, among those of all.
    """

    inputs: list[rel.AnyRelation] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    conditions: list[ex.AnyExpression] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    width: int = 0

    @classmethod
    def of(cls, relation: rel.AnyRelation) -> Region:
        """The region at the top of a tree."""
        region = cls()
        region.outputs = region._add(relation)
        return region

    def input_of(self, column: int) -> int:
        """The input that has a column."""
        return max(index for index, start in enumerate(self.starts) if start <= column)

    def inputs_of(self, condition: ex.AnyExpression) -> frozenset[int]:
        """The inputs that a condition reads."""
        return frozenset(self.input_of(column) for column in inputs_of([condition]))

    def columns_of(self, index: int) -> range:
        """The columns of an input."""
        end = self.starts[index + 1] if index + 1 < len(self.starts) else self.width
        return range(self.starts[index], end)

    def _add(self, relation: rel.AnyRelation) -> list[int]:
        """Add a relation; returns where its columns are."""
        match relation:
            case rel.LogicalFilter():
                columns = self._add(relation.children[0])
                self.conditions += [over_columns(one, columns) for one in conjuncts(relation.expressions)]
                return [columns[index] for index in relation.projection_map] or columns
            case rel.LogicalProject() if all(isinstance(one, ex.InputColumn) for one in relation.expressions):
                columns = self._add(relation.children[0])
                return [columns[one.index] for one in relation.expressions if isinstance(one, ex.InputColumn)]
            case rel.LogicalCross():
                return [*self._add(relation.children[0]), *self._add(relation.children[1])]
            case rel.LogicalJoin() | rel.LogicalConditionJoin() if is_inner(relation):
                left, right = self._add(relation.children[0]), self._add(relation.children[1])
                self.conditions += [over_columns(one, [*left, *right]) for one in conjuncts(conditions_of(relation))]
                lefts = [left[index] for index in relation.left_projection_map] or left
                return lefts + ([right[index] for index in relation.right_projection_map] or right)
            case _:
                width = len(column_types(relation))
                start, self.width = self.width, self.width + width
                self.inputs.append(relation)
                self.starts.append(start)
                return list(range(start, start + width))


def equal_columns(conditions: Iterable[ex.AnyExpression], *, null_is_equal: bool = True) -> Iterator[tuple[int, int]]:
    """The columns that conditions equate, and whose equal values are interchangeable.

    Args:
        conditions: The conditions.
        null_is_equal: Whether columns count that are equal where both are NULL.
    """
    for condition in conditions:
        match condition:
            case ex.Call(type=kind, children=(left, right)) if kind == "COMPARE_EQUAL" or (
                kind == "COMPARE_NOT_DISTINCT_FROM" and null_is_equal
            ):
                one, other = bare_column(left), bare_column(right)
                if one is not None and other is not None and _alike(one, other):
                    yield one.index, other.index
            case _:
                pass


_INEXACT = frozenset({"FLOAT", "DOUBLE", "INTERVAL", "TIME WITH TIME ZONE"})


def _alike(left: ex.InputColumn, right: ex.InputColumn) -> bool:
    if left.return_type.collation or right.return_type.collation or left.return_type.id in _INEXACT:
        return False
    return left.return_type == right.return_type or (left.return_type.is_integer and right.return_type.is_integer)
