"""Bounds on the length of texts: ``length(k) < 9`` beside a pattern leaves fewer texts that match it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from secateur.partitioning.pruning.comparison import OPERATORS, Comparison
from secateur.partitioning.pruning.operand import Constant, Evaluated, Operand, Parameter
from secateur.planner.prune.operands import operand_of
from secateur.planner.prune.overloads import COMPARISONS, LENGTHS, are_texts
from secateur.planner.prune.scan_columns import ScanColumns
from secateur.planner.tree import expressions as ex


@dataclass(frozen=True, slots=True)
class LengthBound:
    """The largest number of characters of a text: ``length_max``, added to a number known late, if there is one.

    Attributes:
        length_max: The constant.
        relative_to: An operand that depends on parameters.
    """

    length_max: int
    relative_to: Operand | None = None


def longest_texts(conjuncts: Iterable[ex.AnyExpression], columns: ScanColumns) -> dict[str, LengthBound]:
    """The columns whose number of characters a conjunction bounds, and the bounds; the least of constants if there are.

    Args:
        conjuncts: Its parts.
        columns: The columns.
    """
    found: dict[str, LengthBound] = {}
    for conjunct in conjuncts:
        if not isinstance(conjunct, ex.Call) or conjunct.type not in COMPARISONS:
            continue
        comparison = COMPARISONS[conjunct.type]
        left, right = conjunct.children
        for length, bound, asked in (
            (left, right, comparison),
            (right, left, OPERATORS[comparison].mirrored or comparison),
        ):
            column = _measured(length, columns)
            if column is None or asked not in (Comparison.LESS, Comparison.LESS_EQUAL, Comparison.IN):
                continue
            offset = -1 if asked is Comparison.LESS else 0
            known = found.get(column)
            match operand_of(bound):
                case Constant(value) if type(value) is int:
                    if known is None or known.relative_to is not None or value + offset < known.length_max:
                        found[column] = LengthBound(value + offset)
                case (Parameter() | Evaluated()) as operand if known is None:
                    found[column] = LengthBound(offset, operand)
                case _:
                    pass
    return found


def _measured(node: ex.AnyExpression, columns: ScanColumns) -> str | None:
    match node:
        case ex.Call(children=(text,)) if node.name in LENGTHS and are_texts(node):
            return columns.name_of(text)
        case _:
            return None
