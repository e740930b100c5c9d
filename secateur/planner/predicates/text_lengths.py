"""Bounds on the length of texts: ``length(k) < 9`` beside a pattern leaves fewer texts that match it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from sqlglot import exp

from secateur.partitioning.pruning.operand import Constant
from secateur.planner.predicates.constants import operand_of

__all__ = ["longest_texts"]

_LENGTHS: Final = frozenset({"length", "len", "char_length", "character_length", "strlen"})
"""Functions of a text that are never less than its number of characters."""


def longest_texts(conjuncts: Iterable[exp.Expr], column_of: Callable[[exp.Column], str | None]) -> dict[str, int]:
    """The columns whose number of characters a conjunction bounds by constants, and the bounds.

    Args:
        conjuncts: Its parts.
        column_of: The name of the scan's column that a column node means, or None when it is another table's.
    """
    found: dict[str, int] = {}
    for conjunct in conjuncts:
        for length, longest in _bounds(conjunct.unnest()):
            column = _measured(length, column_of)
            if column is not None:
                found[column] = min(longest, found.get(column, longest))
    return found


def _bounds(node: exp.Expr) -> Iterable[tuple[exp.Expr, int]]:
    """What a comparison bounds from above, and the largest value that passes."""
    match node:
        case exp.LT() | exp.LTE() | exp.EQ():
            longest = _integer(node.expression)
            if longest is not None:
                yield node.this.unnest(), longest - isinstance(node, exp.LT)
        case exp.Between():
            longest = _integer(node.args["high"])
            if longest is not None:
                yield node.this.unnest(), longest
        case _:
            pass
    match node:
        case exp.GT() | exp.GTE() | exp.EQ():
            longest = _integer(node.this)
            if longest is not None:
                yield node.expression.unnest(), longest - isinstance(node, exp.GT)
        case _:
            pass


def _measured(node: exp.Expr, column_of: Callable[[exp.Column], str | None]) -> str | None:
    match node:
        case exp.Anonymous(expressions=[exp.Expr() as text]) if str(node.this).lower() in _LENGTHS:
            inner = text.unnest()
            return column_of(inner) if isinstance(inner, exp.Column) else None
        case _:
            return None


def _integer(node: exp.Expr) -> int | None:
    operand = operand_of(node) if node.find(exp.Column) is None else None
    return operand.value if isinstance(operand, Constant) and type(operand.value) is int else None
