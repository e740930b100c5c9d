"""What joins have in common."""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

from msgspec.structs import replace

from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.comparisons import compared
from secateur.planner.tree.rewriting import over_columns, shifted

Join: TypeAlias = rel.LogicalJoin | rel.LogicalConditionJoin


def is_inner(relation: rel.AnyRelation) -> TypeGuard[Join]:
    """Whether a relation is an inner join whose sides may be exchanged."""
    return (
        isinstance(relation, Join) and relation.join_type == "INNER" and not isinstance(relation, rel.LogicalAsofJoin)
    )


def over_sides(relation: rel.AnyRelation) -> rel.AnyRelation:
    """Each condition of a join over all columns of its sides: DuckDB has it over those that the join returns."""
    relation = replace(relation, children=tuple(over_sides(child) for child in relation.children))
    if not isinstance(relation, rel.LogicalConditionJoin) or not (
        relation.left_projection_map or relation.right_projection_map
    ):
        return relation
    left, right = (len(column_types(child)) for child in relation.children)
    lefts, rights = relation.left_projection_map or range(left), relation.right_projection_map or range(right)
    if relation.join_type in ("SEMI", "ANTI"):  # it returns nothing of the right side
        rights = range(right)
    columns = [*lefts, *(left + index for index in rights)]
    return replace(relation, condition=over_columns(relation.condition, columns))


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
