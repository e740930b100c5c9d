"""An aggregate of a grouping column that returns one of its values becomes the column.

::

    GROUP BY dept_id HAVING min(dept_id) = 7
    GROUP BY dept_id HAVING dept_id = 7

All rows of a group have one value there, so its smallest, greatest, first and any other value are that value, which is
NULL only for the group of NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from secateur.planner.relations.attribute import Attribute, occurrence
from secateur.planner.relations.bound_predicate import BoundPredicate, fresh
from secateur.planner.relations.calls import chosen_column
from secateur.planner.relations.nodes import Aggregate, Filter, Relation
from secateur.planner.rewrites.rule import Rule


def _apply(relation: Relation) -> Relation | None:
    if not isinstance(relation, Filter) or not isinstance(relation.input, Aggregate):
        return None
    keys = relation.input.keys
    conjuncts = tuple(
        _of_groups(conjunct, keys) if any(_aggregates(conjunct, keys)) else conjunct for conjunct in relation.conjuncts
    )
    return None if conjuncts == relation.conjuncts else replace(relation, conjuncts=conjuncts)


def _aggregates(conjunct: BoundPredicate, keys: frozenset[Attribute]) -> Iterator[tuple[exp.Expr, exp.Column]]:
    """The calls that return the value of a grouping column, with the column."""
    for call in conjunct.predicate.find_all(exp.Func):
        column = chosen_column(call)
        if (
            column is not None
            and conjunct.binding.get(occurrence(column)) in keys
            and not isinstance(call.parent, (exp.Filter, exp.WithinGroup))
        ):
            yield call, column


def _of_groups(conjunct: BoundPredicate, keys: frozenset[Attribute]) -> BoundPredicate:
    copy = fresh(conjunct)
    predicate = copy.predicate
    for call, column in list(_aggregates(copy, keys)):
        call.replace(column)
        predicate = column if call is predicate else predicate
    return replace(copy, predicate=predicate, carried=True)


RULE = Rule("aggregate_of_group_key", _apply)
