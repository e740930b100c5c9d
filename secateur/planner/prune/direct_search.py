"""The search for few keys that a box is, where it is equalities on leading columns and little else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from secateur.engine.sql.key_search import DirectSearch, KeyEnd, KeyOperand
from secateur.partitioning.pruning.comparison import Comparison
from secateur.partitioning.pruning.comparison_target import BareColumn
from secateur.partitioning.pruning.condition import Box, Choice, Constraint, ParameterComparison
from secateur.partitioning.pruning.domain import Domain
from secateur.partitioning.pruning.operand import Constant, Operand, ParameterList
from secateur.partitioning.types.column_type import SqlType

_CHOICES_MAX: Final = 64
"""Values of an IN list that are searched for one by one, without being put in order first."""


def direct_search(types: Sequence[tuple[str, SqlType]], box: Box) -> DirectSearch | None:
    """A box that is equalities on leading columns and at most one span or list behind them; None for anything else."""
    prefix: list[KeyOperand] = []
    leading = types[: len(box.constraints)]
    if {name for name, _ in leading} != {name for name, _ in box.constraints}:
        return None
    for name, column_type in leading:
        operand = _only_operand(box[name])
        if operand is None:
            if len(prefix) + 1 < len(box.constraints):
                return None
            choices = _choices(box[name], column_type)
            if choices:
                return DirectSearch(tuple(prefix), choices=choices)
            ends = _ends(box[name], column_type)
            return None if ends is None else DirectSearch(tuple(prefix), *ends)
        prefix.append(KeyOperand(operand, column_type))
    return DirectSearch(tuple(prefix))


def _only_operand(constraint: Constraint) -> Operand | None:
    """Return the operand that a column must equal, if the constraint consists of that alone."""
    match constraint:
        case Constraint((Choice(domain, ()),)) if domain.is_finite and len(domain.points) == 1:
            (value,) = domain.points
            return Constant(value)
        case Constraint((Choice(domain, (ParameterComparison(Comparison.IN, (operand,), BareColumn()),)),)) if (
            domain.is_nothing and not isinstance(operand, ParameterList)
        ):
            return operand
        case _:
            return None


def _choices(constraint: Constraint, column_type: SqlType) -> tuple[KeyOperand, ...]:
    """The values that a column may have, if the constraint is a short list of them alone; else nothing."""
    match constraint:
        case Constraint((Choice(domain, tests),)) if domain.is_finite and len(domain.points) <= _CHOICES_MAX:
            # In order: equal plans have equal bytes in all processes.
            operands: list[Operand] = [Constant(value) for value in sorted(domain.points)]
        case _:
            return ()
    for test in tests:
        if test.comparison is not Comparison.IN or not isinstance(test.comparison_target, BareColumn):
            return ()
        for operand in test.operands:
            if isinstance(operand, ParameterList):
                return ()
            operands.append(operand)
    return tuple(KeyOperand(operand, column_type) for operand in operands) if len(operands) <= _CHOICES_MAX else ()


def _ends(constraint: Constraint, column_type: SqlType) -> tuple[KeyEnd | None, KeyEnd | None] | None:
    """Return the two ends of the one span that a constraint leaves.

    None when it leaves several, or an end is the tighter of two.
    """
    lower: list[KeyEnd] = []
    upper: list[KeyEnd] = []
    for choice in constraint.choices:
        match choice:
            case Choice(Domain(values, (span,)), ()) if not values:
                if span.lower is not None:
                    lower.append(KeyEnd(KeyOperand(Constant(span.lower), column_type), span.lower_closed))
                if span.upper is not None:
                    upper.append(KeyEnd(KeyOperand(Constant(span.upper), column_type), span.upper_closed))
            case Choice(domain, (ParameterComparison(comparison, operands, BareColumn()),)) if domain.is_nothing:
                ends = [
                    KeyOperand(operand, column_type) for operand in operands if not isinstance(operand, ParameterList)
                ]
                match comparison, ends:
                    case ((Comparison.GREATER | Comparison.GREATER_EQUAL), [low]):
                        lower.append(KeyEnd(low, comparison is Comparison.GREATER_EQUAL))
                    case ((Comparison.LESS | Comparison.LESS_EQUAL), [high]):
                        upper.append(KeyEnd(high, comparison is Comparison.LESS_EQUAL))
                    case Comparison.BETWEEN, [low, high]:
                        lower.append(KeyEnd(low, closed=True))
                        upper.append(KeyEnd(high, closed=True))
                    case _:
                        return None
            case _:
                return None
    if len(lower) > 1 or len(upper) > 1:
        return None
    return lower[0] if lower else None, upper[0] if upper else None
