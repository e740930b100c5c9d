"""A predicate on one of two equal columns is copied to the other.

::

    WHERE a = b AND b = 5
    WHERE a = b AND b = 5 AND a = 5

Columns of different tables need no rule: equalities already carry predicates from one side of a join to the other.
"""

from __future__ import annotations

from dataclasses import replace

from secateur.planner.relations.bound_predicate import BoundPredicate
from secateur.planner.relations.equality import EquivalenceClasses, equated
from secateur.planner.relations.implied_predicates import ImpliedPredicates
from secateur.planner.relations.nodes import Filter, Relation
from secateur.planner.rewrites.rule import Rule


def _apply(relation: Relation) -> Relation | None:
    if not isinstance(relation, Filter):
        return None
    known = [*relation.conjuncts, *ImpliedPredicates(relation.input).of(relation.input)]
    if not any(_equates_one_table(conjunct) for conjunct in known):
        return None
    said = EquivalenceClasses(known).constants(known)
    return replace(relation, conjuncts=(*relation.conjuncts, *said)) if said else None


def _equates_one_table(conjunct: BoundPredicate) -> bool:
    pair = equated(conjunct)
    return pair is not None and pair[0].owner == pair[1].owner


RULE = Rule("constant_propagation", _apply)
