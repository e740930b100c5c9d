"""Literals and parameters that the arrow kernel may compare with a column.

Their meaning for the column's type must be certain.

DuckDB converts a literal to the type of the column it is compared with, or the column to the type of the literal, by
rules of its own. Here a literal is accepted only where every reading gives the same value: an integer in the column's
range, a decimal that the column's scale holds, a date or timestamp written in full.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import numpy as np
from sqlglot import exp

from secateur.engine.kernels.arrow.exact_values import InexactError, exact_scalar
from secateur.engine.kernels.arrow.expression import ConstantExpression, ParameterExpression
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import DOUBLE_INTEGER_MAX, negated
from secateur.partitioning.types.result_type import column_type_of

_INTEGER: Final = re.compile(r"\d+")
_FIXED_POINT: Final = re.compile(r"\d+\.\d*|\.\d+")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME: Final = re.compile(r"\d{2}:\d{2}:\d{2}(\.\d{1,6})?")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?)?")
_TIMESTAMPTZ: Final = re.compile(_TIMESTAMP.pattern + r"(Z|[+-]\d{2}:\d{2}|[+-]00)?")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SCALE_IN_DOUBLE_MAX: Final = 22
"""DuckDB divides the digits of a decimal literal by a power of ten. Up to DOUBLE_INTEGER_MAX and this power both are
exact doubles, and the quotient is the literal's nearest double.
"""

_CASTS: Final = {
    exp.DataType.Type.DATE: TypeKind.DATE,
    exp.DataType.Type.TIME: TypeKind.TIME,
    exp.DataType.Type.TIMESTAMP: TypeKind.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: TypeKind.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: TypeKind.TIMESTAMPTZ,
    exp.DataType.Type.UUID: TypeKind.UUID,
}


def cast_type(node: exp.Cast) -> SqlType | None:
    """The type that a cast names, or None when no column has it."""
    text = node.to.sql(dialect="duckdb")
    return column_type_of("HUGEINT" if text == "INT128" else text)  # sqlglot's name for it


def is_constant(node: exp.Expr) -> bool:
    """Whether a node is a literal, with or without sign and cast, or a parameter."""
    while isinstance(node, (exp.Paren, exp.Neg, exp.Cast)):
        node = node.this
    return isinstance(node, (exp.Literal, exp.Boolean, exp.Null, exp.Placeholder, exp.Parameter))


def constant_operand(node: exp.Expr, type_: SqlType) -> ConstantExpression | ParameterExpression | None:
    """Return the operand that :func:`is_constant` found, in the type of the compared column.

    None when only DuckDB knows its meaning there.
    """
    if isinstance(node, exp.Paren):
        return constant_operand(node.this, type_)
    if isinstance(node, (exp.Placeholder, exp.Parameter)):
        number = str(node.name)
        return ParameterExpression(int(number), type_) if number.isdecimal() else None
    if _is_cast_to(node, type_):
        return constant_operand(node.this, type_)
    try:
        value = _value(node, type_)
        if value is None:
            return None
        exact_scalar(value, type_)
    except (ValueError, InexactError):  # not a date, or not in the type's range
        return None
    return ConstantExpression(value, type_)


def _is_cast_to(node: exp.Expr, type_: SqlType) -> bool:
    """Whether a node is ``CAST(... AS type_)``, which leaves every value that is one of the type exactly as it is.

    A number that is cast to FLOAT is rounded, and a HUGEINT lies in memory as a decimal.
    """
    return (
        type(node) is exp.Cast
        and type_.kind not in (TypeKind.FLOAT, TypeKind.HUGEINT)
        and not any(value for key, value in node.args.items() if key not in ("this", "to"))
        and cast_type(node) == type_
    )


def _value(node: exp.Expr, type_: SqlType) -> Any:
    negative = isinstance(node, exp.Neg)
    literal = node.this if negative else node
    if isinstance(literal, exp.Literal) and not literal.is_string:
        value = _number(str(literal.this), type_)
        if not negative or value is None or (value == 0 and "e" not in str(literal.this).lower()):
            return value  # an INTEGER or DECIMAL has no -0, and only a literal with an exponent is a DOUBLE
        return negated(value)
    if negative:
        return None
    if isinstance(node, exp.Literal):
        return value_of_text(str(node.this), type_)
    if isinstance(node, exp.Boolean):
        return bool(node.this) if type_.kind is TypeKind.BOOLEAN else None
    if (
        type(node) is exp.Cast
        and isinstance(node.this, exp.Literal)
        and node.this.is_string
        and _CASTS.get(node.to.this) is type_.kind
    ):
        return value_of_text(str(node.this.this), type_)
    return None


def _number(text: str, type_: SqlType) -> Any:
    if type_.is_integer:
        return int(text) if _INTEGER.fullmatch(text) else None
    if type_.kind is TypeKind.DECIMAL:
        return Decimal(text) if _INTEGER.fullmatch(text) or _FIXED_POINT.fullmatch(text) else None
    if type_.is_float:
        return double_of(text, type_)
    return None


def double_of(text: str, type_: SqlType) -> float | None:
    """Return the number that a literal of a float type is, or None if DuckDB may read it as another one."""
    value = float(text)
    if _INTEGER.fullmatch(text) or _FIXED_POINT.fullmatch(text):
        whole, _, fraction = text.partition(".")
        if int(whole + fraction or "0") > DOUBLE_INTEGER_MAX or len(fraction) > _SCALE_IN_DOUBLE_MAX:
            return None
        # a decimal literal is compared with a FLOAT as a FLOAT, a parameter as a DOUBLE: only a number exact in both is
        # the same either way
        if type_.kind is TypeKind.FLOAT and float(np.float32(value)) != value:
            return None
    return value


def value_of_text(text: str, type_: SqlType) -> Any:
    """Return the value of a text that is compared with a type, or None if only DuckDB knows how it is read."""
    match type_.kind:
        case TypeKind.VARCHAR:
            return text
        case TypeKind.DATE if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        case TypeKind.TIME if _TIME.fullmatch(text):
            return time.fromisoformat(text)
        case TypeKind.TIMESTAMP if _TIMESTAMP.fullmatch(text):
            return datetime.fromisoformat(text)
        case TypeKind.TIMESTAMPTZ if _TIMESTAMPTZ.fullmatch(text):
            moment = datetime.fromisoformat(text)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        case TypeKind.UUID if _UUID.fullmatch(text):
            return UUID(text)
        case _:
            return None
