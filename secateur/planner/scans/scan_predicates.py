"""The predicates that a statement applies to the rows of each of its scans.

A row of a scan for which one of its conjuncts is not TRUE cannot influence the answer, so its partition need not be
read for it. :mod:`secateur.planner.relations.prunability` describes how conjuncts from anywhere in the statement reach
a scan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from secateur.planner.binding.query import Query, TableReference
from secateur.planner.predicates.unused import shown
from secateur.planner.relations.attribute import Attribute, occurrence
from secateur.planner.relations.bound_predicate import BoundPredicate, any_of, distinct, fresh
from secateur.planner.relations.equality import EquivalenceClasses
from secateur.planner.relations.nodes import Relation
from secateur.planner.relations.nodes import Scan as ScanRelation
from secateur.planner.relations.prunability import predicates_of_scans

_JOINED: Final = "{predicate} only joins the key: compare either side with a value"


@dataclass(frozen=True, slots=True)
class ScanPredicates:
    """The predicates on one scan of a statement.

    Attributes:
        conjuncts: Certainly applied to its rows. A column in them may be another table's.
        column_of: The name of the scan's column that a column node in a conjunct refers to, or None.
        local: Those of the conjuncts that the user wrote about this scan, and that may be applied to its rows before
            anything else.
        notes: Why other predicates about its key do not reach it, in the user's terms.
        whole: Whether the conjuncts are all predicates of the statement on the scan.
        refusal: Why the scan cannot be restricted, in the user's terms; then there are no conjuncts.
    """

    conjuncts: tuple[exp.Expr, ...]
    column_of: Callable[[exp.Column], str | None]
    local: tuple[exp.Expr, ...] = ()
    notes: tuple[str, ...] = ()
    whole: bool = True
    refusal: str | None = None


def scan_predicates_of(query: Query, relations: Sequence[Relation]) -> list[ScanPredicates]:
    """The scope of each scan of a query, from its relations.

    Args:
        query: The query.
        relations: All of its relations, with conjuncts that may be used; none if they could not be built.
    """
    references: dict[str, list[tuple[ScanRelation, tuple[BoundPredicate, ...]]]] = {
        scan.relation: [] for scan in query.scans
    }
    for root in relations:
        for relation, conjuncts in predicates_of_scans(root):
            references[relation.scan.relation].append((relation, conjuncts))
    return [_scope(scan, references[scan.relation]) for scan in query.scans]


def refused(query: Query, reason: str) -> list[ScanPredicates]:
    """Return scan predicates that restrict nothing, with the reason."""
    return [ScanPredicates((), lambda node: None, whole=False, refusal=reason) for _ in query.scans]


def _scope(
    scan: TableReference, references: Sequence[tuple[ScanRelation, tuple[BoundPredicate, ...]]]
) -> ScanPredicates:
    if not references:
        return ScanPredicates(
            (),
            lambda node: None,
            whole=False,
            refusal=f"{scan.alias} is not read by a plain FROM or JOIN: name it in FROM or JOIN by itself",
        )
    said = [_said(relation, conjuncts, references[0][0]) for relation, conjuncts in references]
    held = _of_all([[conjunct for conjunct in reference if conjunct.blocked is None] for reference in said])
    blocked = [conjunct for reference in said for conjunct in reference if conjunct.blocked is not None]
    joined = [conjunct for conjunct in held if _is_join(conjunct)]
    apart = _apart([conjunct for conjunct in held if conjunct not in joined])
    names = {number: attribute.name for conjunct in apart for number, attribute in conjunct.binding.items()}
    local = tuple(conjunct.predicate for conjunct in apart if not conjunct.carried and not conjunct.structural)
    notes = (*_notes(scan, blocked), *_notes(scan, [conjunct.block(_JOINED) for conjunct in joined]))
    return ScanPredicates(
        tuple(conjunct.predicate for conjunct in apart),
        _resolver(names),
        local,
        notes,
        whole=not blocked and not joined,
    )


def _is_join(conjunct: BoundPredicate) -> bool:
    """Whether it only equates a column with one from elsewhere.

    Predicates on the other column have been copied to this column already.
    """
    predicate = conjunct.predicate.unnest()
    sides = (
        (predicate.this.unnest(), predicate.expression.unnest())
        if isinstance(predicate, (exp.EQ, exp.NullSafeEQ))
        else ()
    )
    return len(conjunct.binding) == 1 and len(sides) == 2 and all(isinstance(side, exp.Column) for side in sides)


def _resolver(names: Mapping[int, str]) -> Callable[[exp.Column], str | None]:
    return lambda node: names.get(occurrence(node))


def _said(relation: ScanRelation, conjuncts: Sequence[BoundPredicate], first: ScanRelation) -> list[BoundPredicate]:
    """Return the predicates of one reference over the attributes of the first reference.

    These are its own, and those that follow from outer values.
    """
    own = frozenset(attribute.owner for attribute in relation.attributes)
    classes = EquivalenceClasses(conjuncts)
    carried = [there for conjunct in conjuncts if (there := classes.carry(conjunct, own)) is not None]
    alike: dict[Attribute, Attribute] = dict(zip(relation.attributes, first.attributes, strict=True))
    useful = [conjunct for conjunct in (*conjuncts, *carried) if conjunct.touches(own) or not conjunct.attributes]
    return list(distinct(conjunct.rebound(alike.get) for conjunct in useful))


def _of_all(references: Sequence[Sequence[BoundPredicate]]) -> list[BoundPredicate]:
    """Combine the references of a table: the predicates that all of them share, and a disjunction of the others."""
    common = set.intersection(*({conjunct.key for conjunct in reference} for reference in references))
    shared = [conjunct for conjunct in references[0] if conjunct.key in common]
    either = (
        any_of([[conjunct for conjunct in reference if conjunct.key not in common] for reference in references])
        if len(references) > 1
        else None
    )
    return shared if either is None else [*shared, either]


def _apart(conjuncts: Sequence[BoundPredicate]) -> list[BoundPredicate]:
    """Give bound forms of one predicate copies of it, so that each column node refers to one attribute."""
    seen: set[int] = set()
    apart = []
    for conjunct in conjuncts:
        own = fresh(conjunct) if id(conjunct.predicate) in seen else conjunct
        seen.add(id(own.predicate))
        apart.append(own)
    return apart


def _notes(scan: TableReference, blocked: Sequence[BoundPredicate]) -> tuple[str, ...]:
    key = set(scan.table.scheme.columns)
    notes = (
        conjunct.blocked.replace("{predicate}", shown(conjunct.predicate))
        for conjunct in blocked
        if conjunct.blocked is not None and any(attribute.name in key for attribute in conjunct.attributes)
    )
    return tuple(dict.fromkeys(notes))
