"""What is said of one of two equal columns is said of the other.

::

    WHERE a = b AND b = 5
    WHERE a = b AND b = 5 AND a = 5

Columns of different tables need no rule: equalities carry restrictions from one side of a join to the other by themselves.
"""

from __future__ import annotations

from dataclasses import replace

from secateur.planner.relations.equality import Classes, equated
from secateur.planner.relations.facts import Facts
from secateur.planner.relations.nodes import Filter, Relation
from secateur.planner.relations.restriction import Restriction
from secateur.planner.rewrites.rule import Rule

__all__ = ["RULE"]


def _apply(relation: Relation) -> Relation | None:
    if not isinstance(relation, Filter):
        return None
    known = [*relation.conjuncts, *Facts(relation.input).of(relation.input)]
    if not any(_equates_one_table(restriction) for restriction in known):
        return None
    said = Classes(known).constants(known)
    return replace(relation, conjuncts=(*relation.conjuncts, *said)) if said else None


def _equates_one_table(restriction: Restriction) -> bool:
    pair = equated(restriction)
    return pair is not None and pair[0].owner == pair[1].owner


RULE = Rule("constant_propagation", _apply)
