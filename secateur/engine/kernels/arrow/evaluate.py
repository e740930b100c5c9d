"""Expressions of the arrow kernel, compiled once to closures over Arrow arrays.

Two things differ between Arrow's functions and SQL as DuckDB has it, and are dealt with here: NaN is a value, equal to itself and greater than every other
number; and a NULL in or against an IN list is neither in nor out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from secateur.engine.kernels.arrow.doubles import to_double
from secateur.engine.kernels.arrow.exact_values import InexactError, compute_type, exact_array, exact_scalar
from secateur.engine.kernels.arrow.expression import Call, Column, Constant, Expression, Function, Parameter, ParameterList
from secateur.partitioning.types.column_type import TypeKind

__all__ = ["Evaluator", "Scope", "compile_expression"]

#: Arrays, or scalars for constants and parameters. An Array where the relation has one chunk, else a ChunkedArray.
Datum = Any


class Scope:
    """What an expression reads in one call: the columns of its stage, and the parameters of the call."""

    __slots__ = ("columns", "params")

    def __init__(self, columns: Mapping[str, Datum], params: Sequence[Any]) -> None:
        self.columns = columns
        self.params = params


Evaluator = Callable[[Scope], Datum]

#: Function objects rather than pyarrow's wrappers: half the cost of a call on a hundred rows.
_COMPUTE: Final = {
    Function.EQUAL: pc.get_function("equal"),
    Function.NOT_EQUAL: pc.get_function("not_equal"),
    Function.LESS: pc.get_function("less"),
    Function.LESS_EQUAL: pc.get_function("less_equal"),
    Function.GREATER: pc.get_function("greater"),
    Function.GREATER_EQUAL: pc.get_function("greater_equal"),
    Function.AND: pc.get_function("and_kleene"),
    Function.OR: pc.get_function("or_kleene"),
    Function.NOT: pc.get_function("invert"),
    Function.ADD: pc.get_function("add_checked"),
    Function.SUBTRACT: pc.get_function("subtract_checked"),
    Function.MULTIPLY: pc.get_function("multiply_checked"),
    Function.DIVIDE: pc.get_function("divide"),
    Function.COALESCE: pc.get_function("coalesce"),
    Function.NEGATE: pc.get_function("negate_checked"),
}
_MATCHES: Final = {
    Function.STARTS_WITH: pc.get_function("starts_with"),
    Function.ENDS_WITH: pc.get_function("ends_with"),
    Function.CONTAINS: pc.get_function("match_substring"),
}
_IS_NULL: Final = pc.get_function("is_null")
_IS_VALID: Final = pc.get_function("is_valid")
_IS_IN: Final = pc.get_function("is_in")
_IF_ELSE: Final = pc.get_function("if_else")
_CAST: Final = pc.get_function("cast")
_NULL_BOOLEAN: Final = pa.scalar(None, pa.bool_())
_NAN_OK_FLIP: Final = {Function.GREATER: Function.LESS_EQUAL, Function.GREATER_EQUAL: Function.LESS}


def compile_expression(expression: Expression) -> Evaluator:
    """Turn an expression into a closure that evaluates it in a :class:`Scope`.

    The closure raises InexactError or pyarrow.ArrowInvalid (an overflow) where DuckDB has to answer.
    """
    match expression:
        case Column(name):
            return lambda scope: scope.columns[name]
        case Constant(value, type_):
            scalar = exact_scalar(value, type_)
            return lambda _scope: scalar
        case Parameter(number, type_):
            return lambda scope: exact_scalar(_parameter(scope, number), type_)
        case ParameterList(number, type_):
            return lambda scope: exact_array(_parameter(scope, number), type_)
        case Call():
            return _compile_call(expression)
        case _:
            assert_never(expression)


def _parameter(scope: Scope, number: int) -> Any:
    if number > len(scope.params):
        raise InexactError(f"no parameter ${number}: DuckDB says so in the user's words")
    return scope.params[number - 1]


def _compile_call(call: Call) -> Evaluator:
    match call.function:
        case Function.IS_NULL:
            return _unary(_IS_NULL, call)
        case Function.NOT | Function.NEGATE:
            return _unary(_COMPUTE[call.function], call)
        case Function.CAST:
            return _compile_cast(call)
        case Function.IN:
            return _compile_in(call)
        case Function.STARTS_WITH | Function.ENDS_WITH | Function.CONTAINS:
            return _compile_match(call)
        case Function.GREATER | Function.GREATER_EQUAL if call.arguments[0].type.is_float:
            # NaN > 1 is true in SQL: "not <=" says so, and keeps NULL. The constant on the right is never NaN.
            below = _binary(_COMPUTE[_NAN_OK_FLIP[call.function]], call.arguments[0], call.arguments[1])
            invert = _COMPUTE[Function.NOT]
            return lambda scope: invert.call([below(scope)])
        case _:
            function = _COMPUTE[call.function]
            evaluator = _binary(function, call.arguments[0], call.arguments[1])
            for argument in call.arguments[2:]:
                evaluator = _joined(function, evaluator, compile_expression(argument))
            return evaluator


def _unary(function: pc.Function, call: Call) -> Evaluator:
    inner = compile_expression(call.arguments[0])
    return lambda scope: function.call([inner(scope)])


def _binary(function: pc.Function, left: Expression, right: Expression) -> Evaluator:
    return _joined(function, compile_expression(left), compile_expression(right))


def _joined(function: pc.Function, left: Evaluator, right: Evaluator) -> Evaluator:
    return lambda scope: function.call([left(scope), right(scope)])


def _compile_match(call: Call) -> Evaluator:
    function = _MATCHES[call.function]
    inner, pattern = compile_expression(call.arguments[0]), call.arguments[1]
    assert isinstance(pattern, Constant)
    options = pc.MatchSubstringOptions(pattern.value)
    return lambda scope: function.call([inner(scope)], options)


def _compile_in(call: Call) -> Evaluator:
    needle, *items = map(compile_expression, call.arguments)
    type_ = compute_type(call.arguments[0].type)

    def options(scope: Scope) -> pc.SetLookupOptions:
        if isinstance(call.arguments[1], ParameterList):
            return pc.SetLookupOptions(items[0](scope), skip_nulls=True)
        return pc.SetLookupOptions(pa.array([item(scope).as_py() for item in items], type_), skip_nulls=True)

    fixed = options(Scope({}, ())) if all(isinstance(item, Constant) for item in call.arguments[1:]) else None

    def evaluate(scope: Scope) -> Datum:
        values = needle(scope)
        found = _IS_IN.call([values], fixed or options(scope))
        return found if values.null_count == 0 else _IF_ELSE.call([_IS_VALID.call([values]), found, _NULL_BOOLEAN])

    return evaluate


def _compile_cast(call: Call) -> Evaluator:
    inner, given = compile_expression(call.arguments[0]), call.arguments[0].type
    if call.type.is_float and given.kind in (TypeKind.HUGEINT, TypeKind.DECIMAL):
        return lambda scope: to_double(inner(scope))
    wanted = compute_type(call.type)
    # Between integers a value out of range is an error, as in DuckDB. To DOUBLE, "safe" would refuse a BIGINT that has to be rounded; DuckDB rounds it, to
    # nearest as the processor does.
    options = pc.CastOptions.unsafe(wanted) if call.type.is_float else pc.CastOptions.safe(wanted)
    return lambda scope: _CAST.call([inner(scope)], options)
