"""What joins have in common."""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.comparisons import compared
from secateur.planner.tree.rewriting import shifted

Join: TypeAlias = rel.LogicalJoin | rel.LogicalConditionJoin


def is_inner(relation: rel.AnyRelation) -> TypeGuard[Join]:
    """Whether a relation is an inner join whose sides may be exchanged."""
    return (
        isinstance(relation, Join) and relation.join_type == "INNER" and not isinstance(relation, rel.LogicalAsofJoin)
    )


def conditions_of(relation: Join) -> list[ex.AnyExpression]:
    """The conditions of a join over the columns of both sides."""
    if isinstance(relation, rel.LogicalConditionJoin):
        return [relation.condition]
    width = len(column_types(relation.children[0]))
    return [_as_expression(condition, width) for condition in relation.conditions]


def _as_expression(condition: rel.JoinCondition, left_width: int) -> ex.AnyExpression:
    if condition.right is None:
        return condition.left
    return compared(condition.comparison, condition.left, shifted(condition.right, left_width))
