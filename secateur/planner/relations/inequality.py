"""Bounds that follow from inequalities between attributes: ``a > b AND b >= 10`` implies ``a >= 10``.

Source: transitive inference over inequalities, as in Ullman, "Principles of Database and Knowledge-Base Systems"
    (1989), chapter 14, without equating attributes that bound one another.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from secateur.partitioning.types.column_type import TypeKind
from secateur.planner.relations.attribute import Attribute, compares_alike, occurrence
from secateur.planner.relations.bound_predicate import BoundPredicate
from secateur.planner.relations.equality import EquivalenceClasses
from secateur.planner.text.trees import copied

_BOUNDS_MAX: Final = 64
"""With more bounds than this, further ones are not derived: every scan would read all of them."""

_FORMS: Final[dict[tuple[bool, bool], type[exp.Binary]]] = {
    (True, True): exp.GT,
    (True, False): exp.GTE,
    (False, True): exp.LT,
    (False, False): exp.LTE,
}
"""By whether it is a lower bound, and whether it is strict."""


@dataclass(frozen=True, slots=True)
class _Order:
    """``greater > lesser``, or ``>=`` where it is not strict."""

    greater: Attribute
    lesser: Attribute
    is_strict: bool


@dataclass(frozen=True, slots=True)
class _Bound:
    """A comparison of an attribute with an expression that has no columns."""

    attribute: Attribute
    value: exp.Expr
    is_lower: bool
    is_strict: bool
    is_derived: bool = False

    def of(self, attribute: Attribute, *, is_strict: bool) -> _Bound:
        """The bound that an attribute beyond this one gets from it.

        The comparison may round: a BIGINT is compared with a DOUBLE as a DOUBLE. Order survives that, but what was
        less may have become equal. So the new bound is strict only if this one is, or where nothing is rounded.
        """
        strict = self.is_strict or (is_strict and _is_exact(self.value, attribute))
        return _Bound(attribute, self.value, self.is_lower, strict, is_derived=True)

    def predicate(self) -> BoundPredicate:
        column = exp.column(exp.to_identifier(self.attribute.name, quoted=True))
        form = _FORMS[self.is_lower, self.is_strict]
        return BoundPredicate(
            form(this=column, expression=copied(self.value)), {occurrence(column): self.attribute}, carried=True
        )


def implied_bounds(
    conjuncts: Sequence[BoundPredicate], side: frozenset[int], classes: EquivalenceClasses
) -> list[BoundPredicate]:
    """The bounds on attributes of a side that follow from inequalities with attributes from elsewhere.

    Args:
        conjuncts: All hold for the rows that matter.
        side: The relations whose attributes are asked for.
        classes: Which attributes are equal.

    Cost: linear in the conjuncts without inequalities between attributes; with them, times the bounds.
    """
    held = [conjunct for conjunct in conjuncts if conjunct.blocked is None]
    orders = [order for conjunct in held for order in _orders(conjunct)]
    if not orders:
        return []
    found = {_key(bound): bound for conjunct in held for bound in _bounds(conjunct)}
    pending = list(found.values())
    most = len(found) + _BOUNDS_MAX
    while pending and len(found) < most:
        bound = pending.pop()
        equal = {bound.attribute, *classes.equal_to(bound.attribute)}
        for order in orders:
            known, other = (order.lesser, order.greater) if bound.is_lower else (order.greater, order.lesser)
            if known in equal and compares_alike(known, bound.attribute):
                derived = bound.of(other, is_strict=order.is_strict)
                if _key(derived) not in found:
                    found[_key(derived)] = derived
                    pending.append(derived)
    return [bound.predicate() for bound in found.values() if bound.is_derived and bound.attribute.owner in side]


def _key(bound: _Bound) -> Hashable:
    """Equal for bounds that say the same, so that what has been derived for one join is not derived for the next."""
    return bound.attribute, bound.value, bound.is_lower, bound.is_strict


def _comparisons(conjunct: BoundPredicate) -> Iterator[tuple[exp.Expr, exp.Expr, bool]]:
    """The comparisons that a conjunct makes: the greater side, the lesser side, and whether it is strict."""
    predicate = conjunct.predicate.unnest()
    match predicate:
        case exp.GT() | exp.GTE():
            yield predicate.this.unnest(), predicate.expression.unnest(), isinstance(predicate, exp.GT)
        case exp.LT() | exp.LTE():
            yield predicate.expression.unnest(), predicate.this.unnest(), isinstance(predicate, exp.LT)
        case exp.Between() if not predicate.args.get("symmetric"):
            between = predicate.this.unnest()
            yield between, predicate.args["low"].unnest(), False
            yield predicate.args["high"].unnest(), between, False
        case exp.EQ():
            left, right = predicate.this.unnest(), predicate.expression.unnest()
            yield left, right, False
            yield right, left, False
        case _:
            pass


def _orders(conjunct: BoundPredicate) -> Iterator[_Order]:
    if isinstance(conjunct.predicate.unnest(), exp.EQ):
        return  # the classes have it
    for greater, lesser, is_strict in _comparisons(conjunct):
        above, below = _attribute(greater, conjunct), _attribute(lesser, conjunct)
        if above is not None and below is not None and above != below and compares_alike(above, below):
            yield _Order(above, below, is_strict)


def _bounds(conjunct: BoundPredicate) -> Iterator[_Bound]:
    for greater, lesser, is_strict in _comparisons(conjunct):
        above, below = _attribute(greater, conjunct), _attribute(lesser, conjunct)
        if above is not None and _is_constant(lesser):
            yield _Bound(above, lesser, is_lower=True, is_strict=is_strict)
        if below is not None and _is_constant(greater):
            yield _Bound(below, greater, is_lower=False, is_strict=is_strict)


def _attribute(node: exp.Expr, conjunct: BoundPredicate) -> Attribute | None:
    return conjunct.binding.get(occurrence(node)) if isinstance(node, exp.Column) else None


def _is_constant(node: exp.Expr) -> bool:
    # A collation orders only the comparison that names it: nothing follows for the order of two columns.
    return node.find(exp.Column, exp.Query, exp.Any, exp.All, exp.Collate) is None


def _is_exact(value: exp.Expr, attribute: Attribute) -> bool:
    """Whether a value is compared with an attribute in the attribute's own type."""
    kind = attribute.type
    if kind is None or not isinstance(value, exp.Literal):
        return False
    return kind.kind is TypeKind.VARCHAR if value.is_string else kind.is_integer and str(value.this).isdecimal()
