"""Operands that do not depend on rows: literals, parameters, and expressions of these.

DuckDB evaluates expressions of literals while the statement is planned.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from sqlglot import exp

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.engine.kernels.fragment import Fragment
from secateur.errors import Error
from secateur.partitioning.pruning.operand import Constant, Operand, Parameter
from secateur.partitioning.types.decimals import negated
from secateur.planner.binding.evaluation import evaluate, is_bounded, is_small
from secateur.planner.predicates.computed import computed
from secateur.planner.text.dialect import to_sql
from secateur.planner.text.parser_cross_check import read_statement

__all__ = ["operand_of", "parameter_index"]

_INTEGER: Final = re.compile(r"[0-9]{1,38}")
_DECIMAL: Final = re.compile(r"[0-9]*\.[0-9]*")
_DECIMAL_DIGITS_MAX: Final = 38
# Types whose values have one Python class each, with which ``partitioning.pruning.comparison`` compares as DuckDB does
# with the type. FLOAT is not one: it compares in single precision.
_COMPARABLE: Final = re.compile(
    r"BOOLEAN|U?(?:TINY|SMALL|BIG)?INT(?:EGER)?|HUGEINT|DECIMAL\(.*\)|DOUBLE|VARCHAR|BLOB|DATE|TIMESTAMP(?: WITH TIME"
    r" ZONE)?|UUID"
)


def operand_of(node: exp.Expr) -> Operand | None:
    """Return the value of an expression that does not depend on rows.

    None when it depends on rows, or may differ between evaluations.

    Cost: nothing for literals and parameters; an expression of literals is evaluated by DuckDB, about a millisecond.
    One that is not evaluated within the bounds of :mod:`secateur.planner.binding.evaluation` is None.
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
            return computed(node, operand_of)
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


def _folded(node: exp.Expr) -> Constant | None:
    """The value of an expression without columns, parameters and subqueries, all of whose functions are pure.

    A constant with a collation is none: it is not a value alone, but changes how the column beside it compares.
    """
    if any(
        isinstance(
            part,
            (exp.Column, exp.Query, exp.Placeholder, exp.Parameter, exp.AggFunc, exp.Star, exp.Window, exp.Collate),
        )
        for part in node.walk()
    ):
        return None
    sql = f"SELECT {to_sql(node)} AS value"
    try:
        reading = read_statement(sql)
        if reading is None or not reading.is_repeatable or reading.aggregates():
            return None
        if not is_bounded(reading):
            return None
        columns = default_kernel().describe(sql, {})
        ((_, type_text),) = columns
        if not _COMPARABLE.fullmatch(type_text):
            return None
        found = evaluate(Fragment.over(sql, {}, columns), {}, ends_soon=is_small(reading))
        return None if found is None else Constant(_python_value(found.column(0)[0].as_py(), type_text))
    except (Error, ValueError, OverflowError):
        # A date that Python has no object for, or an error: the statement itself will report it in the user's words, or
        # never evaluate the expression.
        return None


def _python_value(value: Any, type_text: str) -> Any:
    return int(value) if "HUGEINT" in type_text and value is not None else value
