"""Expressions of the arrow kernel over one row of plain values, compiled once to closures.

An Arrow function costs some microseconds whatever the number of rows, and a change of one row by its key has a handful
of them. Over Python values the same expression costs a tenth. Only types and functions are compiled for which Python's
operators are those of the dialect; values that are not exactly of their type are declined, as the arrow kernel does.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

from secateur.engine.kernels.arrow.exact_values import belongs
from secateur.engine.kernels.arrow.fragment import (
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    Expression,
    ParameterExpression,
    ParameterListExpression,
    ScalarFunction,
    conjuncts,
)
from secateur.partitioning.types.column_type import WORD_INTEGERS, SqlType, TypeKind
from secateur.partitioning.types.decimals import DOUBLE_INTEGER_MAX, added, negated, rescaled

_Row: TypeAlias = tuple[Any, ...]
RowEvaluator: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], Any]
"""The value of an expression, None for NULL, for the values of a row and of the parameters."""
RowFilter: TypeAlias = Callable[[Sequence[_Row], Sequence[Any]], Sequence[_Row]]
"""The rows for which an expression is true, for some rows and the values of the parameters."""
TupleEvaluator: TypeAlias = Callable[[Sequence[_Row], Sequence[Any]], list[_Row]]
"""The values of some expressions for each of some rows, for these and the values of the parameters."""

COMPUTED_CLASSES: Final[dict[TypeKind, type]] = {
    **dict.fromkeys(WORD_INTEGERS, int),
    TypeKind.BOOLEAN: bool,
    TypeKind.VARCHAR: str,
    TypeKind.DATE: dt.date,
    TypeKind.TIMESTAMP: dt.datetime,
}
"""Kinds that are computed with, and the class of their values, which are equal exactly where the dialect's are. Texts
are ordered by code points, which is the order of their UTF-8 bytes. Doubles are compared in an order of their own.
"""
_GIVEN: Final[dict[TypeKind, type]] = {**COMPUTED_CLASSES, TypeKind.DOUBLE: float, TypeKind.BLOB: bytes}
"""The kinds of parameters that are assigned as they are."""
_COMPARISONS: Final[dict[ScalarFunction, Callable[[Any, Any], bool]]] = {
    ScalarFunction.EQUAL: operator.eq,
    ScalarFunction.NOT_EQUAL: operator.ne,
    ScalarFunction.LESS: operator.lt,
    ScalarFunction.LESS_EQUAL: operator.le,
    ScalarFunction.GREATER: operator.gt,
    ScalarFunction.GREATER_EQUAL: operator.ge,
}
_DOUBLE_COMPARISONS: Final[dict[ScalarFunction, Callable[[float, float], bool]]] = {
    ScalarFunction.EQUAL: lambda one, other: one == other or (one != one and other != other),
    ScalarFunction.NOT_EQUAL: lambda one, other: one != other and (one == one or other == other),
    ScalarFunction.LESS: lambda one, other: one < other or (other != other and one == one),
    ScalarFunction.LESS_EQUAL: lambda one, other: one <= other or other != other,
    ScalarFunction.GREATER: lambda one, other: one > other or (one != one and other == other),
    ScalarFunction.GREATER_EQUAL: lambda one, other: one >= other or one != one,
}
"""In the dialect, NaN equals itself and is greater than all else, and the two zeros are equal."""
_ARITHMETIC: Final[dict[ScalarFunction, Callable[[Any, Any], Any]]] = {
    ScalarFunction.ADD: operator.add,
    ScalarFunction.SUBTRACT: operator.sub,
    ScalarFunction.MULTIPLY: operator.mul,
}
_DECIMAL_ARITHMETIC: Final[dict[ScalarFunction, Callable[[Decimal, Decimal], Decimal]]] = {
    ScalarFunction.ADD: added,
    ScalarFunction.SUBTRACT: lambda one, other: added(one, negated(other)),
}


class DeclinedError(Exception):
    """An expression or a value that only a kernel can compute; never reaches users."""


def compile_over_row(expression: Expression, positions: Mapping[str, int]) -> RowEvaluator:
    """Turn an expression over rows, in which each column has a position, into a closure.

    Returns:
        The closure. It raises DeclinedError where a kernel has to answer: for a parameter that is not exactly of its
        type, or NULL, and for an integer out of range.

    Raises:
        DeclinedError: The expression has a type or function that is not computed here.
    """
    match expression:
        case ColumnExpression(name):
            at = positions[name]
            return lambda row, _: row[at]
        case ConstantExpression(value):
            return lambda _row, _params: value
        case ParameterExpression(number, type_):
            return _compile_parameter(number, type_)
        case CallExpression():
            return _compile_call(expression, positions)
        case _:
            raise DeclinedError(f"{expression} is not computed over one row")


def compile_row_filter(condition: Expression, positions: Mapping[str, int]) -> RowFilter:
    """As :func:`compile_over_row`, for a condition and many rows.

    Columns that are compared with parameters or constants take no call for each row.
    """
    evaluate = compile_over_row(condition, positions)  # declines what is not computed here
    compared = []
    for conjunct in conjuncts(condition):
        comparison = _column_comparison(conjunct, positions)
        if comparison is None:
            return lambda rows, params: [row for row in rows if evaluate(row, params) is True]
        compared.append(comparison)

    def passing(rows: Sequence[_Row], params: Sequence[Any]) -> Sequence[_Row]:
        if not rows:
            return rows
        # All parameters are read first: one that is declined may be an error, whatever the others say.
        for at, compare, value in [(at, compare, operand((), params)) for at, compare, operand in compared]:
            if value is None:
                return ()
            rows = [row for row in rows if row[at] is not None and compare(row[at], value)]
        return rows

    return passing


def compile_row_tuples(expressions: Sequence[Expression], positions: Mapping[str, int]) -> TupleEvaluator:
    """As :func:`compile_over_row`, for several expressions and many rows: columns are taken without a call for each."""
    columns = [positions[each.name] for each in expressions if isinstance(each, ColumnExpression)]
    if not columns or len(columns) < len(expressions):
        evaluators = [compile_over_row(each, positions) for each in expressions]
        return lambda rows, params: [tuple([evaluate(row, params) for evaluate in evaluators]) for row in rows]
    if len(columns) == 1:
        (at,) = columns
        return lambda rows, _: [(row[at],) for row in rows]
    taken = operator.itemgetter(*columns)
    return lambda rows, _: list(map(taken, rows))


def exact_value(value: Any, type_: SqlType) -> Any:
    """A value that is exactly of a type, as it is.

    Raises:
        DeclinedError: It is NULL, or of another type.
    """
    if type(value) is not _GIVEN.get(type_.kind) or not _is_canonical(value):
        raise DeclinedError(f"{value!r} is not a {type_} as it is")
    if type(value) is int and not type_.has_integer(value):
        raise DeclinedError(f"{value} is no {type_}")
    return value


def _is_canonical(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() or _is_utf8(value)
    if isinstance(value, dt.datetime):
        return value.tzinfo is None
    return bool(value == value)  # not so for NaN


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _column_comparison(
    condition: Expression, positions: Mapping[str, int]
) -> tuple[int, Callable[[Any, Any], bool], RowEvaluator] | None:
    """The place of a column, how it is compared, and with what; None for any other condition."""
    match condition:
        case CallExpression(
            arguments=(ColumnExpression(name), (ParameterExpression() | ConstantExpression()) as operand),
        ) if (compare := _comparison(condition)) is not None:
            return positions[name], compare, compile_over_row(operand, positions)
        case _:
            return None


def _comparison(call: CallExpression) -> Callable[[Any, Any], bool] | None:
    """How a call compares two values that are not NULL; None for one that does something else."""
    if len(call.arguments) != 2:
        return None
    is_double = all(part.type.kind is TypeKind.DOUBLE for part in call.arguments)
    return (_DOUBLE_COMPARISONS if is_double else _COMPARISONS).get(call.function)


def _compile_parameter(number: int, type_: SqlType) -> RowEvaluator:
    if type_.kind is TypeKind.DECIMAL:
        return lambda _row, params: _as_decimal(params[number - 1], type_)
    if type_.kind not in _GIVEN:
        raise DeclinedError(f"no parameter of type {type_} is read here")

    def parameter(_row: Sequence[Any], params: Sequence[Any]) -> Any:
        return exact_value(params[number - 1], type_)

    def double(_row: Sequence[Any], params: Sequence[Any]) -> Any:
        value = params[number - 1]
        if type(value) is int and -DOUBLE_INTEGER_MAX <= value <= DOUBLE_INTEGER_MAX:
            return float(value)
        return exact_value(value, type_)

    return double if type_.kind is TypeKind.DOUBLE else parameter


def _as_decimal(value: Any, type_: SqlType) -> Decimal:
    """A number as a value of a DECIMAL that has it exactly."""
    if not belongs(value, type_):
        raise DeclinedError(f"{value!r} is no {type_}")  # DuckDB rounds it, or says so in the user's words
    return rescaled(Decimal(value), type_.scale)


def _compile_call(call: CallExpression, positions: Mapping[str, int]) -> RowEvaluator:
    function, compare = call.function, _comparison(call)
    if function is ScalarFunction.IN:
        _check_computed(call)
        return _compile_in(call, positions)
    arguments = [compile_over_row(argument, positions) for argument in call.arguments]
    is_of_doubles = all(part.type.kind is TypeKind.DOUBLE for part in call.arguments)
    if is_of_doubles and call.type.kind is TypeKind.DOUBLE and function in _ARITHMETIC:
        return _folded_arithmetic(_ARITHMETIC[function], arguments, _finite)
    if function in _DECIMAL_ARITHMETIC and call.type.kind is TypeKind.DECIMAL:
        return _folded_arithmetic(_DECIMAL_ARITHMETIC[function], arguments, lambda inner: _fitting(inner, call.type))
    if compare is None or not is_of_doubles:
        _check_computed(call)
    if compare is not None:
        return _null_or(compare, *arguments)
    if function in _ARITHMETIC and call.type.kind in WORD_INTEGERS:
        return _folded_arithmetic(_ARITHMETIC[function], arguments, lambda inner: _checked(inner, call.type))
    match function, arguments:
        case ScalarFunction.AND, _:
            return lambda row, params: _all(argument(row, params) for argument in arguments)
        case ScalarFunction.OR, _:
            return lambda row, params: _not(_all(_not(argument(row, params)) for argument in arguments))
        case ScalarFunction.NOT, [inner]:
            return lambda row, params: _not(inner(row, params))
        case ScalarFunction.IS_NULL, [inner]:
            return lambda row, params: inner(row, params) is None
        case ScalarFunction.CAST, [inner] if {call.type.kind, call.arguments[0].type.kind} <= WORD_INTEGERS:
            return _checked(inner, call.type)
        case ScalarFunction.NEGATE, [inner] if call.type.kind in WORD_INTEGERS:
            return _checked(_null_or(lambda value, _: -value, inner, lambda _row, _params: 0), call.type)
        case ScalarFunction.COALESCE, [first, second]:
            return lambda row, params: second(row, params) if (value := first(row, params)) is None else value
        case ScalarFunction.CASE, _:
            return _compile_case(arguments)
        case ScalarFunction.UPPER, [inner]:
            return _of_ascii(str.upper, inner)
        case ScalarFunction.LOWER, [inner]:
            return _of_ascii(str.lower, inner)
        case ScalarFunction.CONCATENATE, [first, second]:
            return _null_or(operator.add, first, second)
        case _:
            raise DeclinedError(f"{function.value} is not computed over one row")


def _check_computed(call: CallExpression) -> None:
    for operand in (call, *call.arguments):
        if operand.type.kind not in COMPUTED_CLASSES:
            raise DeclinedError(f"{call.function.value} of {operand.type} is not computed over one row")


def _null_or(function: Callable[[Any, Any], Any], left: RowEvaluator, right: RowEvaluator) -> RowEvaluator:
    def evaluate(row: Sequence[Any], params: Sequence[Any]) -> Any:
        first, second = left(row, params), right(row, params)
        return None if first is None or second is None else function(first, second)

    return evaluate


def _of_ascii(function: Callable[[str], str], inner: RowEvaluator) -> RowEvaluator:
    def evaluate(row: Sequence[Any], params: Sequence[Any]) -> Any:
        text = inner(row, params)
        if text is not None and not text.isascii():
            raise DeclinedError(f"{text!r} in another case")
        return None if text is None else function(text)

    return evaluate


def _folded_arithmetic(
    function: Callable[[Any, Any], Any],
    arguments: Sequence[RowEvaluator],
    checked: Callable[[RowEvaluator], RowEvaluator],
) -> RowEvaluator:
    first, *others = arguments
    for other in others:
        first = checked(_null_or(function, first, other))
    return first


def _finite(inner: RowEvaluator) -> RowEvaluator:
    def evaluate(row: Sequence[Any], params: Sequence[Any]) -> Any:
        value = inner(row, params)
        if value is not None and not math.isfinite(value):
            raise DeclinedError(f"{value} is no finite number")  # DuckDB says what becomes of it
        return value

    return evaluate


def _fitting(inner: RowEvaluator, type_: SqlType) -> RowEvaluator:
    def evaluate(row: Sequence[Any], params: Sequence[Any]) -> Any:
        value = inner(row, params)
        return None if value is None else _as_decimal(value, type_)

    return evaluate


def _checked(inner: RowEvaluator, type_: SqlType) -> RowEvaluator:
    low, high = type_.integer_range

    def evaluate(row: Sequence[Any], params: Sequence[Any]) -> Any:
        value = inner(row, params)
        if value is not None and not low <= value <= high:
            raise DeclinedError(f"{value} is no {type_}")  # DuckDB says so in the user's words
        return value

    return evaluate


def _compile_case(arguments: list[RowEvaluator]) -> RowEvaluator:
    default = arguments[-1] if len(arguments) % 2 else None
    branches = list(zip(arguments[:-1:2] if default else arguments[::2], arguments[1::2], strict=True))

    def evaluate(row: Sequence[Any], params: Sequence[Any]) -> Any:
        for condition, value in branches:
            if condition(row, params) is True:
                return value(row, params)
        return None if default is None else default(row, params)

    return evaluate


def _compile_in(call: CallExpression, positions: Mapping[str, int]) -> RowEvaluator:
    needle, *items = call.arguments
    if any(isinstance(item, ParameterListExpression) for item in items):
        raise DeclinedError("a list of parameters is not searched here")
    wanted, listed = compile_over_row(needle, positions), [compile_over_row(item, positions) for item in items]

    def evaluate(row: Sequence[Any], params: Sequence[Any]) -> Any:
        values, value = [item(row, params) for item in listed], wanted(row, params)
        return None if value is None else value in values

    return evaluate


def _all(values: Any) -> bool | None:
    """AND with three truth values. All are evaluated: one that is declined may be an error."""
    is_unknown, is_false = False, False
    for value in values:
        is_unknown |= value is None
        is_false |= value is False
    return False if is_false else None if is_unknown else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value
