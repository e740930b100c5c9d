"""Membership in a list parameter: the spellings of ``x is an element of $1``.

================================================  ==========================
form                                              besides TRUE
================================================  ==========================
``x = ANY($1)``, ``x = ANY (SELECT unnest($1))``  NULL for a list with NULL
``x IN (SELECT unnest($1))``                      the same
``x IN $1``, ``list_contains($1, x)``, ...        FALSE for a list with NULL
================================================  ==========================

They are TRUE for the same values of ``x``, those that equal an element, and pruning needs no more.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from secateur.planner.predicates.constants import parameter_index

__all__ = ["list_membership"]

_CONTAINS: Final = frozenset({"list_contains", "list_has", "array_contains", "array_has", "contains"})


def list_membership(node: exp.Expr) -> tuple[exp.Expr, int] | None:
    """Return the searched expression and the index of the list parameter; None when a node is no such predicate."""
    match node:
        case exp.EQ(args={"expression": exp.Any() as any_}):
            return _found(node.this, _index(any_.this))
        case exp.In(args={"field": exp.Expr() as field}):
            return _found(node.this, parameter_index(field.unnest()))
        case exp.In(args={"query": exp.Expr() as query}):
            return _found(node.this, _unnested(query))
        case exp.Anonymous(expressions=[values, needle]) if str(node.this).lower() in _CONTAINS:
            return _found(needle, parameter_index(values.unnest()))
        case _:
            return None


def _found(needle: exp.Expr, index: int | None) -> tuple[exp.Expr, int] | None:
    return None if index is None else (needle.unnest(), index)


def _index(node: exp.Expr) -> int | None:
    """The parameter of ``ANY(...)``, whose content is a list or a query of the elements."""
    return parameter_index(node.unnest()) if isinstance(node, exp.Paren) else _unnested(node)


def _unnested(query: exp.Expr) -> int | None:
    """The parameter of ``(SELECT unnest($1))``, and nothing else in it."""
    select = query.unnest()
    if (
        not isinstance(select, exp.Select)
        or {key for key, value in select.args.items() if value} != {"expressions"}
        or len(select.expressions) != 1
    ):
        return None
    item = select.expressions[0]
    if isinstance(item, exp.Anonymous) and str(item.this).lower() == "unnest" and len(item.expressions) == 1:
        return parameter_index(item.expressions[0].unnest())
    return None
