"""Faster traversal of sqlglot trees."""

from __future__ import annotations

from sqlglot import exp


def children_of(node: exp.Expr) -> list[exp.Expr]:
    """The nodes below a node, as ``iter_expressions()``."""
    found = []
    for value in node.args.values():
        if isinstance(value, exp.Expr):
            found.append(value)
        elif type(value) is list:
            found.extend(item for item in value if isinstance(item, exp.Expr))
    return found


def nodes_in(value: object) -> list[exp.Expr]:
    """The nodes of an argument: a node, a list of some, or anything else."""
    return [node for node in (value if isinstance(value, list) else [value]) if isinstance(node, exp.Expr)]
