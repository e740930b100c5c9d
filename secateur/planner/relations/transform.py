"""Transformations of trees from the inputs up, without recursion, because a tree may have many joins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from secateur.planner.relations.bound_predicate import BoundPredicate
from secateur.planner.relations.nodes import (
    Aggregate,
    Apply,
    AsOfRight,
    Derived,
    Filter,
    Join,
    JoinType,
    Opaque,
    Project,
    Relation,
    Scan,
    SetOperation,
    SubqueryForm,
    Unknown,
    Values,
    Window,
    children,
    postorder,
)

_UNREAD = "DuckDB's parser reads {predicate} differently: write it in a simpler form"


def transform(root: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """The tree with ``change`` applied to every relation, whose inputs have been changed before."""
    changed: dict[int, Relation] = {}
    for relation in postorder(root):
        inputs = children(relation)
        new = [changed[id(input)] for input in inputs]
        same = all(before is after for before, after in zip(inputs, new, strict=True))
        changed[id(relation)] = change(relation if same else _over(relation, new))
    return changed[id(root)]


def with_join_types(root: Relation, kinds: Mapping[int, JoinType]) -> Relation:
    """The tree with other kinds of some joins, by the identity of the join."""
    changed: dict[int, Relation] = {}
    for relation in postorder(root):
        new = _over(relation, [changed[id(input)] for input in children(relation)])
        kind = kinds.get(id(relation))
        changed[id(relation)] = replace(new, kind=kind) if kind is not None and isinstance(new, Join) else new
    return changed[id(root)]


def conjuncts_of(root: Relation) -> list[BoundPredicate]:
    """Every conjunct of a tree that has a text of its own."""
    found: list[BoundPredicate] = []
    for relation in postorder(root):
        match relation:
            case Filter(_, conjuncts):
                found.extend(conjuncts)
            case Join(on=on):
                found.extend(conjunct for conjunct in on if not conjunct.structural)
            case _:
                pass
    return found


def unconfirmed_blocked(root: Relation, is_confirmed: Callable[[BoundPredicate], bool]) -> Relation:
    """Return the tree with conjuncts blocked that DuckDB's parse tree does not contain."""

    def checked(conjuncts: Sequence[BoundPredicate]) -> tuple[BoundPredicate, ...]:
        return tuple(
            conjunct if conjunct.structural or is_confirmed(conjunct) else conjunct.block(_UNREAD)
            for conjunct in conjuncts
        )

    def change(relation: Relation) -> Relation:
        match relation:
            case Filter(_, conjuncts):
                return replace(relation, conjuncts=checked(conjuncts))
            case Join(on=on):
                return replace(relation, on=checked(on))
            case Apply(conjunct=conjunct) if conjunct is not None and not is_confirmed(conjunct):
                return replace(relation, form=SubqueryForm.VALUE, compared=())
            case _:
                return relation

    return transform(root, change)


def apart(root: Relation, reason: str) -> Relation:
    """Block all predicates between SELECTs, for statements that the two parsers read differently as a whole."""

    def change(relation: Relation) -> Relation:
        match relation:
            case Project() | Aggregate() | Window() | AsOfRight() | SetOperation() | Derived():
                return Opaque(relation, reason)
            case Join(on=on):
                return replace(
                    relation,
                    on=tuple(conjunct for conjunct in on if not conjunct.structural),
                    merged=(),
                )
            case _:
                return relation

    return transform(root, change)


def _over(relation: Relation, inputs: Sequence[Relation]) -> Relation:
    """A relation over other inputs."""
    match relation:
        case Scan() | Values() | Unknown():
            return relation
        case SetOperation():
            return replace(relation, inputs=tuple(inputs))
        case Join():
            return replace(relation, left=inputs[0], right=inputs[1])
        case Apply():
            return replace(relation, input=inputs[0], subquery=inputs[1])
        case _:
            return replace(relation, input=inputs[0])
