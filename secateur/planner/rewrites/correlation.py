"""Properties of a subquery that the rules test."""

from __future__ import annotations

from secateur.planner.relations.attribute import compares_alike
from secateur.planner.relations.bound_predicate import BoundPredicate, equality
from secateur.planner.relations.nodes import Apply, Relation
from secateur.planner.relations.transform import conjuncts_of


def is_correlated(subquery: Relation, outer: frozenset[int]) -> bool:
    """Whether a condition inside of a subquery refers to the outer rows."""
    return any(conjunct.touches(outer) for conjunct in conjuncts_of(subquery))


def comparisons(relation: Apply) -> tuple[BoundPredicate, ...]:
    """Return the equalities that IN implies between bare columns of types that compare alike."""
    pairs = [
        (left, right)
        for left, right in zip(relation.operands, relation.outputs, strict=True)
        if left is not None and right is not None
    ]
    return tuple(equality(left, right, structural=True) for left, right in pairs if compares_alike(left, right))
