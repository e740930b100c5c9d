"""The equalities that a relational tree implies, independent of assumptions about its scans and computed once."""

from __future__ import annotations

from typing import TypeAlias

from sqlglot import exp

from secateur.planner.relations.attribute import Attribute, compares_alike
from secateur.planner.relations.equality import EquivalenceClasses, equated
from secateur.planner.relations.nodes import Apply, Filter, Join, Project, Relation, owners
from secateur.planner.rewrites.correlation import is_correlated

Pair: TypeAlias = tuple[Attribute, Attribute]
"""Two equal attributes that are interchangeable."""
Known: TypeAlias = tuple[Pair, ...]
"""Equalities that hold for all rows that matter."""


class RelationEqualities:
    """The equalities of one tree of relations, which has to live as long as this object."""

    def __init__(self) -> None:
        self._pairs: dict[int, Known] = {}
        self._classes: dict[Known, EquivalenceClasses] = {}
        self._owners: dict[int, frozenset[int]] = {}
        self._correlated: dict[int, bool] = {}
        self._never_null: dict[int, frozenset[Attribute]] = {}

    def of(self, relation: Filter | Join | Apply | Project) -> Known:
        """Return the equalities of a condition, of IN, or between columns and the attributes that they show."""
        found = self._pairs.get(id(relation))
        if found is None:
            match relation:
                case Filter(_, conjuncts) | Join(on=conjuncts):
                    found = tuple(pair for pair in map(equated, conjuncts) if pair is not None)
                case Apply(operands=operands, outputs=outputs):
                    sides = zip(operands, outputs, strict=True)
                    found = tuple(
                        (ours, theirs)
                        for ours, theirs in sides
                        if ours is not None and theirs is not None and _equal(ours, theirs)
                    )
                case Project(_, attributes, sources):
                    shown = zip(attributes, sources, strict=True)
                    found = tuple(
                        (attribute, source)
                        for attribute, source in shown
                        if source is not None and _equal(attribute, source)
                    )
            self._pairs[id(relation)] = found
        return found

    def never_null_in(self, join: Join) -> frozenset[Attribute]:
        """The attributes that a join compares with ``=``: they are not NULL in any pair of rows that match."""
        found = self._never_null.get(id(join))
        if found is None:
            strict = [conjunct for conjunct in join.on if isinstance(conjunct.predicate.unnest(), exp.EQ)]
            pairs = [pair for pair in map(equated, strict) if pair is not None]
            found = self._never_null[id(join)] = frozenset(attribute for pair in pairs for attribute in pair)
        return found

    def classes(self, known: Known) -> EquivalenceClasses:
        """The classes that some equalities make."""
        found = self._classes.get(known)
        if found is None:
            found = self._classes[known] = EquivalenceClasses.of(known)
        return found

    def owners(self, relation: Relation) -> frozenset[int]:
        """The relations whose attributes the rows of a relation have."""
        found = self._owners.get(id(relation))
        if found is None:
            found = self._owners[id(relation)] = owners(relation)
        return found

    def is_correlated(self, subquery: Relation, around: Relation) -> bool:
        """Whether a subquery refers to the outer rows."""
        found = self._correlated.get(id(subquery))
        if found is None:
            found = self._correlated[id(subquery)] = is_correlated(subquery, self.owners(around))
        return found


def _equal(ours: Attribute, theirs: Attribute) -> bool:
    return ours != theirs and compares_alike(ours, theirs)
