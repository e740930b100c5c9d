"""Bounds on the length of texts: ``length(k) < 9`` beside a pattern leaves fewer texts that match it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from secateur.partitioning.pruning.operand import Constant, Evaluated, Parameter
from secateur.planner.predicates.constants import operand_of

_LENGTHS: Final = frozenset({"length", "len", "char_length", "character_length", "strlen"})
"""Functions of a text that are never less than its number of characters."""


@dataclass(frozen=True, slots=True)
class LengthBound:
    """The largest number of characters of a text: ``length_max``, added to a number known late, if there is one.

    Attributes:
        length_max: The constant.
        relative_to: An expression of parameters.
    """

    length_max: int
    relative_to: exp.Expr | None = None


def longest_texts(
    conjuncts: Iterable[exp.Expr], column_of: Callable[[exp.Column], str | None]
) -> dict[str, LengthBound]:
    """The columns whose number of characters a conjunction bounds, and the bounds; the least of constants if there are.

    Args:
        conjuncts: Its parts.
        column_of: The name of the scan's column that a column node means, or None when it is another table's.
    """
    found: dict[str, LengthBound] = {}
    for conjunct in conjuncts:
        for length, bound, offset in _bounds(conjunct.unnest()):
            column = _measured(length, column_of)
            if column is None or bound.find(exp.Column) is not None:
                continue
            known = found.get(column)
            match operand_of(bound):
                case Constant(value) if type(value) is int:
                    longest = value + offset
                    if known is None or known.relative_to is not None or longest < known.length_max:
                        found[column] = LengthBound(longest)
                case Parameter() | Evaluated() if known is None:
                    found[column] = LengthBound(offset, bound)
                case _:
                    pass
    return found


def _bounds(node: exp.Expr) -> Iterable[tuple[exp.Expr, exp.Expr, int]]:
    """The sides of a comparison with an upper bound, the bound, and what to add to it for the largest integer."""
    match node:
        case exp.LT() | exp.LTE() | exp.EQ():
            yield node.this.unnest(), node.expression, -isinstance(node, exp.LT)
        case exp.Between():
            yield node.this.unnest(), node.args["high"], 0
        case _:
            pass
    match node:
        case exp.GT() | exp.GTE() | exp.EQ():
            yield node.expression.unnest(), node.this, -isinstance(node, exp.GT)
        case _:
            pass


def _measured(node: exp.Expr, column_of: Callable[[exp.Column], str | None]) -> str | None:
    match node:
        case exp.Anonymous(expressions=[exp.Expr() as text]) if str(node.this).lower() in _LENGTHS:
            inner = text.unnest()
            return column_of(inner) if isinstance(inner, exp.Column) else None
        case _:
            return None
