"""Expressions of the arrow kernel, compiled once to closures over Arrow arrays.

The stages of the kernel read the columns of a relation by :func:`loaded`.

Arrow's functions differ in two ways from SQL as DuckDB defines it, and both are handled here: NaN is a value, equal to
itself and greater than every other number; and a NULL in or against an IN list makes the result NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from secateur.engine.kernels.arrow.exact_values import (
    LISTED_CLASSES,
    InexactError,
    compute_type,
    exact_array,
    exact_scalar,
    to_double,
)
from secateur.engine.kernels.arrow.fragment import (
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    Expression,
    ParameterExpression,
    ParameterListExpression,
    ScalarFunction,
)
from secateur.partitioning.types.column_type import SqlType, TypeKind

Datum = Any
"""An Array where the relation has one chunk, else a ChunkedArray; a scalar for a constant or parameter."""


class EvaluationContext:
    """The inputs of an expression in one call: the columns of its stage, and the parameters of the call."""

    __slots__ = ("columns", "params")

    def __init__(self, columns: Mapping[str, Datum], params: Sequence[Any]) -> None:
        self.columns = columns
        self.params = params


Evaluator = Callable[[EvaluationContext], Datum]

_COMPUTE: Final = {
    ScalarFunction.EQUAL: pc.get_function("equal"),
    ScalarFunction.NOT_EQUAL: pc.get_function("not_equal"),
    ScalarFunction.LESS: pc.get_function("less"),
    ScalarFunction.LESS_EQUAL: pc.get_function("less_equal"),
    ScalarFunction.GREATER: pc.get_function("greater"),
    ScalarFunction.GREATER_EQUAL: pc.get_function("greater_equal"),
    ScalarFunction.AND: pc.get_function("and_kleene"),
    ScalarFunction.OR: pc.get_function("or_kleene"),
    ScalarFunction.NOT: pc.get_function("invert"),
    ScalarFunction.ADD: pc.get_function("add_checked"),
    ScalarFunction.SUBTRACT: pc.get_function("subtract_checked"),
    ScalarFunction.MULTIPLY: pc.get_function("multiply_checked"),
    ScalarFunction.DIVIDE: pc.get_function("divide"),
    ScalarFunction.COALESCE: pc.get_function("coalesce"),
    ScalarFunction.NEGATE: pc.get_function("negate_checked"),
}
"""Function objects rather than pyarrow's wrappers, because a call on a hundred rows then costs half as much."""
_MATCHES: Final = {
    ScalarFunction.STARTS_WITH: pc.get_function("starts_with"),
    ScalarFunction.ENDS_WITH: pc.get_function("ends_with"),
    ScalarFunction.CONTAINS: pc.get_function("match_substring"),
}
_CASES: Final = {
    ScalarFunction.UPPER: pc.get_function("ascii_upper"),
    ScalarFunction.LOWER: pc.get_function("ascii_lower"),
}
_IS_ASCII: Final = pc.get_function("string_is_ascii")
_ALL: Final = pc.get_function("all")
_JOIN: Final = pc.get_function("binary_join_element_wise")
_NO_SEPARATOR: Final = pa.scalar("")
_IS_NULL: Final = pc.get_function("is_null")
_IS_VALID: Final = pc.get_function("is_valid")
_IS_IN: Final = pc.get_function("is_in")
_IF_ELSE: Final = pc.get_function("if_else")
_CAST: Final = pc.get_function("cast")
_NULL_BOOLEAN: Final = pa.scalar(None, pa.bool_())
_FALSE: Final = pa.scalar(False)
_NAN_OK_FLIP: Final = {
    ScalarFunction.GREATER: ScalarFunction.LESS_EQUAL,
    ScalarFunction.GREATER_EQUAL: ScalarFunction.LESS,
}


def compile_expression(expression: Expression) -> Evaluator:
    """Turn an expression into a closure that evaluates it in a :class:`EvaluationContext`.

    The closure raises InexactError or pyarrow.ArrowInvalid (an overflow) where DuckDB has to answer.
    """
    match expression:
        case ColumnExpression(name):
            return lambda scope: scope.columns[name]
        case ConstantExpression(value, type_):
            scalar = exact_scalar(value, type_)
            return lambda _scope: scalar
        case ParameterExpression(number, type_):
            return lambda scope: exact_scalar(_parameter(scope, number), type_)
        case ParameterListExpression(number, type_):
            return lambda scope: exact_array(_parameter(scope, number), type_)
        case CallExpression():
            return _compile_call(expression)
        case _:
            assert_never(expression)


def _parameter(scope: EvaluationContext, number: int) -> Any:
    if number > len(scope.params):
        raise InexactError(f"no parameter ${number}: DuckDB says so in the user's words")
    return scope.params[number - 1]


def _compile_call(call: CallExpression) -> Evaluator:
    match call.function:
        case ScalarFunction.IS_NULL:
            return _unary(_IS_NULL, call)
        case ScalarFunction.NOT | ScalarFunction.NEGATE:
            return _unary(_COMPUTE[call.function], call)
        case ScalarFunction.CAST:
            return _compile_cast(call)
        case ScalarFunction.IN:
            return _compile_in(call)
        case ScalarFunction.CASE:
            return _compile_case(call)
        case ScalarFunction.STARTS_WITH | ScalarFunction.ENDS_WITH | ScalarFunction.CONTAINS:
            return _compile_match(call)
        case ScalarFunction.UPPER | ScalarFunction.LOWER:
            return _compile_change_of_case(call)
        case ScalarFunction.CONCATENATE:
            texts = list(map(compile_expression, call.arguments))
            return lambda scope: _JOIN.call([*(text(scope) for text in texts), _NO_SEPARATOR])
        case ScalarFunction.GREATER | ScalarFunction.GREATER_EQUAL if call.arguments[0].type.is_float:
            # NaN > 1 is true in SQL: "not <=" says so, and keeps NULL. The constant on the right is never NaN.
            below = _binary(_COMPUTE[_NAN_OK_FLIP[call.function]], call.arguments[0], call.arguments[1])
            invert = _COMPUTE[ScalarFunction.NOT]
            return lambda scope: invert.call([below(scope)])
        case _:
            function = _COMPUTE[call.function]
            evaluator = _binary(function, call.arguments[0], call.arguments[1])
            for argument in call.arguments[2:]:
                evaluator = _joined(function, evaluator, compile_expression(argument))
            # Arrow's sum of two DECIMALs has a digit more.
            return _cast_to(evaluator, call.type) if call.type.kind is TypeKind.DECIMAL else evaluator


def _unary(function: pc.Function, call: CallExpression) -> Evaluator:
    inner = compile_expression(call.arguments[0])
    return lambda scope: function.call([inner(scope)])


def _binary(function: pc.Function, left: Expression, right: Expression) -> Evaluator:
    return _joined(function, compile_expression(left), compile_expression(right))


def _joined(function: pc.Function, left: Evaluator, right: Evaluator) -> Evaluator:
    return lambda scope: function.call([left(scope), right(scope)])


def _compile_case(call: CallExpression) -> Evaluator:
    evaluators = list(map(compile_expression, call.arguments))
    default: Evaluator | None = evaluators.pop() if len(evaluators) % 2 else None
    branches = list(zip(evaluators[::2], evaluators[1::2], strict=True))
    null = pa.scalar(None, compute_type(call.type))
    is_true = _COMPUTE[ScalarFunction.COALESCE]

    def evaluate(scope: EvaluationContext) -> Datum:
        found = null if default is None else default(scope)
        for condition, value in reversed(branches):
            found = _IF_ELSE.call([is_true.call([condition(scope), _FALSE]), value(scope), found])
        return found

    return evaluate


def _compile_match(call: CallExpression) -> Evaluator:
    function = _MATCHES[call.function]
    inner, pattern = compile_expression(call.arguments[0]), call.arguments[1]
    assert isinstance(pattern, ConstantExpression)
    options = pc.MatchSubstringOptions(pattern.value)
    return lambda scope: function.call([inner(scope)], options)


def _compile_change_of_case(call: CallExpression) -> Evaluator:
    function, inner = _CASES[call.function], compile_expression(call.arguments[0])

    def evaluate(scope: EvaluationContext) -> Datum:
        texts = inner(scope)
        if _ALL.call([_IS_ASCII.call([texts])]).as_py() is False:
            raise InexactError("a text beyond ASCII in another case")
        return function.call([texts])

    return evaluate


def _compile_in(call: CallExpression) -> Evaluator:
    needle = compile_expression(call.arguments[0])
    listed = _compile_listed(call.arguments[1:], call.arguments[0].type)

    def options(scope: EvaluationContext) -> pc.SetLookupOptions:
        return pc.SetLookupOptions(listed(scope), skip_nulls=True)

    fixed = (
        options(EvaluationContext({}, ()))
        if all(isinstance(item, ConstantExpression) for item in call.arguments[1:])
        else None
    )

    def evaluate(scope: EvaluationContext) -> Datum:
        values = needle(scope)
        found = _IS_IN.call([values], fixed or options(scope))
        return found if values.null_count == 0 else _IF_ELSE.call([_IS_VALID.call([values]), found, _NULL_BOOLEAN])

    return evaluate


def _compile_listed(items: Sequence[Expression], type_: SqlType) -> Evaluator:
    """The values of an IN list as one array."""
    if isinstance(items[0], ParameterListExpression):
        return compile_expression(items[0])
    if type_.kind not in LISTED_CLASSES:
        evaluators, wanted = list(map(compile_expression, items)), compute_type(type_)
        return lambda scope: pa.array([item(scope).as_py() for item in evaluators], wanted)
    # Without a scalar for each value, which costs as much as the search.
    values = [_python_value(item) for item in items]
    return lambda scope: exact_array([value(scope) for value in values], type_)


def _python_value(item: Expression) -> Callable[[EvaluationContext], Any]:
    match item:
        case ConstantExpression(value):
            return lambda _scope: value
        case ParameterExpression(number):
            return lambda scope: _parameter(scope, number)
        case _:
            raise AssertionError(f"{item} in an IN list: it has constants and parameters only")


def _compile_cast(call: CallExpression) -> Evaluator:
    inner, given = compile_expression(call.arguments[0]), call.arguments[0].type
    if call.type.is_float and given.kind in (TypeKind.HUGEINT, TypeKind.DECIMAL):
        return lambda scope: to_double(inner(scope))
    return _cast_to(inner, call.type)


def _cast_to(inner: Evaluator, type_: SqlType) -> Evaluator:
    wanted = compute_type(type_)
    # Between integers a value out of range is an error, as in DuckDB. To DOUBLE, "safe" would refuse a BIGINT that has
    # to be rounded; DuckDB rounds it, to nearest as the processor does.
    options = pc.CastOptions.unsafe(wanted) if type_.is_float else pc.CastOptions.safe(wanted)
    return lambda scope: _CAST.call([inner(scope)], options)


JOINED_ROWS_MAX: Final = 65_536
"""The chunks of a relation up to so many rows are combined first, because calls on one array cost less than calls on
many small ones.
"""

_ARRAY_FILTER: Final = pc.get_function("array_filter")
_FILTER: Final = pc.get_function("filter")
_DROP: Final = pc.FilterOptions("drop")

Rows = tuple[Mapping[str, Any], int]
"""Columns by name and their row count, which one stage passes to the next."""


def loaded(table: pa.Table, name: str, type_: SqlType) -> Any:
    """A column as one Array, or, where joining its chunks would cost more, as it is; UUID as its bytes."""
    column = table.column(name)
    if column.num_chunks == 1:
        array = column.chunk(0)
    elif table.num_rows <= JOINED_ROWS_MAX:
        array = column.combine_chunks()
    elif type_.kind is TypeKind.UUID:
        return pa.chunked_array([chunk.storage for chunk in column.chunks])
    else:
        return column
    return array.storage if type_.kind is TypeKind.UUID else array


def kept(columns: Mapping[str, Any], mask: Any) -> Rows:
    """The rows for which a mask is true."""
    if isinstance(mask, pa.Array):
        count = mask.true_count
        if count == len(mask):
            return columns, count
        return {name: _ARRAY_FILTER.call([column, mask], _DROP) for name, column in columns.items()}, count
    count = pc.sum(mask, min_count=0).as_py()
    return {name: _FILTER.call([column, mask], _DROP) for name, column in columns.items()}, count
