"""Regions: inner joins, cross products and filters as a set of inputs, and conditions on all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from secateur.planner.distribute.placed import EqualColumns, Key
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.rewriting import conjuncts, inputs_of, rebased, shifted


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
                self.conditions += [_over(one, columns) for one in conjuncts(relation.expressions)]
                return [columns[index] for index in relation.projection_map] or columns
            case rel.LogicalProject() if all(isinstance(one, ex.InputColumn) for one in relation.expressions):
                columns = self._add(relation.children[0])
                return [columns[one.index] for one in relation.expressions if isinstance(one, ex.InputColumn)]
            case rel.LogicalCross():
                return [*self._add(relation.children[0]), *self._add(relation.children[1])]
            case rel.LogicalJoin(join_type="INNER") if (
                not isinstance(relation, rel.LogicalAsofJoin) and relation.predicate is None
            ):
                left, right = self._add(relation.children[0]), self._add(relation.children[1])
                self.conditions += [
                    _over(one, [*left, *right])
                    for condition in relation.conditions
                    for one in conjuncts([as_expression(condition, len(left))])
                ]
                return self._kept(relation, left, right)
            case rel.LogicalConditionJoin(join_type="INNER"):
                left, right = self._add(relation.children[0]), self._add(relation.children[1])
                self.conditions += [_over(one, [*left, *right]) for one in conjuncts([relation.condition])]
                return self._kept(relation, left, right)
            case _:
                width = len(column_types(relation))
                start, self.width = self.width, self.width + width
                self.inputs.append(relation)
                self.starts.append(start)
                return list(range(start, start + width))

    def _kept(
        self, relation: rel.LogicalJoin | rel.LogicalConditionJoin, left: list[int], right: list[int]
    ) -> list[int]:
        lefts = [left[index] for index in relation.left_projection_map] or left
        return lefts + ([right[index] for index in relation.right_projection_map] or right)


def as_expression(condition: rel.JoinCondition, left_width: int) -> ex.AnyExpression:
    """A condition of a join over the columns of both sides."""
    if condition.right is None:
        return condition.left
    return ex.Call(
        type=condition.comparison,
        return_type=ex.BOOLEAN,
        qname=ex.QualifiedName((condition.comparison,)),
        children=(condition.left, shifted(condition.right, left_width)),
        is_operator=True,
    )


def equal_columns(conditions: Sequence[ex.AnyExpression]) -> Iterator[tuple[int, int]]:
    """The columns that conditions equate, and whose equal values are interchangeable."""
    for condition in conditions:
        match condition:
            case ex.Call(type="COMPARE_EQUAL" | "COMPARE_NOT_DISTINCT_FROM", children=(left, right)):
                one, other = bare_column(left), bare_column(right)
                if one is not None and other is not None and _alike(one, other):
                    yield one.index, other.index
            case _:
                pass


_INEXACT = frozenset({"FLOAT", "DOUBLE", "INTERVAL", "TIME WITH TIME ZONE"})


def bare_column(node: ex.AnyExpression) -> ex.InputColumn | None:
    """The column that an expression is, or a wider integer of the same value."""
    match node:
        case ex.InputColumn():
            return node
        case ex.Call(children=(ex.InputColumn() as column,)) if (
            node.name == "__cast" and not node.function_data["try_cast"]
        ):
            widened = node.return_type.is_integer and column.return_type.is_integer
            return column if widened else None
        case _:
            return None


def _alike(left: ex.InputColumn, right: ex.InputColumn) -> bool:
    if left.return_type.collation or right.return_type.collation or left.return_type.id in _INEXACT:
        return False
    return left.return_type == right.return_type or (left.return_type.is_integer and right.return_type.is_integer)


def keys_equal(keys: frozenset[Key], others: frozenset[Key], equal: EqualColumns) -> bool:
    """Whether one of some keys equals one of others."""
    return any(equal.alike(one, other) for one in keys for other in others)


def _over(expression: ex.AnyExpression, columns: Sequence[int]) -> ex.AnyExpression:
    return rebased(expression, lambda column: replace(column, index=columns[column.index]))
