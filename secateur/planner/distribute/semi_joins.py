"""Semi-joins before rows are aggregated or move: a scan leaves out rows that a later join would.

Source: Bernstein and Chiu, "Using semi-joins to solve relational queries", 1981.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.rewriting import column_of, is_inner

Reduce: TypeAlias = Callable[[rel.LogicalScan, Sequence[int]], rel.AnyRelation | None]
"""What takes the place of a scan, some of whose columns say which of its rows are needed; None where it stays."""


def reduced(relation: rel.AnyRelation, columns: Sequence[int], reduce: Reduce) -> rel.AnyRelation | None:
    """A relation over fewer rows, of which the same are left where some columns have certain values.

    Returns:
        None where they do not come from one scan, its rows count although their values are others, or it stays.
    """
    below: list[int | None]
    side = 0
    match relation:
        case rel.LogicalScan():
            return None if relation.table is None else reduce(relation, columns)
        case rel.LogicalProject():
            below = [_column(relation.expressions[column]) for column in columns]
        case rel.LogicalFilter():
            below = [*columns]
        case rel.LogicalAggregate() if len(relation.grouping_sets) <= 1 and not relation.grouping_functions:
            groups = relation.groups
            below = [_column(groups[column]) if column < len(groups) else None for column in columns]
        case rel.LogicalCross() | rel.LogicalJoin() | rel.LogicalConditionJoin() if isinstance(
            relation, rel.LogicalCross
        ) or is_inner(relation):
            below, side = _of_side(columns, *map(_width, relation.children))
        case rel.LogicalJoin(join_type="SEMI" | "ANTI" | "LEFT" | "MARK" | "SINGLE") if not isinstance(
            relation, rel.LogicalAsofJoin
        ):
            below, side = _of_side(columns, _width(relation.children[0]), 0)
        case _:
            return None
    found = [column for column in below if column is not None]
    if len(found) < len(columns):
        return None
    made = reduced(relation.children[side], found, reduce)
    if made is None:
        return None
    children = (*relation.children[:side], made, *relation.children[side + 1 :])
    return replace(relation, children=children)


def semi_join(
    rows: rel.AnyRelation,
    columns: Sequence[int],
    keys: rel.AnyRelation,
    values: Sequence[int],
    comparisons: Sequence[str],
) -> rel.AnyRelation:
    """The rows for whose columns another relation has values that compare."""
    types, key_types = column_types(rows), column_types(keys)
    conditions = tuple(
        rel.JoinCondition(
            left=column_of(column, types[column]), right=column_of(value, key_types[value]), comparison=comparison
        )
        for column, value, comparison in zip(columns, values, comparisons, strict=True)
    )
    return rel.LogicalJoin(join_type="SEMI", children=(rows, keys), conditions=conditions)


def _column(expression: ex.AnyExpression) -> int | None:
    return expression.index if isinstance(expression, ex.InputColumn) else None


def _width(relation: rel.AnyRelation) -> int:
    return len(column_types(relation))


def _of_side(columns: Sequence[int], left: int, right: int) -> tuple[list[int | None], int]:
    """The columns of one side of a join, of such widths, that columns of it are, and which side that is."""
    side = int(all(column >= left for column in columns))
    own = range(left, left + right) if side else range(left)
    return [column - own.start if column in own else None for column in columns], side
