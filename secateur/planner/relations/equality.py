"""Equality classes: attributes that are equal wherever it matters, which carry predicates across joins.

Source: the co-location tree of IEP-24 (Ignite); predicate move-around (Levy, Mumick, Sagiv, VLDB 1994). Unlike in
    IEP-24 the partition *set* of one table is never applied to another: the predicate is carried over, and each scan
    reads it with its own scheme.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from sqlglot import exp

from secateur.planner.relations.attribute import Attribute, compares_alike, occurrence
from secateur.planner.relations.bound_predicate import BoundPredicate, equality, fresh


def equated(conjunct: BoundPredicate) -> tuple[Attribute, Attribute] | None:
    """Return the two attributes of ``a = b`` when they are interchangeable."""
    predicate = conjunct.predicate.unnest()
    if conjunct.blocked is not None or not isinstance(predicate, (exp.EQ, exp.NullSafeEQ)):
        return None
    sides = [predicate.this.unnest(), predicate.expression.unnest()]
    found = [conjunct.binding.get(occurrence(side)) for side in sides if isinstance(side, exp.Column)]
    if len(found) != 2 or found[0] is None or found[1] is None or found[0] == found[1]:
        return None
    return (found[0], found[1]) if compares_alike(found[0], found[1]) else None


class EquivalenceClasses:
    """The classes that some predicates make.

    Args:
        conjuncts: All hold for the rows that matter.
    """

    def __init__(self, conjuncts: Iterable[BoundPredicate]) -> None:
        self._class_of: dict[Attribute, list[Attribute]] = {}
        for conjunct in conjuncts:
            pair = equated(conjunct)
            if pair is not None:
                self._unite(*pair)

    @classmethod
    def of(cls, pairs: Iterable[tuple[Attribute, Attribute]]) -> EquivalenceClasses:
        """The classes that some pairs make, as :func:`equated` gives them."""
        classes = cls(())
        for left, right in pairs:
            classes._unite(left, right)
        return classes

    def _unite(self, left: Attribute, right: Attribute) -> None:
        ours, theirs = self._class_of.get(left, [left]), self._class_of.get(right, [right])
        if ours is not theirs:
            united = [*ours, *theirs]
            self._class_of.update(dict.fromkeys(united, united))

    def equal_in(self, attribute: Attribute, side: frozenset[int]) -> Attribute | None:
        """An attribute of a side that is equal to one from elsewhere."""
        for other in self._class_of.get(attribute, ()):
            if other.owner in side and compares_alike(attribute, other):
                return other
        return None

    def carry(self, conjunct: BoundPredicate, side: frozenset[int]) -> BoundPredicate | None:
        """A predicate from elsewhere as one of a side; None when no attribute of it has an equal there."""
        if conjunct.blocked is not None:
            return None
        meaning = {
            attribute: attribute if attribute.owner in side else self.equal_in(attribute, side)
            for attribute in conjunct.attributes
        }
        if all(there is None or there == attribute for attribute, there in meaning.items()):
            return None
        if equated(conjunct) is not None and len({there or attribute for attribute, there in meaning.items()}) < 2:
            return None
        carried = conjunct.rebound(lambda attribute: meaning[attribute] or attribute)
        return BoundPredicate(carried.predicate, carried.binding, structural=carried.structural, carried=True)

    def implied(self, side: frozenset[int], known: Sequence[BoundPredicate]) -> list[BoundPredicate]:
        """Equalities of a side that follow through attributes from elsewhere."""
        own = EquivalenceClasses(
            conjunct for conjunct in known if all(attribute.owner in side for attribute in conjunct.attributes)
        )
        found = []
        for members in {id(members): members for members in self._class_of.values()}.values():
            inside = [attribute for attribute in members if attribute.owner in side]
            for left, right in pairwise(inside):
                if own.equal_to(left) is not own.equal_to(right) or not own.equal_to(left):
                    found.append(equality(left, right, structural=True, null_safe=True))
        return found

    def equal_to(self, attribute: Attribute) -> Sequence[Attribute]:
        """The class of an attribute; empty when it has none."""
        return self._class_of.get(attribute, ())

    def constants(self, conjuncts: Sequence[BoundPredicate]) -> list[BoundPredicate]:
        """Copy each predicate on one attribute of a class to the others: ``a = b AND b = 5`` implies ``a = 5``."""
        return [
            _said_of(other, conjunct)
            for conjunct in conjuncts
            if conjunct.blocked is None and len(conjunct.attributes) == 1
            for attribute in conjunct.attributes
            for other in self._class_of.get(attribute, ())
            if other != attribute and compares_alike(attribute, other)
        ]


def _said_of(other: Attribute, conjunct: BoundPredicate) -> BoundPredicate:
    copy = fresh(conjunct).rebound(lambda _: other)
    return BoundPredicate(copy.predicate, copy.binding, structural=copy.structural, carried=True)
