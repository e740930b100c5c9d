"""On the types of which parameters the types in a bound plan may depend."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from secateur.planner.bind.bound_plan import BoundPlan
from secateur.planner.binding.parameter_types import TypeUses
from secateur.planner.prune.overloads import CONTAINS
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.bound_text import BoundText
from secateur.planner.tree.columns import expressions_of, relations_in
from secateur.planner.tree.joins import conditions_of
from secateur.planner.tree.rewriting import cast_of, parts

_WRITTEN: Final = frozenset({"INNER", "LEFT", "RIGHT", "FULL", "OUTER"})
"""The joins that are written as such; the others are subqueries."""
_ROWS: Final = frozenset({"row", "list_value"})


class _Place(Enum):
    """The use of a part of an expression."""

    FREE = auto()
    """Its type may become the type of something else."""
    COMPARED = auto()
    """It is a side of a comparison, or one of the values of a row or list there."""
    CAST = auto()
    """It is the value of a cast of the user's, or such a value is computed from it in each row."""


def type_uses_in(plan: BoundPlan) -> TypeUses:
    """Find out on the types of which parameters the types in a query may depend.

    A parameter counts as compared only if it is itself an operand of the comparison: with ``k = $1 + 1`` the planner
    may do arithmetic of its own.
    """
    needed: set[int] = set()
    unneeded: set[int] = set()
    pending: list[tuple[ex.AnyExpression, _Place]] = []
    for relation in relations_in(plan.root):
        compared = isinstance(relation, rel.LogicalLimit)
        pending += ((one, _Place.COMPARED if compared else _Place.FREE) for one in _apart(relation))
    while pending:
        node, place = pending.pop()
        if isinstance(node, ex.BoundParameter):
            is_free = place is _Place.FREE and plan.text.is_bare(node)
            (needed if is_free else unneeded).add(int(node.identifier) - 1)
            continue
        inner = _inside(node, place, plan.text)
        pending.extend((part, inner) for part in parts(node))
    return TypeUses(frozenset(needed), frozenset(unneeded - needed))


def _apart(relation: rel.AnyRelation) -> list[ex.AnyExpression]:
    """The expressions of a relation; the sides of a comparison in ON are one."""
    if isinstance(relation, rel.LogicalJoin | rel.LogicalConditionJoin) and relation.join_type in _WRITTEN:
        return conditions_of(relation)
    return expressions_of(relation)


def _inside(node: ex.AnyExpression, place: _Place, text: BoundText) -> _Place:
    """The use of the parts of a node."""
    match node:
        case ex.Call() if node.type.startswith("COMPARE_") or node.name in CONTAINS:
            return _Place.COMPARED
        case ex.BoundOperation(type="COMPARE_IN" | "COMPARE_NOT_IN") | ex.Written(sql="({0} = ANY({1}))"):
            return _Place.COMPARED
        case ex.Call() if cast_of(node) is not None:
            return place if text.is_implicit(node) else _Place.CAST
        case _ if text.has_cast(node):
            return _Place.CAST
        case ex.Call() if place is _Place.COMPARED:
            return place if node.name in _ROWS else _Place.FREE
        case ex.Call() if "lambda_expr" not in (node.function_data or ()):
            return place
        case ex.Case() | ex.BoundOperation() if place is _Place.CAST:
            return place
        case _:
            return _Place.FREE
