"""Membership in a list: the spellings of ``x is an element of $1``.

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

from sqlglot import exp

from secateur.planner.prune.overloads import CONTAINS


def list_membership(node: exp.Expr) -> tuple[exp.Expr, int] | None:
    """Return the searched expression and the index of the list parameter; None when a node is no such predicate."""
    found = _searched(node)
    index = None if found is None else _parameter_index(found[1])
    return None if found is None or index is None else (found[0], index)


def _parameter_index(node: exp.Expr) -> int | None:
    """The index of the parameter that a node is, counted from 0; None when it is none."""
    if isinstance(node, (exp.Placeholder, exp.Parameter)):
        text = node.this.name if isinstance(node.this, exp.Expr) else str(node.this)
        return int(text) - 1 if text.isdecimal() else None
    return None


def _searched(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """The searched expression and the list."""
    match node:
        case exp.EQ(args={"expression": exp.Any() as any_}):
            # The content is a list, or a query of the elements.
            content = any_.this.unnest() if isinstance(any_.this, exp.Paren) else _unnested(any_.this)
            return None if content is None else (node.this.unnest(), content)
        case exp.In(args={"field": exp.Expr() as field}):
            return node.this.unnest(), field.unnest()
        case exp.In(args={"query": exp.Expr() as query}):
            content = _unnested(query)
            return None if content is None else (node.this.unnest(), content)
        case exp.Anonymous(expressions=[values, needle]) if str(node.this).lower() in CONTAINS:
            return needle.unnest(), values.unnest()
        case _:
            return None


def _unnested(query: exp.Expr) -> exp.Expr | None:
    """The list of ``(SELECT unnest(list))``, and nothing else in it."""
    select = query.unnest()
    if (
        not isinstance(select, exp.Select)
        or {key for key, value in select.args.items() if value} != {"expressions"}
        or len(select.expressions) != 1
    ):
        return None
    item = select.expressions[0]
    if isinstance(item, exp.Anonymous) and str(item.this).lower() == "unnest" and len(item.expressions) == 1:
        return item.expressions[0].unnest()
    return None
