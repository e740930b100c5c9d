"""The operands of comparisons that any client computes without DuckDB, found by the overloads that DuckDB has bound."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

from secateur.partitioning.pruning.expression import UNKNOWN, ParameterFunction, cast
from secateur.partitioning.pruning.operand import Cast, Computed, Constant, Parameter, Quick
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import nullif_of
from secateur.planner.tree.rewriting import cast_of
from secateur.planner.tree.types import DecimalInfo, is_exact, sql_type

_TEXT: Final = "VARCHAR"
_SIGNATURES: Final = {
    ParameterFunction.ADD: ["+ INTEGER INTEGER", "+ BIGINT BIGINT", "+ DATE INTEGER", "+ INTEGER DATE"],
    ParameterFunction.SUBTRACT: ["- INTEGER INTEGER", "- BIGINT BIGINT", "- DATE INTEGER", "- DATE DATE"],
    ParameterFunction.MULTIPLY: ["* INTEGER INTEGER", "* BIGINT BIGINT"],
    ParameterFunction.MODULO: ["% INTEGER INTEGER", "% BIGINT BIGINT"],
    ParameterFunction.NEGATE: ["- INTEGER", "- BIGINT"],
    ParameterFunction.ABS: ["abs INTEGER", "abs BIGINT"],
    ParameterFunction.DATE_TRUNC: [
        *("date_trunc VARCHAR DATE", "date_trunc VARCHAR TIMESTAMP"),
        *("datetrunc VARCHAR DATE", "datetrunc VARCHAR TIMESTAMP"),
    ],
    ParameterFunction.MAKE_DATE: ["make_date BIGINT BIGINT BIGINT"],
    ParameterFunction.JOIN: ["|| VARCHAR VARCHAR"],
    ParameterFunction.CONCAT: ["concat" + " VARCHAR" * count for count in range(1, 9)],
    ParameterFunction.LOWER: ["lower VARCHAR", "lcase VARCHAR"],
    ParameterFunction.UPPER: ["upper VARCHAR", "ucase VARCHAR"],
    ParameterFunction.TRIM: ["trim VARCHAR"],
    ParameterFunction.LTRIM: ["ltrim VARCHAR"],
    ParameterFunction.RTRIM: ["rtrim VARCHAR"],
    ParameterFunction.REVERSE: ["reverse VARCHAR"],
    ParameterFunction.LENGTH: ["length VARCHAR", "len VARCHAR"],
    ParameterFunction.SUBSTRING: [
        *("substring VARCHAR BIGINT", "substring VARCHAR BIGINT BIGINT"),
        *("substr VARCHAR BIGINT", "substr VARCHAR BIGINT BIGINT"),
    ],
    ParameterFunction.LEFT: ["left VARCHAR BIGINT"],
    ParameterFunction.RIGHT: ["right VARCHAR BIGINT"],
    ParameterFunction.LPAD: ["lpad VARCHAR INTEGER VARCHAR"],
    ParameterFunction.REPLACE: ["replace VARCHAR VARCHAR VARCHAR"],
}
"""The overloads of each function: a name, and the types of the arguments.

Arithmetic of other widths overflows elsewhere.
"""
_FUNCTIONS: Final = {signature: function for function, listed in _SIGNATURES.items() for signature in listed}
_UNITS: Final = {
    f"to_{unit}s": unit
    for unit in ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
}
_INTEGERS: Final = frozenset({"INTEGER", "BIGINT"})
_NUMBERS: Final = _INTEGERS | {"DOUBLE"}
INTERVAL_PARTS: Final = {"months": "month", "days": "day", "micros": "microsecond"}
"""The unit of each part of an interval, by its name in a bound plan."""
_EPOCH: Final = date(1970, 1, 1).toordinal()
_MICROS_MAX: Final = 50_000_000_000_000_000
"""Around 1970, in each direction: some moments that Python has not are further away."""
_DAYS: Final = range(1 - _EPOCH, date.max.toordinal() - _EPOCH + 1)


def raw_parameter(node: ex.AnyExpression) -> Parameter | None:
    """The parameter that an expression is, under a cast that comparisons with its values do not notice.

    A value has the class that the parameter has in the plan, or is NULL, but it may be a longer number. A cast to
    DECIMAL that the user has written rounds a fraction with more digits; DuckDB's own are made anew for each value.
    """
    match node:
        case ex.BoundParameter(identifier=identifier):
            return Parameter(int(identifier) - 1) if identifier.isdecimal() else None
        case ex.Call(children=(ex.BoundParameter() as inner,)) if (found := cast_of(node)) is not None and not found[1]:
            source, target = sql_type(inner.return_type), sql_type(node.return_type)
            is_own = node.place != inner.place
            return raw_parameter(inner) if source and target and _is_unnoticed(source, target, is_own=is_own) else None
        case _:
            return None


def _is_unnoticed(source: SqlType, target: SqlType, *, is_own: bool) -> bool:
    if source.is_integer and target.kind is TypeKind.DOUBLE:
        return True
    return is_exact(source, target) and not (is_own and source.kind is TypeKind.DECIMAL)


def quick_of(node: ex.AnyExpression) -> Quick | None:
    """The form of an expression that is computed without DuckDB.

    None if some part of it is not certain to be computed as DuckDB does.
    """
    parameter = raw_parameter(node)
    match node:
        case ex.BoundParameter():
            return parameter
        case ex.Call(children=(ex.BoundParameter(return_type=given),)) if parameter is not None and (
            given == node.return_type or {given.id, node.return_type.id} <= _INTEGERS
        ):
            return parameter  # a value has the same class before and after the cast
        case ex.BoundConstant(value=value):
            return _constant(value)
        case ex.Case():
            pair = nullif_of(node)
            return None if pair is None else _call(ParameterFunction.NULLIF, *pair)
        case ex.BoundOperation(type="OPERATOR_COALESCE"):
            return _call(ParameterFunction.COALESCE, *node.children)
        case ex.Call():
            found = cast_of(node)
            if found is not None:
                return _cast(found[0], sql_type(node.return_type))
            if node.name in ("+", "-") and _types(node)[1:] == ["INTERVAL"]:
                return _shifted(node)
            function = _FUNCTIONS.get(" ".join([node.name, *_types(node)]))
            return None if function is None else _call(function, *node.children)
        case _:
            return None


def _types(call: ex.Call) -> list[str]:
    return [child.return_type.id for child in call.children]


def _call(function: ParameterFunction, *parts: ex.AnyExpression) -> Computed | None:
    operands = [quick_of(part) for part in parts]
    known = [operand for operand in operands if operand is not None]
    return Computed(function, tuple(known)) if len(known) == len(operands) else None


def _cast(inner: ex.AnyExpression, wanted: SqlType | None) -> Quick | None:
    """A cast to a type of columns; TRY_CAST gives NULL only where the value is not known here either."""
    operand = quick_of(inner)
    if operand is None or wanted is None:
        return None
    value = cast(operand.value, wanted) if isinstance(operand, Constant) else UNKNOWN
    return Cast(operand, wanted) if value is UNKNOWN else Constant(value)


def _constant(value: ex.BoundValue) -> Constant | None:
    if value.is_null:
        return Constant(None)
    type_, content = value.type, value.value
    if type_ is None:
        return None
    match type_.id, content:
        case "BOOLEAN", bool():
            return Constant(content)
        case "VARCHAR", str() if sql_type(type_) is not None:
            return Constant(content)
        case "DOUBLE", float():
            return Constant(content)
        case "DATE", int() if content in _DAYS:
            return Constant(date.fromordinal(_EPOCH + content))
        case "TIMESTAMP", int() if abs(content) < _MICROS_MAX:
            return Constant(datetime(1970, 1, 1) + timedelta(microseconds=content))
        case "DECIMAL", int() if isinstance(type_.type_info, DecimalInfo):
            digits = tuple(map(int, str(abs(content))))
            return Constant(Decimal((content < 0, digits, -type_.type_info.scale)))
        case (
            ("TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "UTINYINT" | "USMALLINT" | "UINTEGER" | "UBIGINT"),
            int(),
        ):
            return Constant(content)
        case _:
            return None


def _shifted(call: ex.Call) -> Computed | None:
    """``value +- INTERVAL n unit`` of a day or an instant without a zone."""
    moment, interval = call.children
    value, found = quick_of(moment), _amount(interval)
    if value is None or found is None or moment.return_type.id not in ("DATE", "TIMESTAMP"):
        return None
    amount, unit = found
    if call.name == "-":
        amount = (
            Constant(-amount.value)
            if isinstance(amount, Constant) and type(amount.value) is int
            else Computed(ParameterFunction.NEGATE, (amount,))
        )
    return Computed(ParameterFunction.SHIFT, (value, amount, Constant(unit)))


def _amount(interval: ex.AnyExpression) -> tuple[Quick, str] | None:
    """The number of units of an interval, and the unit."""
    match interval:
        case ex.BoundConstant(value=ex.BoundValue(is_null=False, value=dict() as parts)) if len(parts) == 1:
            ((part, amount),) = parts.items()
            return (Constant(amount), INTERVAL_PARTS[part]) if part in INTERVAL_PARTS and type(amount) is int else None
        case ex.Call(children=(amount,)) if interval.name in _UNITS:
            operand = quick_of(_whole(amount))
            return None if operand is None else (operand, _UNITS[interval.name])
        case _:
            return None


def _whole(amount: ex.AnyExpression) -> ex.AnyExpression:
    """The integer that DuckDB takes to a DOUBLE and back: ``INTERVAL (n) DAY`` is of a number without a fraction."""
    node = amount
    while isinstance(node, ex.Call) and node.name in ("__cast", "trunc") and node.return_type.id in _NUMBERS:
        (node,) = node.children
    return node if node.return_type.id in _INTEGERS else amount
