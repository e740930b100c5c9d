"""Prunability: which predicates reach which scan.

There is one rule for each relational operator. All follow from one law: a predicate passes to an input when every row
of the input, whether it is present or left out, influences only rows of the relation that have the same value in each
column of the predicate. A predicate that does not pass is kept as a reason, so that EXPLAIN can report why a scan is
not pruned.

Source: "RelNode Prunability Rules" of the Hazelcast SQL seed, where a join is prunable only if both its sides are, and
as a whole; here each scan has its own predicates, and a join passes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

from secateur.engine.kernels.duckdb.cancellation import check_cancelled
from secateur.planner.relations.attribute import Attribute, is_exact
from secateur.planner.relations.bound_predicate import BoundPredicate, distinct
from secateur.planner.relations.equality import EquivalenceClasses
from secateur.planner.relations.implied_predicates import ImpliedPredicates
from secateur.planner.relations.inequality import implied_bounds
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
    owners,
)
from secateur.planner.relations.null_rejecting import rejects_nulls

BoundPredicates: TypeAlias = Sequence[BoundPredicate]
_Passed: TypeAlias = Iterator[tuple[Relation, BoundPredicates]]


def predicates_of_scans(root: Relation) -> Iterator[tuple[Scan, tuple[BoundPredicate, ...]]]:
    """Yield each scan of a tree with the predicates that restrict it, from above and across joins."""
    for _, relation, predicates in predicates_of_relations(root):
        if isinstance(relation, Scan):
            yield relation, predicates


def predicates_of_relations(root: Relation) -> Iterator[tuple[Relation, Relation, tuple[BoundPredicate, ...]]]:
    """Yield each relation of a tree, what it is under the predicates that restrict it, and these predicates.

    An outer join is an inner join, or another outer join, where a predicate rejects the rows that it fills with NULLs.
    """
    facts = ImpliedPredicates(root)
    pending: list[tuple[Relation, BoundPredicates]] = [(root, ())]
    while pending:
        check_cancelled()  # of a hundred joins on one key, this takes a minute
        relation, passed = pending.pop()
        predicates = distinct(passed)
        reduced = _reduced(relation, predicates) if isinstance(relation, Join) else relation
        yield relation, reduced, predicates
        pending.extend(_pass(reduced, predicates, facts))


def _pass(relation: Relation, predicates: BoundPredicates, facts: ImpliedPredicates) -> _Passed:
    match relation:
        case Scan() | Values() | Unknown():
            return
        case Project():
            yield _project(relation, predicates)
        case Filter(input, own):
            # A row that fails a conjunct is removed. Predicates nearer to the rows come first, as they are evaluated
            # first.
            yield input, [*own, *predicates]
        case Sort(input):
            # Sorting changes no value of a row.
            yield input, predicates
        case Derived(input):
            yield input, predicates
        case Limit(input, word):
            # If a row is left out, another one takes its place.
            reason = f"the filter {{predicate}} cannot be pushed below {word}: filter inside it if you mean its input"
            yield input, _blocked(predicates, input, reason)
        case Aggregate(input, keys):
            # A row influences only its group, which has the row's values in the grouping columns.
            passed = _only(
                predicates,
                input,
                keys,
                "the filter {predicate} cannot be pushed below GROUP BY, which does not name {name}: group by {name},"
                " or filter inside the subquery",
            )
            # HAVING may call aggregates, which have no meaning below.
            yield input, [replace(predicate, carried=True) for predicate in passed]
        case Distinct(input, keys):
            # Equal rows have equal values. With ON a row competes with those of equal keys.
            reason = (
                "the filter {predicate} cannot be pushed below DISTINCT ON, which does not name {name}: add {name} to"
                " it, or filter inside the subquery"
            )
            yield input, predicates if keys is None else _only(predicates, input, keys, reason)
        case Window(input, partition):
            # A row influences only the rows of its own window partition, in every window.
            yield (
                input,
                _only(
                    predicates,
                    input,
                    partition,
                    "the filter {predicate} cannot be pushed below a window that is not partitioned by {name}:"
                    " partition it by {name}, or filter inside the subquery",
                ),
            )
        case AsOfRight(input, keys):
            # A row competes with those of equal keys.
            yield (
                input,
                _only(
                    predicates,
                    input,
                    keys,
                    "the filter {predicate} cannot be pushed below an ASOF JOIN that does not compare {name}: join on"
                    " {name}, or filter inside the subquery",
                ),
            )
        case SetOperation():
            # Rows of EXCEPT are rows of its left side, rows of INTERSECT are rows of both.
            implied = () if relation.kind is SetKind.UNION else facts.of(relation)
            yield from _set_operation(relation, [*predicates, *implied])
        case Join():
            yield from _join(relation, predicates, facts)
        case Apply(input, subquery):
            # The subquery adds a value to each row of the input. No predicate reaches its own rows until a rewrite
            # makes it a join.
            yield input, predicates
            yield subquery, ()
        case Opaque(input, reason):
            yield input, [predicate.block(reason) for predicate in predicates]
        case _:
            assert_never(relation)


def _project(relation: Project, predicates: BoundPredicates) -> tuple[Relation, BoundPredicates]:
    """A row makes one row with the same values. A computed column is a free variable below."""
    sources = dict(zip(relation.attributes, relation.sources, strict=True))
    return relation.input, [_through(predicate, sources) for predicate in predicates]


def _through(predicate: BoundPredicate, sources: Mapping[Attribute, Attribute | None]) -> BoundPredicate:
    return predicate.rebound(lambda attribute: sources.get(attribute, attribute))


def _blocked(predicates: BoundPredicates, input: Relation, reason: str) -> BoundPredicates:
    """Turn predicates about the input into notes.

    Predicates about rows around a correlated subquery pass: where they fail, the whole subquery does not matter.
    """
    own = owners(input)
    return [
        (predicate.block(reason) if predicate.touches(own) or not predicate.binding else predicate)
        for predicate in predicates
    ]


def _only(predicates: BoundPredicates, input: Relation, keys: frozenset[Attribute], reason: str) -> BoundPredicates:
    """Make attributes of the input that do not pass free variables, and keep reasons for the lost predicates."""
    own = owners(input)
    passing = {attribute for attribute in keys if is_exact(attribute)}
    passed: list[BoundPredicate] = []
    for predicate in predicates:
        lost = [attribute for attribute in predicate.attributes if attribute.owner in own and attribute not in passing]
        kept = predicate.rebound(
            lambda attribute: None if attribute.owner in own and attribute not in passing else attribute
        )
        if lost:
            passed.append(predicate.block(reason.replace("{name}", lost[0].name)))
        if kept.attributes:
            passed.append(kept)
    return passed


def _set_operation(relation: SetOperation, predicates: BoundPredicates) -> _Passed:
    """A row influences rows equal to it.

    UNION, with and without ALL, passes to each input. INTERSECT and EXCEPT pass to both sides: a row of the right side
    of EXCEPT removes only rows that are equal to it. A column that is cast, because another input has another type,
    does not pass.
    """
    for input, sources in zip(relation.inputs, relation.sources or [()] * len(relation.inputs), strict=True):
        given: dict[Attribute, Attribute | None] = dict(zip(relation.attributes, sources, strict=True))
        cast = {attribute for attribute in relation.attributes if attribute.type is None}
        widened = {
            attribute for attribute, source in given.items() if source is not None and source.type != attribute.type
        }
        passed = []
        for predicate in predicates:
            inside = _through(predicate, given)
            lost = [attribute for attribute in predicate.attributes if attribute in cast]
            if lost:
                reason = (
                    f"the filter {{predicate}} cannot be pushed below {relation.kind.value}, because {lost[0].name} may"
                    " have another type in another input: CAST it to one type in every input"
                )
                passed.append(inside.block(reason))
            else:
                passed.append(_converted(inside, any(attribute in widened for attribute in predicate.attributes)))
        yield input, passed


def _join(relation: Join, predicates: BoundPredicates, facts: ImpliedPredicates) -> _Passed:
    """Apply the rules of joins to one whose kind has been reduced: pass predicates to each side."""
    held = [predicate for predicate in predicates if predicate.blocked is None]
    noted = [predicate for predicate in predicates if predicate.blocked is not None]
    left, right = owners(relation.left), owners(relation.right)
    merged = {attribute: (ours, theirs) for attribute, ours, theirs in relation.merged}
    match relation.kind:
        case JoinType.INNER:
            held = [_unmerged(predicate, merged, 0) for predicate in held]
            yield (
                relation.left,
                [*noted, *_side(left, right, [*held, *relation.on], facts.of(relation.left), facts.of(relation.right))],
            )
            yield relation.right, [*noted, *_lateral(relation, [*held, *relation.on], facts)]
        case JoinType.SEMI:
            # As INNER: a row of the left without a match is removed, and one of the right matters only to its
            # matches. No predicate above names it.
            yield (
                relation.left,
                [*noted, *_side(left, right, [*held, *relation.on], facts.of(relation.left), facts.of(relation.right))],
            )
            yield relation.right, _lateral(relation, [*held, *relation.on], facts)
        case JoinType.ANTI:
            yield relation.left, predicates
            yield relation.right, _anti(relation, [*held, *facts.of(relation.left)], right, facts)
        case JoinType.LEFT:
            yield relation.left, _preserved(predicates, merged, 0)
            yield (
                relation.right,
                [
                    *_notes(relation, predicates, right),
                    *_producing(relation, held, left, right, facts.of(relation.left), facts.of(relation.right)),
                ],
            )
        case JoinType.RIGHT:
            yield relation.right, _preserved(predicates, merged, 1)
            yield (
                relation.left,
                [
                    *_notes(relation, predicates, left),
                    *_producing(relation, held, right, left, facts.of(relation.right), facts.of(relation.left)),
                ],
            )
        case JoinType.FULL:
            # A merged column has the value of the side that exists: a row influences only rows of its own value,
            # matched or not.
            apart = [_outside(_outside(predicate, left), right) for predicate in held]
            yield (
                relation.left,
                [
                    *_notes(relation, predicates, left),
                    *(_unmerged(predicate, merged, 0) for predicate in apart),
                ],
            )
            yield (
                relation.right,
                [
                    *_notes(relation, predicates, right),
                    *(_unmerged(predicate, merged, 1) for predicate in apart),
                ],
            )


def _reduced(relation: Join, predicates: BoundPredicates) -> Join:
    """Reduce an outer join if a predicate above rejects the rows that it fills with NULLs.

    LEFT then becomes INNER; FULL becomes LEFT, RIGHT or INNER.
    """
    if relation.kind not in (JoinType.LEFT, JoinType.RIGHT, JoinType.FULL):
        return relation
    held = [predicate for predicate in predicates if predicate.blocked is None]
    left, right = owners(relation.left), owners(relation.right)
    refuses_left = any(rejects_nulls(predicate, _owned(left)) for predicate in held)
    refuses_right = any(rejects_nulls(predicate, _owned(right)) for predicate in held)
    match relation.kind:
        case JoinType.LEFT if refuses_right:
            kind = JoinType.INNER
        case JoinType.RIGHT if refuses_left:
            kind = JoinType.INNER
        case JoinType.FULL if refuses_left and refuses_right:
            kind = JoinType.INNER
        case JoinType.FULL if refuses_left:
            kind = JoinType.LEFT
        case JoinType.FULL if refuses_right:
            kind = JoinType.RIGHT
        case _:
            return relation
    return replace(relation, kind=kind)


def _owned(side: frozenset[int]) -> Callable[[Attribute], bool]:
    return lambda attribute: attribute.owner in side


def _side(
    side: frozenset[int], other: frozenset[int], held: BoundPredicates, own: BoundPredicates, others: BoundPredicates
) -> BoundPredicates:
    """Return the predicates of one side of an inner join: those that name it, and those that name equal attributes."""
    classes = EquivalenceClasses([*held, *own, *others])
    passed = [predicate for predicate in held if predicate.touches(side) or not predicate.touches(other)]
    passed += [fact for fact in others if fact.touches(side)]
    carried = [there for predicate in (*held, *others) if (there := classes.carry(predicate, side)) is not None]
    bounds = implied_bounds([*held, *own, *others], side, classes)
    return [*passed, *carried, *bounds, *classes.implied(side, [*held, *own])]


def _lateral(relation: Join, held: BoundPredicates, facts: ImpliedPredicates) -> BoundPredicates:
    """Return the predicates of the right side.

    It may refer to the left side (LATERAL), whose values are constants inside of it: predicates on them are passed too.
    """
    left = owners(relation.left)
    outer = facts.of(relation.left)
    told = _side(owners(relation.right), left, held, facts.of(relation.right), outer)
    return [*told, *(predicate for predicate in (*held, *outer) if predicate.touches(left))]


def _preserved(
    predicates: BoundPredicates, merged: dict[Attribute, tuple[Attribute, Attribute]], side: int
) -> BoundPredicates:
    """The preserved side of an outer join: each of its rows is in all the rows that it makes.

    The condition of the join refuses none of them.
    """
    return [_unmerged(predicate, merged, side) for predicate in predicates]


def _producing(
    relation: Join,
    held: BoundPredicates,
    preserved: frozenset[int],
    side: frozenset[int],
    outer_facts: BoundPredicates,
    own: BoundPredicates,
) -> BoundPredicates:
    """Return the predicates of the side of an outer join that is filled with NULLs.

    A row of it matters only where it meets the join condition, and only to rows of the other side that are equal to it.

    Predicates on the preserved side therefore pass to this side through the equalities of ON, never back.
    """
    classes = EquivalenceClasses([*relation.on, *own])
    merged = {attribute: (ours, theirs) for attribute, ours, theirs in relation.merged}
    kept = 0 if preserved == owners(relation.left) else 1
    above = [_outside(_unmerged(predicate, merged, kept), side) for predicate in (*held, *outer_facts)]
    carried = [there for predicate in (*above, *relation.on) if (there := classes.carry(predicate, side)) is not None]
    around = [predicate for predicate in above if predicate.attributes]
    bounds = implied_bounds([*relation.on, *above, *own], side, classes)
    return [*relation.on, *carried, *around, *bounds, *classes.implied(side, [*relation.on, *own])]


def _anti(relation: Join, outer: BoundPredicates, right: frozenset[int], facts: ImpliedPredicates) -> BoundPredicates:
    """Return the predicates of an anti join's right side, whose rows matter only to rows of the left that are equal."""
    classes = EquivalenceClasses([*relation.on, *facts.of(relation.right)])
    carried = [there for predicate in (*outer, *relation.on) if (there := classes.carry(predicate, right)) is not None]
    bounds = implied_bounds([*relation.on, *outer, *facts.of(relation.right)], right, classes)
    return [*relation.on, *carried, *bounds, *(predicate for predicate in outer if predicate.attributes)]


def _unmerged(
    predicate: BoundPredicate, merged: dict[Attribute, tuple[Attribute, Attribute]], side: int
) -> BoundPredicate:
    if not merged:
        return predicate
    widened = any(
        merged[attribute][side].type != attribute.type for attribute in predicate.attributes if attribute in merged
    )
    return _converted(
        predicate.rebound(lambda attribute: merged[attribute][side] if attribute in merged else attribute),
        widened,
    )


def _converted(predicate: BoundPredicate, is_widened: bool) -> BoundPredicate:
    """Adapt a predicate to a column that has a wider type above.

    It accepts the same values, but functions such as typeof() may return something else for them.
    """
    return replace(predicate, carried=True) if is_widened else predicate


def _outside(predicate: BoundPredicate, side: frozenset[int]) -> BoundPredicate:
    """Make the side's attributes free variables: predicates on rows filled with NULLs do not hold for its own rows."""
    return predicate.rebound(lambda attribute: None if attribute.owner in side else attribute)


def _notes(relation: Join, predicates: BoundPredicates, side: frozenset[int]) -> BoundPredicates:
    reason = (
        f"{{predicate}} can hold for rows that the {relation.kind.value} JOIN fills with NULLs: use an "
        "inner join, or a condition that NULL does not satisfy"
    )
    return [predicate.block(reason) for predicate in predicates if predicate.touches(side)]
