"""The invertible expressions of a key column that a comparison may have on one side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from secateur.errors import NotSupportedError
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
from secateur.partitioning.types.column_type import SqlType, TypeKind, parse_type
from secateur.planner.predicates.constants import operand_of
from secateur.planner.text.dialect import to_sql

KeyColumns: TypeAlias = Callable[[exp.Column], tuple[str, SqlType] | None]
"""Finds the key column that a column node refers to, and its type."""


@dataclass(frozen=True, slots=True)
class KeyExpression:
    """An expression of one key column, and nothing else that depends on a row. It is NULL only where the column is."""

    column: str
    comparison_target: ComparisonTarget = BARE


def key_expression(node: exp.Expr, typed: KeyColumns) -> KeyExpression | None:
    """Return the invertible expression of a key column that a node is, or None.

    Args:
        node: One side of a comparison.
        typed: The key columns.
    """
    node = node.unnest()
    match node:
        case exp.Column():
            found = typed(node)
            return None if found is None else KeyExpression(found[0])
        case exp.Cast(this=exp.Expr() as inner):
            return _cast(inner.unnest(), node.args["to"], typed)
        case exp.Neg(this=exp.Expr() as inner):
            return _linear(inner, 0, -1, typed)
        case exp.Mul(this=exp.Expr() as left, expression=exp.Expr() as right):
            factor = _integer(right)
            if factor is not None:
                return _linear(left, 0, factor, typed)
            factor = _integer(left)
            return None if factor is None else _linear(right, 0, factor, typed)
        case exp.Add(this=exp.Expr() as left, expression=exp.Expr() as right):
            number = _integer(right)
            if number is not None:
                return _linear(left, number, 1, typed)
            number = _integer(left)
            return None if number is None else _linear(right, number, 1, typed)
        case exp.Sub(this=exp.Expr() as left, expression=exp.Expr() as right):
            number = _integer(right)
            if number is not None:
                return _linear(left, -number, 1, typed)
            number = _integer(left)
            return None if number is None else _linear(right, number, -1, typed)
        case exp.Anonymous(expressions=[exp.Expr() as inner]) if str(node.this).lower() == "abs":
            return _absolute(inner.unnest(), typed)
        case exp.Anonymous(expressions=[exp.Literal(is_string=True) as unit, exp.Expr() as inner]) if str(
            node.this
        ).lower() in ("date_trunc", "datetrunc"):
            return _truncated(inner.unnest(), unit.name.lower(), typed)
        case _:
            return None


def _cast(inner: exp.Expr, to: exp.Expr, typed: KeyColumns) -> KeyExpression | None:
    found = typed(inner) if isinstance(inner, exp.Column) else None
    if found is None:
        return None
    column, column_type = found
    try:
        target = parse_type(to_sql(to))
    except NotSupportedError:
        return None
    if target == column_type:
        return KeyExpression(column)
    if target.is_integer and column_type.is_integer:
        low, high = column_type.integer_range
        smallest, largest = target.integer_range
        return KeyExpression(column, WidenedColumn(target)) if smallest <= low and high <= largest else None
    if target.kind in (TypeKind.VARCHAR, TypeKind.DOUBLE) and column_type.is_integer:
        return KeyExpression(column, WidenedColumn(target))
    if target.kind is TypeKind.DATE and column_type.kind is TypeKind.TIMESTAMP:
        return KeyExpression(column, TruncatedColumn("day", as_date=True))
    return None


def _linear(node: exp.Expr, offset: int, factor: int, typed: KeyColumns) -> KeyExpression | None:
    """``offset + factor * node``.

    A value that overflows in it is an error of the statement, so no row that passes has one.
    """
    found = key_expression(node, typed)
    column = node.find(exp.Column)
    known = None if column is None else typed(column)
    if found is None or known is None or factor == 0:
        return None
    column_type = known[1]
    if not (column_type.is_integer or (column_type.kind is TypeKind.DATE and factor == 1)):
        return None
    match found.comparison_target:
        case BareColumn():
            return KeyExpression(found.column, LinearColumn(offset, factor))
        case WidenedColumn(wide) if wide.is_integer:
            return KeyExpression(found.column, LinearColumn(offset, factor))
        case AbsoluteColumn(wide, inner, times):
            return KeyExpression(found.column, AbsoluteColumn(wide, offset + factor * inner, factor * times))
        case LinearColumn(inner, times):
            return KeyExpression(found.column, LinearColumn(offset + factor * inner, factor * times))
        case _:
            return None


def _absolute(inner: exp.Expr, typed: KeyColumns) -> KeyExpression | None:
    found = key_expression(inner, typed)
    column = inner.find(exp.Column)
    known = None if column is None else typed(column)
    if found is None or known is None or not known[1].is_integer:
        return None
    match found.comparison_target:
        case BareColumn():
            return KeyExpression(found.column, AbsoluteColumn(known[1]))
        case WidenedColumn(wide) if wide.is_integer:
            return KeyExpression(found.column, AbsoluteColumn(wide))
        case _:
            return None


def _truncated(inner: exp.Expr, unit: str, typed: KeyColumns) -> KeyExpression | None:
    found = typed(inner) if isinstance(inner, exp.Column) else None
    if found is None or unit not in UNITS:
        return None
    column, column_type = found
    possible = column_type.kind is TypeKind.TIMESTAMP or (column_type.kind is TypeKind.DATE and unit in DAYS_OR_LONGER)
    return KeyExpression(column, TruncatedColumn(unit)) if possible else None


def _integer(node: exp.Expr) -> int | None:
    operand = operand_of(node) if node.find(exp.Column) is None else None
    return operand.value if isinstance(operand, Constant) and type(operand.value) is int else None
