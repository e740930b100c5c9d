"""The outer rows of a correlated subquery, which DuckDB reads again for the values by which it is correlated."""

from __future__ import annotations

from collections.abc import Iterator

from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel


def has_outer_rows(query: rel.AnyRelation, index: int) -> bool:
    """Whether a query joins the rows of a common table expression with rows that it makes for their values alone.

    Then the first are on the left of a join that compares these values, and every other reader keeps nothing but
    distinct ones of them. A row that does not matter to the join has values that matter to no other row.
    """
    compared: list[frozenset[int]] = []
    read: list[frozenset[int] | None] = []
    for relation, reader in _readers(query, index):
        match relation:
            case rel.LogicalJoin(children=(left, _)) if left is reader and relation.mark_types:
                compared.append(_compared(relation))
            case rel.LogicalAggregate(expressions=(), grouping_sets=()) if all(
                isinstance(one, ex.InputColumn) for one in relation.groups
            ):
                read.append(frozenset(one.index for one in relation.groups if isinstance(one, ex.InputColumn)))
            case _:
                read.append(None)
    return len(compared) == 1 and all(one is not None and one <= compared[0] for one in read)


def _readers(relation: rel.AnyRelation, index: int) -> Iterator[tuple[rel.AnyRelation, rel.LogicalWithReference]]:
    """The readers of a common table expression, each with what it reads."""
    for child in relation.children:
        if isinstance(child, rel.LogicalWithReference) and child.cte_index == index:
            yield relation, child
        else:
            yield from _readers(child, index)


def _compared(join: rel.LogicalJoin) -> frozenset[int]:
    return frozenset(
        one.left.index
        for one in join.conditions
        if one.comparison == "COMPARE_NOT_DISTINCT_FROM" and isinstance(one.left, ex.InputColumn)
    )
