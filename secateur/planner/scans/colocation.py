"""Co-location: scans whose matching rows are in partitions of one number, and so on one member.

Scans are co-located when their tables have one affinity group, which means equal partitions with equal owners, and an
equality for each column of the partitioning key, in the order of the key. Replicated tables are co-located with
everything (ANY), and in no group.

Co-location does not prune: equalities carry predicates, not sets of partitions, because the partitions of one table do
not restrict another under cross, theta and outer joins. It means that a join needs no exchange.

Source: the co-location tree of IEP-24 (Ignite).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from secateur.planner.relations.attribute import Attribute
from secateur.planner.relations.bound_predicate import BoundPredicate, equality
from secateur.planner.relations.equality import EquivalenceClasses, equated
from secateur.planner.relations.nodes import (
    Apply,
    Filter,
    Join,
    JoinType,
    Limit,
    Opaque,
    Project,
    Relation,
    Scan,
    SetOperation,
    children,
    owners,
)


def colocated_scans(roots: Sequence[Relation]) -> tuple[tuple[str, ...], ...]:
    """The groups of two or more co-located scans, as names of relations (``s0``, ``s1``, ...), sorted.

    Args:
        roots: The relations of a statement, after rewrites.
    """
    groups: dict[frozenset[str], None] = {}
    pending = list(roots)
    while pending:
        block = list(_block(pending.pop(), pending))
        known: list[BoundPredicate] = []
        for relation in reversed(block):
            known.extend(_equalities(relation, known))
        classes = EquivalenceClasses(known)
        scans = [relation for relation in block if isinstance(relation, Scan) and not relation.scan.table.replicated]
        members: dict[tuple[object, ...], set[str]] = {}
        for scan in scans:
            members.setdefault(_place(scan, classes), set()).add(scan.scan.relation)
        groups.update(dict.fromkeys(frozenset(group) for group in members.values() if len(group) > 1))
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def _block(root: Relation, beyond: list[Relation]) -> Iterator[Relation]:
    """Yield the relations whose rows meet in joins.

    Inputs of a relation that needs all its rows in one place are added to ``beyond``.
    """
    pending = [root]
    while pending:
        relation = pending.pop()
        yield relation
        match relation:
            case Limit() | Opaque() | SetOperation():
                beyond.extend(children(relation))
            case Apply(input, subquery):
                pending.append(input)
                beyond.append(subquery)
            case _:
                pending.extend(children(relation))


def _equalities(relation: Relation, below: Sequence[BoundPredicate]) -> Sequence[BoundPredicate]:
    """The equalities of columns that a relation adds to those of its inputs."""
    match relation:
        case Filter(_, conjuncts):
            return conjuncts
        case Join(kind, left, right, on) if kind not in (JoinType.INNER, JoinType.SEMI):
            if kind is JoinType.RIGHT:
                left, right = right, left
            return _to_producing_side(on, owners(left), owners(right), below)
        case Join(on=on):
            return on
        case Project(_, attributes, sources):
            return [
                equality(shown, source, structural=True)
                for shown, source in zip(attributes, sources, strict=True)
                if source is not None
            ]
        case _:
            return ()


def _to_producing_side(
    on: Sequence[BoundPredicate], preserved: frozenset[int], producing: frozenset[int], below: Sequence[BoundPredicate]
) -> list[BoundPredicate]:
    """The equalities of an outer join by which rows of the producing side meet rows of the preserved side.

    ON refuses no row of the preserved side, so it equates no two columns of that side. Neither must it do so through
    a column of the producing side: each of these, with those equal to it, is equated with one column.
    """
    inside = EquivalenceClasses(
        bound_predicate
        for bound_predicate in below
        if all(attribute.owner in producing for attribute in bound_predicate.attributes)
    )
    found: dict[object, BoundPredicate] = {}
    for bound_predicate in on:
        pair = equated(bound_predicate) or ()
        theirs = [attribute for attribute in pair if attribute.owner in producing]
        if theirs and any(attribute.owner in preserved for attribute in pair):
            found.setdefault(_class(theirs[0], inside), bound_predicate)
    return list(found.values())


def _place(scan: Scan, classes: EquivalenceClasses) -> tuple[object, ...]:
    """Equal for scans that are co-located: the affinity group, and the class of each column of the partitioning key."""
    scheme = scan.scan.table.scheme
    columns = {attribute.name: attribute for attribute in scan.attributes}
    return (
        scheme.affinity_group(),
        *(_class(columns[name], classes) for name in scheme.columns),
        None if scheme.columns else id(scan),
    )


def _class(attribute: Attribute, classes: EquivalenceClasses) -> object:
    equal = classes.equal_to(attribute)
    return id(equal) if equal else attribute
