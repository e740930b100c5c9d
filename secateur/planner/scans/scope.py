"""What a statement says about the rows of each of its scans.

A row of a scan for which one of its conjuncts is not TRUE cannot influence the answer, so its partition need not be read for it. How conjuncts come from
anywhere in the statement to a scan is said in :mod:`secateur.planner.relations.prunability`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from secateur.planner.binding.query import Query, Scan
from secateur.planner.relations.attribute import Attribute, occurrence
from secateur.planner.relations.equality import Classes
from secateur.planner.relations.nodes import Relation
from secateur.planner.relations.nodes import Scan as ScanRelation
from secateur.planner.relations.prunability import restrictions_of_scans
from secateur.planner.relations.restriction import Restriction, any_of, distinct, fresh
from secateur.planner.text.dialect import to_sql

__all__ = ["Scope", "refused", "scopes_of"]

_SHOWN_MAX: Final = 60
_JOINED: Final = "{predicate} joins the key, and no side of it is compared with a value"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a statement says about one of its scans.

    Attributes:
        conjuncts: Certainly applied to its rows. A column in them may be another table's.
        column_of: The name of the scan's column that a column node in a conjunct means, or None.
        local: Those of the conjuncts that the user wrote about this scan, and that may be applied to its rows before anything else.
        notes: Why other predicates about its key do not reach it, in the user's terms.
        whole: Whether the conjuncts are all that the statement says about the scan.
        refusal: Why nothing can be said, in the user's terms; then there are no conjuncts.
    """

    conjuncts: tuple[exp.Expr, ...]
    column_of: Callable[[exp.Column], str | None]
    local: tuple[exp.Expr, ...] = ()
    notes: tuple[str, ...] = ()
    whole: bool = True
    refusal: str | None = None


def scopes_of(query: Query, relations: Sequence[Relation]) -> list[Scope]:
    """The scope of each scan of a query, from its relations.

    Args:
        query: The query.
        relations: All of its relations, with conjuncts that may be used; none if they could not be built.
    """
    mentions: dict[str, list[tuple[ScanRelation, tuple[Restriction, ...]]]] = {scan.relation: [] for scan in query.scans}
    for root in relations:
        for relation, restrictions in restrictions_of_scans(root):
            mentions[relation.scan.relation].append((relation, restrictions))
    return [_scope(scan, mentions[scan.relation]) for scan in query.scans]


def refused(query: Query, reason: str) -> list[Scope]:
    """The scopes where nothing can be said."""
    return [Scope((), lambda node: None, whole=False, refusal=reason) for _ in query.scans]


def _scope(scan: Scan, mentions: Sequence[tuple[ScanRelation, tuple[Restriction, ...]]]) -> Scope:
    if not mentions:
        return Scope((), lambda node: None, whole=False, refusal=f"{scan.alias} stands where it is not read by a plain FROM or JOIN")
    said = [_said(relation, restrictions, mentions[0][0]) for relation, restrictions in mentions]
    held = _of_all([[restriction for restriction in mention if restriction.blocked is None] for mention in said])
    blocked = [restriction for mention in said for restriction in mention if restriction.blocked is not None]
    joined = [restriction for restriction in held if _is_join(restriction)]
    apart = _apart([restriction for restriction in held if restriction not in joined])
    names = {number: attribute.name for restriction in apart for number, attribute in restriction.binding.items()}
    local = tuple(restriction.predicate for restriction in apart if not restriction.carried and not restriction.structural)
    notes = (*_notes(scan, blocked), *_notes(scan, [restriction.block(_JOINED) for restriction in joined]))
    return Scope(tuple(restriction.predicate for restriction in apart), _resolver(names), local, notes, whole=not blocked and not joined)


def _is_join(restriction: Restriction) -> bool:
    """Whether it only says that a column equals one from elsewhere. What is known about that one has been said of the column itself."""
    predicate = restriction.predicate.unnest()
    sides = (predicate.this.unnest(), predicate.expression.unnest()) if isinstance(predicate, (exp.EQ, exp.NullSafeEQ)) else ()
    return len(restriction.binding) == 1 and len(sides) == 2 and all(isinstance(side, exp.Column) for side in sides)


def _resolver(names: Mapping[int, str]) -> Callable[[exp.Column], str | None]:
    return lambda node: names.get(occurrence(node))


def _said(relation: ScanRelation, restrictions: Sequence[Restriction], first: ScanRelation) -> list[Restriction]:
    """What is said of one mention, about the attributes of the first: its own, and what follows from values around it."""
    own = frozenset(attribute.owner for attribute in relation.attributes)
    classes = Classes(restrictions)
    carried = [there for restriction in restrictions if (there := classes.carry(restriction, own)) is not None]
    alike: dict[Attribute, Attribute] = dict(zip(relation.attributes, first.attributes, strict=True))
    useful = [restriction for restriction in (*restrictions, *carried) if restriction.touches(own) or not restriction.attributes]
    return list(distinct(restriction.rebound(alike.get) for restriction in useful))


def _of_all(mentions: Sequence[Sequence[Restriction]]) -> list[Restriction]:
    """What holds for the rows that some mention needs: what all of them say, and one of what each says beside that."""
    common = set.intersection(*({restriction.key for restriction in mention} for mention in mentions))
    shared = [restriction for restriction in mentions[0] if restriction.key in common]
    either = any_of([[restriction for restriction in mention if restriction.key not in common] for mention in mentions]) if len(mentions) > 1 else None
    return shared if either is None else [*shared, either]


def _apart(restrictions: Sequence[Restriction]) -> list[Restriction]:
    """Restrictions of one predicate get copies of it, so that each column node means one thing."""
    seen: set[int] = set()
    apart = []
    for restriction in restrictions:
        own = fresh(restriction) if id(restriction.predicate) in seen else restriction
        seen.add(id(own.predicate))
        apart.append(own)
    return apart


def _notes(scan: Scan, blocked: Sequence[Restriction]) -> tuple[str, ...]:
    key = set(scan.table.scheme.columns)
    notes = []
    for restriction in blocked:
        if restriction.blocked is not None and any(attribute.name in key for attribute in restriction.attributes):
            text = to_sql(restriction.predicate)
            shown = text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."
            notes.append(restriction.blocked.replace("{predicate}", shown))
    return tuple(dict.fromkeys(notes))
