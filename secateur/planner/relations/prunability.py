"""Prunability: which restrictions reach which scan.

One rule for each relation. All are cases of one law: a restriction passes to an input when every row of the input influences, by being there or by being left
out, only rows of the relation that have the row's own value in each column which the restriction names. What does not pass goes on as a note, so that EXPLAIN
can say why a scan is not pruned.

Source: "RelNode Prunability Rules" of the Hazelcast SQL seed, where a join is prunable only if both its sides are, and as a whole; here each scan has its own
restrictions, and a join passes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

from secateur.planner.relations.attribute import Attribute, is_exact
from secateur.planner.relations.equality import Classes
from secateur.planner.relations.facts import Facts
from secateur.planner.relations.nodes import (
    Aggregate,
    Apply,
    Derived,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Limit,
    Nearest,
    Opaque,
    Project,
    Relation,
    Scan,
    SetOperation,
    Sort,
    Unknown,
    Values,
    Window,
    owners,
)
from secateur.planner.relations.null_rejecting import rejects_nulls
from secateur.planner.relations.restriction import Restriction, distinct

__all__ = ["restrictions_of_scans"]

Restrictions: TypeAlias = Sequence[Restriction]
_Passed: TypeAlias = Iterator[tuple[Relation, Restrictions]]


def restrictions_of_scans(root: Relation) -> Iterator[tuple[Scan, tuple[Restriction, ...]]]:
    """What restricts each scan of a tree, from above and from beside."""
    facts = Facts(root)
    pending: list[tuple[Relation, Restrictions]] = [(root, ())]
    while pending:
        relation, restrictions = pending.pop()
        if isinstance(relation, Scan):
            yield relation, distinct(restrictions)
        else:
            pending.extend((input, distinct(passed)) for input, passed in _pass(relation, restrictions, facts))


def _pass(relation: Relation, restrictions: Restrictions, facts: Facts) -> _Passed:
    match relation:
        case Scan() | Values() | Unknown():
            return
        case Project():
            yield _project(relation, restrictions)
        case Filter(input, conjuncts):
            # A row that fails a conjunct is not there. What is nearer to the rows comes first, as it is evaluated first.
            yield input, [*conjuncts, *restrictions]
        case Sort(input):
            # The order of rows is no value of a row.
            yield input, restrictions
        case Derived(input):
            yield input, restrictions
        case Limit(input, word):
            # Without a row another one takes its place.
            yield input, _blocked(restrictions, input, f"{word} stands below the filter {{predicate}}")
        case Aggregate(input, keys):
            # A row influences its group alone, which has the row's values in the grouping columns.
            passed = _only(restrictions, input, keys, "{predicate} is not about the columns that GROUP BY names, but about {name}")
            # HAVING may call aggregates, which mean nothing below.
            yield input, [replace(restriction, carried=True) for restriction in passed]
        case Distinct(input, keys):
            # Equal rows have equal values. With ON a row competes with those of equal keys.
            reason = "DISTINCT ON below the filter {predicate} does not name {name}"
            yield input, restrictions if keys is None else _only(restrictions, input, keys, reason)
        case Window(input, partition):
            # A row is seen by the rows of its own partition, in every window.
            yield input, _only(restrictions, input, partition, "a window below the filter {predicate} is not partitioned by {name}")
        case Nearest(input, keys):
            # A row competes with those of equal keys.
            yield input, _only(restrictions, input, keys, "an ASOF JOIN below the filter {predicate} does not compare {name}")
        case SetOperation():
            yield from _set_operation(relation, restrictions)
        case Join():
            yield from _join(relation, restrictions, facts)
        case Apply(input, subquery):
            # The subquery adds a value to each row of the input. Nothing is known about its own rows until a rewrite makes it a join.
            yield input, restrictions
            yield subquery, ()
        case Opaque(input, reason):
            yield input, [restriction.block(reason) for restriction in restrictions]
        case _:
            assert_never(relation)


def _project(relation: Project, restrictions: Restrictions) -> tuple[Relation, Restrictions]:
    """A row makes one row with the same values. A computed column is a free variable below."""
    sources = dict(zip(relation.attributes, relation.sources, strict=True))
    return relation.input, [_through(restriction, sources) for restriction in restrictions]


def _through(restriction: Restriction, sources: Mapping[Attribute, Attribute | None]) -> Restriction:
    return restriction.rebound(lambda attribute: sources.get(attribute, attribute))


def _blocked(restrictions: Restrictions, input: Relation, reason: str) -> Restrictions:
    """Those about the input become notes. Those about rows around a correlated subquery pass: where they fail, the whole subquery does not matter."""
    own = owners(input)
    return [restriction.block(reason) if restriction.touches(own) or not restriction.binding else restriction for restriction in restrictions]


def _only(restrictions: Restrictions, input: Relation, keys: frozenset[Attribute], reason: str) -> Restrictions:
    """The restrictions with free variables for the attributes of the input that do not pass, and notes of what is lost."""
    own = owners(input)
    passing = {attribute for attribute in keys if is_exact(attribute)}
    passed: list[Restriction] = []
    for restriction in restrictions:
        lost = [attribute for attribute in restriction.attributes if attribute.owner in own and attribute not in passing]
        kept = restriction.rebound(lambda attribute: None if attribute.owner in own and attribute not in passing else attribute)
        if lost:
            passed.append(restriction.block(reason.replace("{name}", lost[0].name)))
        if kept.attributes:
            passed.append(kept)
    return passed


def _set_operation(relation: SetOperation, restrictions: Restrictions) -> _Passed:
    """A row influences rows equal to it.

    UNION, with and without ALL, passes to each input. INTERSECT and EXCEPT pass to both sides: a row of the right side of EXCEPT removes only rows that are
    equal to it. A column that is cast, because another input has another type, does not pass.
    """
    for input, sources in zip(relation.inputs, relation.sources or [()] * len(relation.inputs), strict=True):
        given: dict[Attribute, Attribute | None] = dict(zip(relation.attributes, sources, strict=True))
        cast = {attribute for attribute in relation.attributes if attribute.type is None}
        widened = {attribute for attribute, source in given.items() if source is not None and source.type != attribute.type}
        passed = []
        for restriction in restrictions:
            inside = _through(restriction, given)
            lost = [attribute for attribute in restriction.attributes if attribute in cast]
            if lost:
                reason = f"{{predicate}} does not pass the {relation.kind.value}: {lost[0].name} may have another type in another input"
                passed.append(inside.block(reason))
            else:
                passed.append(_converted(inside, any(attribute in widened for attribute in restriction.attributes)))
        yield input, passed


def _join(relation: Join, restrictions: Restrictions, facts: Facts) -> _Passed:
    """The rules of joins: first the kind that the join comes to, then what each side is told."""
    held = [restriction for restriction in restrictions if restriction.blocked is None]
    noted = [restriction for restriction in restrictions if restriction.blocked is not None]
    left, right = owners(relation.left), owners(relation.right)
    merged = {attribute: (ours, theirs) for attribute, ours, theirs in relation.merged}
    match _kind(relation, held, left, right):
        case JoinKind.INNER:
            held = [_unmerged(restriction, merged, 0) for restriction in held]
            yield relation.left, [*noted, *_side(left, right, [*held, *relation.on], facts.of(relation.left), facts.of(relation.right))]
            yield relation.right, [*noted, *_lateral(relation, [*held, *relation.on], facts)]
        case JoinKind.SEMI:
            # As INNER: a row of the left that finds no partner is not there, and one of the right matters to its partners alone. Nobody above names it.
            yield relation.left, [*noted, *_side(left, right, [*held, *relation.on], facts.of(relation.left), facts.of(relation.right))]
            yield relation.right, _lateral(relation, [*held, *relation.on], facts)
        case JoinKind.ANTI:
            yield relation.left, restrictions
            yield relation.right, _anti(relation, [*held, *facts.of(relation.left)], right, facts)
        case JoinKind.LEFT:
            yield relation.left, _preserved(restrictions, merged, 0)
            yield (
                relation.right,
                [*_notes(relation, restrictions, right), *_producing(relation, held, left, right, facts.of(relation.left), facts.of(relation.right))],
            )
        case JoinKind.RIGHT:
            yield relation.right, _preserved(restrictions, merged, 1)
            yield (
                relation.left,
                [*_notes(relation, restrictions, left), *_producing(relation, held, right, left, facts.of(relation.right), facts.of(relation.left))],
            )
        case JoinKind.FULL:
            # What USING merges has the value of whichever side there is: a row influences rows of its own value, matched or not.
            apart = [_outside(_outside(restriction, left), right) for restriction in held]
            yield relation.left, [*_notes(relation, restrictions, left), *(_unmerged(restriction, merged, 0) for restriction in apart)]
            yield relation.right, [*_notes(relation, restrictions, right), *(_unmerged(restriction, merged, 1) for restriction in apart)]


def _kind(relation: Join, held: Restrictions, left: frozenset[int], right: frozenset[int]) -> JoinKind:
    """What an outer join comes to when the rows that it makes up with NULLs are refused above: LEFT is then INNER, FULL is LEFT, RIGHT or INNER."""
    kind = relation.kind
    refuses_left = any(rejects_nulls(restriction, _owned(left)) for restriction in held)
    refuses_right = any(rejects_nulls(restriction, _owned(right)) for restriction in held)
    match kind:
        case JoinKind.LEFT if refuses_right:
            return JoinKind.INNER
        case JoinKind.RIGHT if refuses_left:
            return JoinKind.INNER
        case JoinKind.FULL if refuses_left and refuses_right:
            return JoinKind.INNER
        case JoinKind.FULL if refuses_left:
            return JoinKind.LEFT
        case JoinKind.FULL if refuses_right:
            return JoinKind.RIGHT
        case _:
            return kind


def _owned(side: frozenset[int]) -> Callable[[Attribute], bool]:
    return lambda attribute: attribute.owner in side


def _side(side: frozenset[int], other: frozenset[int], held: Restrictions, own: Restrictions, others: Restrictions) -> Restrictions:
    """What one side of an inner join is told: all that names it, and what names attributes that are equal to its own."""
    classes = Classes([*held, *own, *others])
    passed = [restriction for restriction in held if restriction.touches(side) or not restriction.touches(other)]
    passed += [fact for fact in others if fact.touches(side)]
    carried = [there for restriction in (*held, *others) if (there := classes.carry(restriction, side)) is not None]
    return [*passed, *carried, *classes.implied(side, [*held, *own])]


def _lateral(relation: Join, held: Restrictions, facts: Facts) -> Restrictions:
    """What the right side is told. It may refer to the left side (LATERAL), whose values are constants inside of it: what holds for them goes along."""
    left = owners(relation.left)
    outer = facts.of(relation.left)
    told = _side(owners(relation.right), left, held, facts.of(relation.right), outer)
    return [*told, *(restriction for restriction in (*held, *outer) if restriction.touches(left))]


def _preserved(restrictions: Restrictions, merged: dict[Attribute, tuple[Attribute, Attribute]], side: int) -> Restrictions:
    """The preserved side of an outer join: each of its rows is in all the rows that it makes. The condition of the join refuses none of them."""
    return [_unmerged(restriction, merged, side) for restriction in restrictions]


def _producing(
    relation: Join, held: Restrictions, preserved: frozenset[int], side: frozenset[int], outer_facts: Restrictions, own: Restrictions
) -> Restrictions:
    """The side of an outer join that is filled with NULLs: a row of it matters where it meets the condition, to rows of the other side that are equal to it.

    What is said above about the preserved side so goes over to this one through the equalities of ON, never back.
    """
    classes = Classes([*relation.on, *own])
    merged = {attribute: (ours, theirs) for attribute, ours, theirs in relation.merged}
    kept = 0 if preserved == owners(relation.left) else 1
    above = [_outside(_unmerged(restriction, merged, kept), side) for restriction in (*held, *outer_facts)]
    carried = [there for restriction in (*above, *relation.on) if (there := classes.carry(restriction, side)) is not None]
    around = [restriction for restriction in above if restriction.attributes]
    return [*relation.on, *carried, *around, *classes.implied(side, [*relation.on, *own])]


def _anti(relation: Join, outer: Restrictions, right: frozenset[int], facts: Facts) -> Restrictions:
    """The right side of an anti join: a row of it removes the rows of the left that are equal to it, and matters to no others."""
    classes = Classes([*relation.on, *facts.of(relation.right)])
    carried = [there for restriction in (*outer, *relation.on) if (there := classes.carry(restriction, right)) is not None]
    return [*relation.on, *carried, *(restriction for restriction in outer if restriction.attributes)]


def _unmerged(restriction: Restriction, merged: dict[Attribute, tuple[Attribute, Attribute]], side: int) -> Restriction:
    if not merged:
        return restriction
    widened = any(merged[attribute][side].type != attribute.type for attribute in restriction.attributes if attribute in merged)
    return _converted(restriction.rebound(lambda attribute: merged[attribute][side] if attribute in merged else attribute), widened)


def _converted(restriction: Restriction, is_widened: bool) -> Restriction:
    """A restriction about a column that has a wider type above. It names the same values, but what functions say of them may differ, such as typeof()."""
    return replace(restriction, carried=True) if is_widened else restriction


def _outside(restriction: Restriction, side: frozenset[int]) -> Restriction:
    """With free variables for the side: what is said above of the rows made up with NULLs is not said of its rows."""
    return restriction.rebound(lambda attribute: None if attribute.owner in side else attribute)


def _notes(relation: Join, restrictions: Restrictions, side: frozenset[int]) -> Restrictions:
    reason = f"{{predicate}} may hold for the rows that the {relation.kind.value} JOIN makes up with NULLs"
    return [restriction.block(reason) for restriction in restrictions if restriction.touches(side)]
