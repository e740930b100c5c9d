"""An outer join adds no row and no value where its NULL-filled side is unique and nothing of it is read.

::

    SELECT emp.name FROM emp LEFT JOIN (SELECT DISTINCT id FROM dept) d ON emp.dept_id = d.id
    SELECT emp.name FROM emp

Each row of the preserved side then comes once, with or without a match. The text that runs keeps the join, so every
scan of the side gets the filter FALSE and reads no partition: the side is unique without rows as well. The rule
leaves out sides and conditions with expressions that might raise an error about a row.

Source: Rao, Pirahesh, Zuzarte, "Canonical Abstraction for Outerjoin Optimization" (2004); Calcite
(``ProjectJoinRemoveRule``), MariaDB ("table elimination").
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from secateur.partitioning.types.column_type import TypeKind
from secateur.planner.relations.attribute import Attribute, occurrence
from secateur.planner.relations.bound_predicate import BoundPredicate
from secateur.planner.relations.equality import equated
from secateur.planner.relations.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinType,
    Project,
    Relation,
    Scan,
    owners,
    postorder,
)
from secateur.planner.relations.transform import transform
from secateur.planner.relations.uniqueness import is_unique
from secateur.planner.rewrites.rule import Rule

_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def _apply(relation: Relation) -> Relation | None:
    if not isinstance(relation, Join) or not relation.unread:
        return None
    match relation.kind:
        case JoinType.LEFT:
            side = relation.right
        case JoinType.RIGHT:
            side = relation.left
        case _:
            return None
    if not all(map(_never_raises, postorder(side))):
        return None
    own = owners(side)
    keys: set[Attribute] = set()
    for conjunct in relation.on:
        ours = [attribute for attribute in equated(conjunct) or () if attribute.owner in own]
        if len(ours) != 1:
            return None
        keys.update(ours)
    if not is_unique(side, frozenset(keys)):
        return None
    # Nothing is left to do for another pass over the tree.
    if relation.kind is JoinType.LEFT:
        return Join(relation.kind, relation.left, _without_rows(side), relation.on)
    return Join(relation.kind, _without_rows(side), relation.right, relation.on)


def _without_rows(side: Relation) -> Relation:
    def change(relation: Relation) -> Relation:
        if not isinstance(relation, Scan):
            return relation
        return Filter(relation, (BoundPredicate(exp.false(), {}, structural=True),))

    return transform(side, change)


def _never_raises(relation: Relation) -> bool:
    """Whether an operator certainly computes nothing that might raise an error about a row."""
    match relation:
        case Scan():
            return True
        case Project(_, _, sources):
            return None not in sources
        case Distinct(_, keys, exact):
            return keys is None or exact
        case Aggregate(exact=exact):
            return exact
        case Filter(_, conjuncts):
            return all(map(_compares_as_is, conjuncts))
        case _:
            return False


def _compares_as_is(conjunct: BoundPredicate) -> bool:
    """Whether a conjunct compares a column with a literal and casts neither of them for each row."""
    predicate = conjunct.predicate.unnest()
    if not isinstance(predicate, _COMPARISONS):
        return False
    column, literal = predicate.this.unnest(), predicate.expression.unnest()
    if not isinstance(column, exp.Column) or not isinstance(literal, exp.Literal):
        return False
    attribute = conjunct.binding.get(occurrence(column))
    if attribute is None or attribute.type is None:
        return False
    if literal.is_string:
        return attribute.type.kind is TypeKind.VARCHAR
    return attribute.type.is_integer and literal.name.isdecimal()


RULE = Rule("outer_join_elimination", _apply)
