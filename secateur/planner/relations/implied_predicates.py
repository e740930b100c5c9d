"""Implied predicates: predicates that hold for every row of a relation.

A side of a join passes them to the other side. The rows of ``(SELECT * FROM dept WHERE id = 7) d`` have ``id = 7``, so
a row of ``emp`` that joins with one of them on ``dept_id = id`` has ``dept_id = 7``. An implied predicate may refer to
attributes that are not columns of the relation; they then belong to some row of an input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from secateur.planner.relations.bound_predicate import BoundPredicate, any_of, distinct
from secateur.planner.relations.nodes import (
    Aggregate,
    Apply,
    AsOfRight,
    Derived,
    Distinct,
    Filter,
    Join,
    JoinType,
    Limit,
    Opaque,
    Project,
    Relation,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    Unknown,
    Values,
    Window,
    postorder,
)


class ImpliedPredicates:
    """The facts of all relations of a tree. Cost: linear in the tree, times the facts.

    Args:
        root: The tree.
    """

    def __init__(self, root: Relation) -> None:
        self._facts: dict[int, tuple[BoundPredicate, ...]] = {}
        for relation in postorder(root):
            self._facts[id(relation)] = distinct(fact for fact in self._derive(relation) if fact.blocked is None)

    def of(self, relation: Relation) -> tuple[BoundPredicate, ...]:
        """The facts of one relation of the tree."""
        return self._facts[id(relation)]

    def _derive(self, relation: Relation) -> Sequence[BoundPredicate]:
        match relation:
            case Scan() | Unknown() | Opaque():
                return ()
            case Values(_, facts):
                return facts
            case Filter(input, conjuncts):
                return *self.of(input), *conjuncts
            case Sort(input) | Limit(input) | Distinct(input) | Window(input) | AsOfRight(input) | Apply(input):
                # Their rows are rows of the input.
                return self.of(input)
            case Derived():
                # Until a rewrite has made it an input of the join.
                return ()
            case Project(input, attributes, sources):
                shown = {
                    source: attribute
                    for attribute, source in zip(attributes, sources, strict=True)
                    if source is not None
                }
                return [fact.rebound(lambda attribute: shown.get(attribute, attribute)) for fact in self.of(input)]
            case Aggregate(input, keys, plain):
                # Every group has a row for which they hold, except the one group over no rows.
                return self.of(input) if keys and plain else ()
            case SetOperation():
                return self._of_set(relation)
            case Join(kind, left, right, on):
                match kind:
                    case JoinType.INNER | JoinType.SEMI:
                        return *self.of(left), *self.of(right), *on
                    case JoinType.LEFT | JoinType.ANTI:
                        return self.of(left)
                    case JoinType.RIGHT:
                        return self.of(right)
                    case JoinType.FULL:
                        return ()
                    case _:
                        assert_never(kind)
            case _:
                assert_never(relation)

    def _of_set(self, relation: SetOperation) -> Sequence[BoundPredicate]:
        if not relation.attributes:
            return ()
        given = []
        for input, sources in zip(relation.inputs, relation.sources, strict=True):
            shown = {
                source: attribute
                for source, attribute in zip(sources, relation.attributes, strict=True)
                if source is not None and attribute.type is not None
            }
            facts = [fact for fact in self.of(input) if fact.attributes & shown.keys()]
            given.append([fact.rebound(shown.get) for fact in facts])
        match relation.kind:
            case SetKind.UNION:
                either = any_of(given)
                return () if either is None else (either,)
            case SetKind.INTERSECT:
                return [fact for facts in given for fact in facts]
            case SetKind.EXCEPT:
                return given[0]
            case _:
                assert_never(relation.kind)
