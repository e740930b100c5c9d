"""Constants of a bound plan as values of columns, where their meaning is certain; what is not is declined.

DuckDB converts a literal to the type of the column it is compared with, or the column to the type of the literal, and
says which in its plan. Here a conversion is made only where every way of making it gives the same value: an integer in
the range of a type, a decimal that its scale holds, a date or timestamp written in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from secateur.engine.kernels.arrow.exact_values import InexactError, exact_scalar
from secateur.engine.kernels.arrow.fragment import ConstantExpression
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import from_unscaled
from secateur.partitioning.types.literals import double_of, value_of_text
from secateur.partitioning.types.result_type import column_type_of
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.types import DecimalInfo, LogicalType


def sql_type(type_: LogicalType) -> SqlType:
    """The type of columns that a type is.

    Raises:
        DeclineError: No column of a table has it.
    """
    found = column_type_of(type_.sql)
    if found is None:
        raise DeclineError(f"a value of {type_.sql}")
    return found


def constant_of(node: ex.BoundConstant) -> ConstantExpression:
    """A literal.

    Raises:
        DeclineError: It is NULL, or of a type whose literals are not read.
    """
    held, type_ = node.value, node.return_type
    if held.is_null:
        raise DeclineError("NULL as a value")
    value: Any = held.value
    if isinstance(value, dict) and "children" not in value:
        value = (value.get("upper", 0) << 64) + value.get("lower", 0)
    match type_:
        case LogicalType(type_info=DecimalInfo(scale=scale)):
            value = from_unscaled(value, scale)
        case LogicalType(id="VARCHAR" | "DOUBLE" | "BOOLEAN", type_info=None):
            pass
        case _ if type_.is_integer:
            pass
        case _:
            raise DeclineError(f"a constant of {type_.sql}")
    return _checked(value, sql_type(type_))


def cast_constant(constant: ConstantExpression, wanted: SqlType) -> ConstantExpression:
    """A constant in another type.

    Raises:
        DeclineError: Only DuckDB knows its value there, or whether it has one.
    """
    value, found = constant.value, None
    if constant.type == wanted:
        return constant
    match value:
        case str():
            found = value_of_text(value, wanted)
        case bool() | float():
            pass
        case int() | Decimal() if wanted.is_float:
            found = double_of(value, wanted)
        case int() if wanted.is_integer:
            found = value
        case int() | Decimal() if wanted.kind is TypeKind.DECIMAL:
            found = Decimal(value)
        case _:
            pass
    if found is None:
        raise DeclineError(f"{value} as {wanted}")
    return _checked(found, wanted)


def _checked(value: Any, type_: SqlType) -> ConstantExpression:
    try:
        exact_scalar(value, type_)
    except InexactError as error:
        raise DeclineError(str(error)) from None
    return ConstantExpression(value, type_)


@dataclass(frozen=True, slots=True)
class KernelDeclined:
    """The arrow kernel cannot compute something; ``reason`` explains why."""

    reason: str


class DeclineError(Exception):
    """Something is left to DuckDB, which alone computes it exactly.

    Whatever of this room makes an expression raises it; it never leaves the room.
    """
