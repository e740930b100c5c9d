"""The invertible expressions of a key column that a comparison may have on one side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from secateur.partitioning.pruning.comparison_target import (
    BARE,
    AbsoluteColumn,
    BareColumn,
    ComparisonTarget,
    LinearColumn,
    TruncatedColumn,
    WidenedColumn,
)
from secateur.partitioning.pruning.operand import Constant
from secateur.partitioning.types.calendar import DAYS_OR_LONGER, UNITS
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.planner.prune.operands import operand_of
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import cast_of
from secateur.planner.tree.types import is_exact, sql_type

KeyColumns: TypeAlias = Callable[[ex.InputColumn], tuple[str, SqlType] | None]
"""Finds the key column that an input column is, and its type."""


@dataclass(frozen=True, slots=True)
class KeyExpression:
    """An expression of one key column, and nothing else that depends on a row. It is NULL only where the column is.

    Attributes:
        column: The name of the column.
        column_type: Its type.
        comparison_target: What the expression makes of it. A cast that keeps values apart and in order makes nothing:
            the other side of the comparison has a value of the type of the cast.
    """

    column: str
    column_type: SqlType
    comparison_target: ComparisonTarget = BARE

    def become(self, comparison_target: ComparisonTarget) -> KeyExpression:
        """Another expression of the column."""
        return KeyExpression(self.column, self.column_type, comparison_target)


def key_expression(node: ex.AnyExpression, typed: KeyColumns) -> KeyExpression | None:
    """Return the invertible expression of a key column that a node is, or None.

    Args:
        node: One side of a comparison.
        typed: The key columns.
    """
    match node:
        case ex.InputColumn():
            found = typed(node)
            return None if found is None else KeyExpression(*found)
        case ex.Call(children=(inner,)) if cast_of(node) is not None:
            return _cast(node, inner, typed)
        case ex.Call(name="-", children=(inner,)):
            return _linear(node, inner, 0, -1, typed)
        case ex.Call(name="abs", children=(inner,)):
            return _absolute(inner, typed)
        case ex.Call(name="*" | "+" | "-", children=(left, right)):
            number, inner = _integer(right), left
            if number is None:
                number, inner = _integer(left), right
            if number is None:
                return None
            if node.name == "*":
                return _linear(node, inner, 0, number, typed)
            if node.name == "+":
                return _linear(node, inner, number, 1, typed)
            return _linear(node, inner, -number, 1, typed) if inner is left else _linear(node, inner, number, -1, typed)
        case ex.Call(
            name="date_trunc" | "datetrunc", children=(ex.BoundConstant(value=unit), ex.InputColumn() as column)
        ):
            found = typed(column)
            return None if found is None else _truncated(KeyExpression(*found), str(unit.value).lower())
        case _:
            return None


def _cast(node: ex.AnyExpression, inner: ex.AnyExpression, typed: KeyColumns) -> KeyExpression | None:
    found = key_expression(inner, typed)
    source, target = sql_type(inner.return_type), sql_type(node.return_type)
    if found is None or source is None or target is None:
        return None
    if found.comparison_target != BARE:
        # As a DOUBLE an integer may equal its neighbours, which only the bare column's target knows.
        is_number = (
            source.is_integer and is_exact(source, target) and not isinstance(found.comparison_target, WidenedColumn)
        )
        return found if is_number else None
    if is_exact(source, target):
        _, is_tried = cast_of(node) or (inner, True)
        # A day may be past the last instant, which TRY_CAST makes a NULL.
        return None if is_tried and source != target and not source.is_integer else found
    if found.column_type != source:
        return None
    if source.is_integer and target.kind in (TypeKind.VARCHAR, TypeKind.DOUBLE):
        return found.become(WidenedColumn(target))
    if source.kind is TypeKind.TIMESTAMP and target.kind is TypeKind.DATE:
        return found.become(TruncatedColumn("day", as_date=True))
    return None


def _linear(
    node: ex.AnyExpression, inner: ex.AnyExpression, offset: int, factor: int, typed: KeyColumns
) -> KeyExpression | None:
    """``offset + factor * inner``.

    A value that overflows in it is an error of the statement, so no row that passes has one.
    """
    found = key_expression(inner, typed)
    source, result = sql_type(inner.return_type), sql_type(node.return_type)
    if found is None or source is None or result is None or factor == 0:
        return None
    is_number = found.column_type.is_integer and source.is_integer and result.is_integer
    if not is_number and not (found.column_type.kind is source.kind is result.kind is TypeKind.DATE and factor == 1):
        return None
    match found.comparison_target:
        case BareColumn():
            return found.become(LinearColumn(offset, factor))
        case AbsoluteColumn(wide, before, times):
            return found.become(AbsoluteColumn(wide, offset + factor * before, factor * times))
        case LinearColumn(before, times):
            return found.become(LinearColumn(offset + factor * before, factor * times))
        case _:
            return None


def _absolute(inner: ex.AnyExpression, typed: KeyColumns) -> KeyExpression | None:
    found = key_expression(inner, typed)
    wide = sql_type(inner.return_type)
    if found is None or wide is None or not (found.column_type.is_integer and wide.is_integer):
        return None
    return found.become(AbsoluteColumn(wide)) if found.comparison_target == BARE else None


def _truncated(found: KeyExpression, unit: str) -> KeyExpression | None:
    kind = found.column_type.kind
    possible = kind is TypeKind.TIMESTAMP or (kind is TypeKind.DATE and unit in DAYS_OR_LONGER)
    return found.become(TruncatedColumn(unit)) if possible and unit in UNITS else None


def _integer(node: ex.AnyExpression) -> int | None:
    operand = operand_of(node)
    return operand.value if isinstance(operand, Constant) and type(operand.value) is int else None
