"""Operands that do not depend on rows: literals, parameters, and expressions of these.

DuckDB evaluates expressions of literals while the statement is planned.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from sqlglot import exp

from secateur.expression_values import value_of
from secateur.partitioning.pruning.operand import Constant, Evaluated, Operand, Parameter, Quick
from secateur.partitioning.types.decimals import negated
from secateur.planner.predicates.computed import computed
from secateur.planner.predicates.evaluable import evaluable
from secateur.planner.text.clock_functions import sql_as_written

_INTEGER: Final = re.compile(r"[0-9]{1,38}")
_DECIMAL: Final = re.compile(r"[0-9]*\.[0-9]*")
_DECIMAL_DIGITS_MAX: Final = 38


def operand_of(node: exp.Expr) -> Operand | None:
    """Return the value of an expression that does not depend on rows.

    None when it depends on rows, or may differ between evaluations.

    Cost: nothing for literals and parameters; an expression of them is read by DuckDB's parser, and evaluated if it
    has no parameters: about a millisecond. One that :mod:`~secateur.planner.predicates.evaluable` does not admit is
    None.
    """
    node = node.unnest()
    index = parameter_index(node)
    if index is not None:
        return Parameter(index)
    match node:
        case exp.Null():
            return Constant(None)
        case exp.Boolean():
            return Constant(bool(node.this))
        case exp.Literal() if node.is_string:
            return Constant(node.this)
        case exp.Literal():
            return _number(node.this)
        case exp.Neg() if isinstance(node.this, exp.Literal) and not node.this.is_string:
            number = _number(node.this.this)
            return None if number is None else Constant(negated(number.value))
        case _ if node.find(exp.Placeholder, exp.Parameter) is not None:
            return _open(node)
        case _:
            return _folded(node)


def parameter_index(node: exp.Expr) -> int | None:
    """The index of the parameter that a node is, counted from 0; None when it is none."""
    if isinstance(node, (exp.Placeholder, exp.Parameter)):
        text = node.this.name if isinstance(node.this, exp.Expr) else str(node.this)
        return int(text) - 1 if text.isdecimal() else None
    return None


def _number(text: str) -> Constant | None:
    if _INTEGER.fullmatch(text):
        return Constant(int(text))
    if _DECIMAL.fullmatch(text) and len(text) - 1 <= _DECIMAL_DIGITS_MAX:
        return Constant(Decimal(text))
    try:
        return Constant(float(text))
    except ValueError:
        return None


def _open(node: exp.Expr) -> Evaluated | None:
    """An expression that depends on parameters."""
    sql = evaluable(node)
    if sql is None:
        return None
    indexes = {index for part in node.walk() if (index := parameter_index(part)) is not None}
    return Evaluated(sql, sql_as_written(node), tuple(sorted(indexes)), computed(node, _quick))


def _quick(node: exp.Expr) -> Quick | None:
    """A part of an expression of parameters, as far as it is computed without DuckDB."""
    node = node.unnest()
    if parameter_index(node) is None and node.find(exp.Placeholder, exp.Parameter) is not None:
        return computed(node, _quick)
    operand = operand_of(node)
    assert not isinstance(operand, Evaluated)
    return operand


def _folded(node: exp.Expr) -> Constant | None:
    """The value of an expression without parameters."""
    sql = evaluable(node)
    found = () if sql is None else value_of(sql)
    return Constant(found[0]) if found else None
