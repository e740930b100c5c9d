"""A comparison of two tables that all branches of an OR have in common is a conjunct beside it.

::

    WHERE (a.id = b.id AND a.size < 5) OR (a.id = b.id AND b.state = 'CA')
    WHERE a.id = b.id AND ((a.id = b.id AND a.size < 5) OR (a.id = b.id AND b.state = 'CA'))

It then carries predicates from one table to the other, and co-locates them. What the branches say of one table alone
needs no rule: predicates are read for each branch.

Source: query 19 of TPC-H; the distributivity rules of Calcite (``RexUtil.pullFactors``) and DuckDB.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp

from secateur.planner.predicates.predicate import flat
from secateur.planner.relations.attribute import columns_in, occurrence
from secateur.planner.relations.bound_predicate import BoundPredicate
from secateur.planner.relations.nodes import Filter, Join, Relation
from secateur.planner.rewrites.rule import Rule

_BRANCHES_MAX: Final = 32
_MIRRORED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {exp.LT: exp.GT, exp.LTE: exp.GTE}


def _apply(relation: Relation) -> Relation | None:
    match relation:
        case Filter(_, conjuncts):
            common = _missing(conjuncts)
            return replace(relation, conjuncts=(*conjuncts, *common)) if common else None
        case Join(on=on):
            common = _missing(on)
            return replace(relation, on=(*on, *common)) if common else None
        case _:
            return None


def _missing(conjuncts: Sequence[BoundPredicate]) -> list[BoundPredicate]:
    """The comparisons that some OR among the conjuncts implies, and that are not among them already."""
    found = [common for conjunct in conjuncts for common in _common(conjunct)]
    if not found:
        return []
    known = {key for conjunct in conjuncts if (key := _compared(conjunct.predicate, conjunct)) is not None}
    new = {key: common for common in found if (key := _compared(common.predicate, common)) not in known}
    return list(new.values())


def _common(conjunct: BoundPredicate) -> Iterator[BoundPredicate]:
    """The comparisons of two tables that stand in every branch of an OR."""
    whole = conjunct.predicate.unnest()
    if conjunct.blocked is not None or not isinstance(whole, exp.Or):
        return
    branches = list(flat(whole, exp.Or))
    if len(branches) > _BRANCHES_MAX:
        return
    first, *others = [
        {key: part for part in flat(branch, exp.And) if (key := _compared(part, conjunct)) is not None}
        for branch in branches
    ]
    for key, part in first.items():
        if all(key in other for other in others):
            named = {occurrence(column) for column in columns_in(part)}
            binding = {number: attribute for number, attribute in conjunct.binding.items() if number in named}
            yield replace(conjunct, predicate=part, binding=binding, carried=True)


def _compared(node: exp.Expr, conjunct: BoundPredicate) -> Hashable | None:
    """Equal for comparisons of the same two columns of two relations that say the same; None for anything else."""
    node = node.unnest()
    if not isinstance(node, (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)):
        return None
    sides = [node.this.unnest(), node.expression.unnest()]
    left, right = (conjunct.binding.get(occurrence(side)) if isinstance(side, exp.Column) else None for side in sides)
    if left is None or right is None or left.owner == right.owner:
        return None
    if isinstance(node, exp.EQ):
        return exp.EQ, frozenset((left, right))
    mirrored = _MIRRORED.get(type(node))
    return (type(node), left, right) if mirrored is None else (mirrored, right, left)


RULE = Rule("common_conjunct", _apply)
