"""A relational tree as text, one relation a line, inputs below and indented."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from sqlglot import exp

from secateur.planner.relations.attribute import Attribute, occurrence
from secateur.planner.relations.bound_predicate import BoundPredicate
from secateur.planner.relations.nodes import (
    Aggregate,
    Apply,
    AsOfRight,
    Derived,
    Distinct,
    Filter,
    Join,
    Limit,
    Opaque,
    Project,
    Relation,
    Scan,
    SetOperation,
    Sort,
    Unknown,
    Values,
    Window,
    children,
)
from secateur.planner.text.dialect import to_sql
from secateur.planner.text.trees import copied


def relation_text(relation: Relation, indent: int = 0) -> str:
    """The tree below a relation.

    >>> print(relation_text(Filter(Unknown(), ())))
    filter
      unknown
    """
    lines = ["  " * indent + _line(relation), *(relation_text(child, indent + 1) for child in children(relation))]
    return "\n".join(lines)


def predicate_text(conjunct: BoundPredicate) -> str:
    """Return a predicate with the names of its attributes; a free variable keeps its text from the statement."""
    predicate = copied(conjunct.predicate)

    def named(node: exp.Expr) -> exp.Expr:
        attribute = conjunct.binding.get(occurrence(node)) if isinstance(node, exp.Column) else None
        return node if attribute is None else exp.column(attribute.name)

    return to_sql(predicate.transform(named, copy=False))


def _line(relation: Relation) -> str:
    match relation:
        case Scan(scan):
            return f"scan {scan.table.name}" + ("" if scan.alias == scan.table.name else f" AS {scan.alias}")
        case Values():
            return "values"
        case Unknown():
            return "unknown"
        case Project(_, attributes):
            return f"project {_names(attributes)}".rstrip()
        case Filter(_, conjuncts):
            return f"filter {_conjuncts(conjuncts)}".rstrip()
        case Sort():
            return "sort"
        case Limit(_, word):
            return word.lower()
        case Aggregate(_, keys):
            return f"aggregate {_names(keys)}".rstrip()
        case Distinct(_, keys):
            return "distinct" if keys is None else f"distinct on {_names(keys)}"
        case Window(_, partition):
            return f"window {_names(partition)}".rstrip()
        case AsOfRight(_, keys):
            return f"nearest {_names(keys)}".rstrip()
        case SetOperation(kind):
            return kind.value.lower()
        case Join(kind, on=on):
            return f"{kind.value.lower()} join {_conjuncts(on)}".rstrip()
        case Apply(_, _, form):
            return f"apply {form.value.lower()}"
        case Derived(_, alias):
            return f"derived {alias}"
        case Opaque(_, reason):
            return f"opaque: {reason}"
        case _:
            assert_never(relation)


def _names(attributes: Iterable[Attribute]) -> str:
    return ", ".join(sorted(attribute.name for attribute in attributes if attribute.name))


def _conjuncts(conjuncts: Iterable[BoundPredicate]) -> str:
    return " AND ".join(map(predicate_text, conjuncts))
