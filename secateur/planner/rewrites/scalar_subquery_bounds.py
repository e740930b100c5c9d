"""Applies predicates on every value that a subquery may return to a column that equals it.

::

    WHERE id = (SELECT max(id) FROM t WHERE id BETWEEN 13 AND 20)
    WHERE id = (SELECT max(id) FROM t WHERE id BETWEEN 13 AND 20) AND id BETWEEN 13 AND 20

The subquery returns the value of a column in one of its rows, or NULL, with which nothing is equal. So this does not
apply to sums, averages and counts. An inequality passes the bound that it leaves: ``id > (SELECT max(id) ...)`` above
is ``id > 13``. Nothing passes into the subquery, whose value depends on all of its rows.

Source: IEP-24, "Materialization", before the value is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from secateur.planner.relations.bound_predicate import BoundPredicate
from secateur.planner.relations.equality import EquivalenceClasses, equated
from secateur.planner.relations.implied_predicates import ImpliedPredicates
from secateur.planner.relations.inequality import implied_bounds
from secateur.planner.relations.nodes import Apply, Filter, Join, Relation, SetOperation, children, owners
from secateur.planner.rewrites.rule import Rule


def _apply(relation: Relation) -> Relation | None:
    if not isinstance(relation, Apply) or not relation.compared:
        return None
    outer = owners(relation.input)
    known = [*relation.compared, *_facts(relation.subquery)]
    classes = EquivalenceClasses(known)
    found = [
        bound
        for bound in (*classes.constants(known), *implied_bounds(known, outer, classes))
        if all(attribute.owner in outer for attribute in bound.attributes)
    ]
    return replace(relation, input=Filter(relation.input, tuple(found)), compared=()) if found else None


def _facts(subquery: Relation) -> Iterator[BoundPredicate]:
    """The predicates on one column, and equalities, of each row from which the subquery may take its value."""
    implied = ImpliedPredicates(subquery)
    relation = subquery
    while True:
        for fact in implied.of(relation):
            if len(fact.attributes) == 1 or equated(fact) is not None:
                yield fact
        inputs = children(relation)
        if not inputs or isinstance(relation, (Join, SetOperation)):
            return
        relation = inputs[0]


RULE = Rule("scalar_subquery_bounds", _apply)
