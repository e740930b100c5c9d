"""Expressions of parameters: decides which of them become operands that a client can evaluate at binding."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, assert_never

from sqlglot import exp

from secateur.errors import NotSupportedError
from secateur.partitioning.pruning.expression import ParameterFunction
from secateur.partitioning.pruning.operand import Cast, Computed, Constant, Parameter, Quick
from secateur.partitioning.types.column_type import TypeKind, parse_type
from secateur.planner.text.dialect import to_sql

_OPERATORS: Final[dict[type[exp.Expr], ParameterFunction]] = {
    exp.Add: ParameterFunction.ADD,
    exp.Sub: ParameterFunction.SUBTRACT,
    exp.Mul: ParameterFunction.MULTIPLY,
    exp.Mod: ParameterFunction.MODULO,
    exp.DPipe: ParameterFunction.JOIN,
}
_ARITHMETIC: Final = frozenset(
    {
        ParameterFunction.ADD,
        ParameterFunction.SUBTRACT,
        ParameterFunction.MULTIPLY,
        ParameterFunction.MODULO,
        ParameterFunction.NEGATE,
        ParameterFunction.ABS,
    }
)
_FUNCTIONS: Final = {
    "abs": ParameterFunction.ABS,
    "coalesce": ParameterFunction.COALESCE,
    "concat": ParameterFunction.CONCAT,
    "date_trunc": ParameterFunction.DATE_TRUNC,
    "datetrunc": ParameterFunction.DATE_TRUNC,
    "ifnull": ParameterFunction.COALESCE,
    "lcase": ParameterFunction.LOWER,
    "left": ParameterFunction.LEFT,
    "len": ParameterFunction.LENGTH,
    "length": ParameterFunction.LENGTH,
    "lower": ParameterFunction.LOWER,
    "lpad": ParameterFunction.LPAD,
    "ltrim": ParameterFunction.LTRIM,
    "make_date": ParameterFunction.MAKE_DATE,
    "nullif": ParameterFunction.NULLIF,
    "replace": ParameterFunction.REPLACE,
    "reverse": ParameterFunction.REVERSE,
    "right": ParameterFunction.RIGHT,
    "rtrim": ParameterFunction.RTRIM,
    "substr": ParameterFunction.SUBSTRING,
    "substring": ParameterFunction.SUBSTRING,
    "trim": ParameterFunction.TRIM,
    "ucase": ParameterFunction.UPPER,
    "upper": ParameterFunction.UPPER,
}
_UNITS: Final = frozenset(
    {"microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"}
)
_INTERVAL_TEXT: Final = re.compile(r"(-?[0-9]{1,9}) ([a-z]+)")


def computed(node: exp.Expr, operand_of: Callable[[exp.Expr], Quick | None]) -> Computed | Cast | None:
    """Return the operand of an expression that contains a parameter.

    None if some part of it is not certain to be computed as DuckDB does.

    Args:
        node: The expression.
        operand_of: Reads the parts of it.
    """
    if (operator := _OPERATORS.get(type(node))) is not None:
        if isinstance(node, (exp.Add, exp.Sub)) and isinstance(node.expression.unnest(), exp.Interval):
            return _shifted(node, node.expression.unnest(), operand_of)
        return _call(operator, [node.this, node.expression], operand_of)
    match node:
        case exp.Neg():
            return _call(ParameterFunction.NEGATE, [node.this], operand_of)
        case exp.Cast() if not {key for key, value in node.args.items() if value} - {"this", "to", "safe"}:
            return _cast(node, operand_of)
        case exp.Substring():
            return _call(
                ParameterFunction.SUBSTRING,
                [part for part in (node.this, node.args.get("start"), node.args.get("length")) if part is not None],
                operand_of,
            )
        case exp.Trim() if set(node.args) == {"this"} or not any(
            value for key, value in node.args.items() if key != "this"
        ):
            return _call(ParameterFunction.TRIM, [node.this], operand_of)
        case exp.Anonymous() if (function := _FUNCTIONS.get(str(node.this).lower())) is not None:
            return _call(function, node.expressions, operand_of)
        case _:
            return None


def _call(
    function: ParameterFunction, parts: list[exp.Expr], operand_of: Callable[[exp.Expr], Quick | None]
) -> Computed | None:
    operands = [operand_of(part) for part in parts]
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands) or (function in _ARITHMETIC and any(map(_has_a_width_of_its_own, known))):
        return None
    return Computed(function, tuple(known))


def _has_a_width_of_its_own(operand: Quick) -> bool:
    """Whether arithmetic with an operand overflows at another width than that of integers of its size.

    That is so if it is cast to SMALLINT or an unsigned type, for example.
    """
    match operand:
        case Cast(_, wanted):
            return wanted.is_integer and wanted.kind not in (TypeKind.INTEGER, TypeKind.BIGINT)
        case Computed(_, operands):
            return any(map(_has_a_width_of_its_own, operands))
        case Constant() | Parameter():
            return False
        case _:
            assert_never(operand)


def _cast(node: exp.Cast, operand_of: Callable[[exp.Expr], Quick | None]) -> Cast | None:
    """A cast to a type of columns; TRY_CAST gives NULL only where the value is not known here either."""
    try:
        wanted = parse_type(to_sql(node.to))
    except NotSupportedError:
        return None
    inner = operand_of(node.this)
    return None if inner is None else Cast(inner, wanted)


def _shifted(
    node: exp.Add | exp.Sub, interval: exp.Interval, operand_of: Callable[[exp.Expr], Quick | None]
) -> Computed | None:
    """``value +- INTERVAL n unit``."""
    unit = interval.args.get("unit")
    amount: Quick | None
    if unit is None:
        match = (
            _INTERVAL_TEXT.fullmatch(interval.this.name.lower())
            if isinstance(interval.this, exp.Literal) and interval.this.is_string
            else None
        )
        if match is None:
            return None
        amount, name = Constant(int(match[1])), match[2]
    else:
        written, name = interval.this.unnest(), unit.name.lower()
        is_number = isinstance(written, exp.Literal) and re.fullmatch(r"-?[0-9]{1,9}", written.name)
        amount = Constant(int(written.name)) if is_number else operand_of(written)
    value = operand_of(node.this)
    name = name.removesuffix("s")
    if amount is None or value is None or name not in _UNITS:
        return None
    if isinstance(node, exp.Sub):
        amount = (
            Constant(-amount.value)
            if isinstance(amount, Constant) and type(amount.value) is int
            else Computed(ParameterFunction.NEGATE, (amount,))
        )
    return Computed(ParameterFunction.SHIFT, (value, amount, Constant(name)))
