"""Bound predicates: predicates over the attributes of a relation.

A row of the relation for which a predicate is not TRUE cannot influence the answer. A column of the predicate that the
relation does not trace is a free variable: the predicate must then hold for some value of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from sqlglot import exp

from secateur.planner.relations.attribute import Attribute, columns_in, occurrence, renumber
from secateur.planner.text.trees import copied


@dataclass(frozen=True, slots=True, eq=False)
class BoundPredicate:
    """A predicate and the attributes that its columns refer to.

    Attributes:
        predicate: A conjunct of the statement, or one made from conjuncts.
        binding: The attribute of each column node, by the number of the node; a missing node is a free variable.
        structural: Whether it follows from the form of the statement (USING) instead of from a text that both parsers
            have to read alike.
        carried: Whether it is no longer the user's own predicate about the rows: an equality has exchanged
            attributes of it, or it is about groups.
        blocked: Why it does not hold here, in the user's terms, with ``{predicate}`` for its text; None where it holds.
            A blocked predicate is kept so that EXPLAIN can report why a scan is not pruned.
    """

    predicate: exp.Expr
    binding: Mapping[int, Attribute]
    structural: bool = False
    carried: bool = False
    blocked: str | None = None
    attributes: frozenset[Attribute] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", frozenset(self.binding.values()))

    @property
    def key(self) -> tuple[int, frozenset[tuple[int, Attribute]], bool]:
        """Equal for predicates that say the same of the same attributes."""
        return id(self.predicate), frozenset(self.binding.items()), self.blocked is not None

    def touches(self, owners: frozenset[int]) -> bool:
        """Whether it refers to an attribute of one of the relations."""
        return any(attribute.owner in owners for attribute in self.attributes)

    def rebound(self, meaning: Callable[[Attribute], Attribute | None]) -> BoundPredicate:
        """The same about other attributes; those without a meaning become free variables."""
        meant = {number: meaning(attribute) for number, attribute in self.binding.items()}
        return replace(
            self, binding={number: attribute for number, attribute in meant.items() if attribute is not None}
        )

    def block(self, reason: str) -> BoundPredicate:
        """The same as a note; the first reason is the one nearest to the predicate, and stays."""
        return self if self.blocked is not None else replace(self, blocked=reason)


def bind(predicate: exp.Expr, resolve: Callable[[exp.Column], Attribute | None]) -> BoundPredicate:
    """The predicate that a conjunct is."""
    found = {occurrence(column): resolve(column) for column in columns_in(predicate)}
    return BoundPredicate(
        predicate, {number: attribute for number, attribute in found.items() if attribute is not None}
    )


def equality(left: Attribute, right: Attribute, *, structural: bool = False, null_safe: bool = False) -> BoundPredicate:
    """``left = right``, for attributes that the statement equates without a text."""
    return comparison(exp.NullSafeEQ if null_safe else exp.EQ, left, right, structural=structural)


def comparison(
    form: type[exp.Binary], left: Attribute, right: Attribute, *, structural: bool = False
) -> BoundPredicate:
    """A comparison of attributes that the statement makes without a text."""
    sides = [exp.column(exp.to_identifier(attribute.name, quoted=True)) for attribute in (left, right)]
    return BoundPredicate(
        form(this=sides[0], expression=sides[1]),
        {occurrence(sides[0]): left, occurrence(sides[1]): right},
        structural=structural,
    )


def distinct(conjuncts: Iterable[BoundPredicate]) -> tuple[BoundPredicate, ...]:
    """Without repetitions, in order."""
    return tuple({conjunct.key: conjunct for conjunct in conjuncts}.values())


def fresh(conjunct: BoundPredicate) -> BoundPredicate:
    """A copy whose columns may mean something else than those of the original."""
    predicate = copied(conjunct.predicate)
    numbers = {
        occurrence(old): renumber(new)
        for old, new in zip(columns_in(conjunct.predicate), columns_in(predicate), strict=True)
    }
    return replace(
        conjunct,
        predicate=predicate,
        binding={numbers[number]: attribute for number, attribute in conjunct.binding.items()},
    )


def any_of(alternatives: Sequence[Sequence[BoundPredicate]]) -> BoundPredicate | None:
    """Return the disjunction of conjunctions of predicates; None when an alternative has no predicate."""
    if not alternatives or not all(alternatives):
        return None
    copies = [[fresh(conjunct) for conjunct in alternative] for alternative in alternatives]
    predicate = _chain(exp.Or, [_chain(exp.And, [copy.predicate for copy in branch]) for branch in copies])
    binding = {number: attribute for branch in copies for copy in branch for number, attribute in copy.binding.items()}
    return BoundPredicate(
        predicate, binding, structural=True, carried=any(copy.carried for branch in copies for copy in branch)
    )


def _chain(connector: type[exp.Connector], parts: Sequence[exp.Expr]) -> exp.Expr:
    wrapped: list[exp.Expr] = [exp.Paren(this=part) for part in parts]
    return reduce(lambda left, right: connector(this=left, expression=right), wrapped)
