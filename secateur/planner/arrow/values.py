"""Compiles expressions of a bound plan for the arrow kernel, or gives the reason why only DuckDB can evaluate them.

The types are those of the plan, where every overload is resolved and every cast is written out. The type of an
expression that is compiled is never that of a parameter's value, so the form holds for all values; a value that is not
exactly of the type that the form has for it is left to DuckDB by the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from secateur.engine.kernels.arrow.exact_values import LISTED_CLASSES, SCALE_MAX
from secateur.engine.kernels.arrow.fragment import (
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    Expression,
    ParameterExpression,
    ParameterListExpression,
    ScalarFunction,
)
from secateur.partitioning.types.column_type import OPAQUE, WORD_INTEGERS, SqlType, TypeKind
from secateur.planner.arrow.constants import DeclineError, KernelDeclined, cast_constant, constant_of, sql_type
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import CONTAINS, is_closed
from secateur.planner.tree.expression_sql import BoundText
from secateur.planner.tree.rewriting import inputs_of, is_null
from secateur.planner.tree.types import INSTANTS, is_exact

BOOLEAN: Final = SqlType(TypeKind.BOOLEAN)
DOUBLE: Final = SqlType(TypeKind.DOUBLE)
VARCHAR: Final = SqlType(TypeKind.VARCHAR)

Column: TypeAlias = Expression | ex.BoundParameter | KernelDeclined
"""A column of a relation: what computes it, a parameter whose type is that of its value, or why only DuckDB has it."""

_COMPARISONS: Final = {
    "COMPARE_EQUAL": ScalarFunction.EQUAL,
    "COMPARE_NOTEQUAL": ScalarFunction.NOT_EQUAL,
    "COMPARE_LESSTHAN": ScalarFunction.LESS,
    "COMPARE_LESSTHANOREQUALTO": ScalarFunction.LESS_EQUAL,
    "COMPARE_GREATERTHAN": ScalarFunction.GREATER,
    "COMPARE_GREATERTHANOREQUALTO": ScalarFunction.GREATER_EQUAL,
}
_FLIPPED: Final = {
    ScalarFunction.LESS: ScalarFunction.GREATER,
    ScalarFunction.LESS_EQUAL: ScalarFunction.GREATER_EQUAL,
    ScalarFunction.GREATER: ScalarFunction.LESS,
    ScalarFunction.GREATER_EQUAL: ScalarFunction.LESS_EQUAL,
}
_ARITHMETIC: Final = {"+": ScalarFunction.ADD, "-": ScalarFunction.SUBTRACT, "*": ScalarFunction.MULTIPLY}
_SUMS: Final = ("+", "-")
_CASE_KINDS: Final = (TypeKind.DOUBLE, TypeKind.VARCHAR, TypeKind.DATE, TypeKind.TIMESTAMP)
_SIGNED: Final = (TypeKind.TINYINT, TypeKind.SMALLINT, TypeKind.INTEGER, TypeKind.BIGINT)
_TERMS_MAX: Final = 200
"""The kernel evaluates the terms of AND and OR by recursion."""


def is_fixed(expression: Expression) -> bool:
    """Whether an expression is one value for all rows, which the kernel has in few places."""
    return isinstance(expression, (ConstantExpression, ParameterExpression))


def known(column: Column) -> Expression:
    """What computes a column."""
    match column:
        case KernelDeclined(reason):
            raise DeclineError(reason)
        case ex.BoundParameter():
            raise DeclineError(f"${column.identifier} decides the type of the result")
        case _:
            return column


def is_orderable(type_: SqlType) -> bool:
    """Whether Arrow groups and orders values of a type as DuckDB does (NaN is handled where it occurs)."""
    return type_.kind not in OPAQUE


def can_be_chosen(type_: SqlType) -> bool:
    """Whether the kernel has CASE of a type."""
    return type_.is_integer or type_.kind in _CASE_KINDS


def all_of(conditions: Sequence[Expression]) -> Expression | None:
    """The AND of conditions; None of none.

    Raises:
        DeclineError: They are many.
    """
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return _connected(ScalarFunction.AND, conditions)


class ValueCompiler:
    """Compiles expressions over the columns of one relation."""

    def __init__(self, columns: Sequence[Column], text: BoundText) -> None:
        self._columns = columns
        self._text = text

    def column(self, node: ex.AnyExpression) -> Column:
        """An expression as a column of another relation, which may not be needed."""
        inner = self._meant(node)
        if isinstance(inner, ex.BoundParameter) and self._text.is_bare(inner):
            return inner
        try:
            return self.value(node)
        except DeclineError as declined:
            return KernelDeclined(str(declined))

    def condition(self, node: ex.AnyExpression) -> Expression:
        """A condition."""
        found = self.of_rows(node)
        if found.type != BOOLEAN:
            raise DeclineError(f"a {found.type} where a condition stands")
        return found

    def of_rows(self, node: ex.AnyExpression) -> Expression:
        """An expression that has a value for each row.

        Raises:
            DeclineError: Only DuckDB can evaluate it exactly, or it is one value for all rows.
        """
        found = self.value(node)
        if is_fixed(found):
            raise DeclineError("a value that is the same for all rows")
        return found

    def value(self, node: ex.AnyExpression) -> Expression:
        """An expression, in the type that it has in the plan."""
        found = self._value(node)
        if found.type != sql_type(node.return_type):
            raise DeclineError(f"a {found.type} is {node.return_type.sql} in DuckDB")
        return found

    def summand(self, node: ex.AnyExpression) -> Expression:
        """The argument of a sum or an average, which DuckDB widens and the kernel takes as it is."""
        inner = self._uncast(node)
        source, target = sql_type(inner.return_type), sql_type(node.return_type)
        is_float = source.kind is TypeKind.FLOAT and target == DOUBLE
        return self.of_rows(inner if is_float or (source.is_integer and target.is_integer) else node)

    def equality(self, left: ex.AnyExpression, right: ex.AnyExpression) -> CallExpression:
        """An equality of two expressions that have values for each row."""
        return self._of_two(ScalarFunction.EQUAL, left, right)

    def number_of_rows(self, node: ex.AnyExpression) -> Expression:
        """A number of LIMIT or OFFSET.

        Raises:
            DeclineError: It is no parameter.
        """
        type_ = SqlType(TypeKind.BIGINT)
        number = self._parameter(node)
        if number is not None:
            return ParameterExpression(number, type_)
        found = self._value(node)
        if found.type != type_ or not isinstance(found, ParameterExpression):
            raise DeclineError("LIMIT or OFFSET of an expression")
        return found

    def _value(self, node: ex.AnyExpression) -> Expression:
        match node:
            case ex.InputColumn():
                return known(self._columns[node.index])
            case ex.BoundConstant():
                return constant_of(node)
            case ex.BoundParameter() if not self._text.is_bare(node):
                return _given(node, sql_type(node.return_type))
            case ex.Conjunction():
                function = ScalarFunction.AND if node.type == "CONJUNCTION_AND" else ScalarFunction.OR
                return _connected(function, [self.condition(term) for term in node.children])
            case ex.BoundOperation():
                return self._operation(node)
            case ex.Case():
                return self._case(node)
            case ex.Written(sql="({0} = ANY({1}))", children=(needle, values)):
                return self._search(needle, values)
            case ex.Call():
                return self._call(node)
            case ex.BoundParameter():
                raise DeclineError(f"${node.identifier} decides the type of the result")
            case _:
                raise DeclineError(f"{type(node).__name__} is left to DuckDB")

    def _call(self, call: ex.Call) -> Expression:
        if call.name == "__cast":
            return self._cast(call)
        if call.type in _COMPARISONS:
            return self._comparison(_COMPARISONS[call.type], *call.children)
        if call.type == "COMPARE_BETWEEN" and is_closed(call):
            value, low, high = call.children
            sides = (ScalarFunction.GREATER_EQUAL, low), (ScalarFunction.LESS_EQUAL, high)
            return _connected(ScalarFunction.AND, [self._comparison(function, value, end) for function, end in sides])
        match call.name, call.children:
            case "+" | "-" | "*", (left, right):
                return self._arithmetic(call, left, right)
            case "/", (left, right):
                return self._division(call, left, right)
            case "-", (inner,):
                return self._negation(inner)
            case "~~", (searched, pattern):
                return self._like(searched, pattern)
            case "!~~", (searched, pattern):
                return _not(self._like(searched, pattern))
            case "upper" | "lower" | "||", texts if any(map(self._reads, texts)):
                return CallExpression(ScalarFunction(call.name), tuple(map(self._as_text, texts)), VARCHAR)
            case name, (values, needle) if name in CONTAINS and values.return_type.id == "LIST":
                return self._search(needle, values)
            case _:
                raise DeclineError(f"{call.name} is left to DuckDB")

    def _operation(self, operation: ex.BoundOperation) -> Expression:
        first, *others = operation.children
        match operation.type, others:
            case "OPERATOR_NOT", []:
                return _not(self.condition(first))
            case "OPERATOR_IS_NULL", []:
                return CallExpression(ScalarFunction.IS_NULL, (self.of_rows(first),), BOOLEAN)
            case "OPERATOR_IS_NOT_NULL", []:
                return _not(CallExpression(ScalarFunction.IS_NULL, (self.of_rows(first),), BOOLEAN))
            case "COMPARE_IN", _:
                return self._membership(first, others)
            case "COMPARE_NOT_IN", _:
                return _not(self._membership(first, others))
            case "OPERATOR_COALESCE", [default]:
                return self._coalesce(first, default)
            case name, _:
                raise DeclineError(f"{name} is left to DuckDB")

    def _as_text(self, node: ex.AnyExpression) -> Expression:
        """A text, which may be a constant."""
        found = self.value(node)
        if found.type != VARCHAR or isinstance(found, ParameterExpression):
            raise DeclineError(f"a {found.type} where a text stands")
        return found

    # Comparisons

    def _comparison(self, function: ScalarFunction, left: ex.AnyExpression, right: ex.AnyExpression) -> CallExpression:
        if not self._reads(left):
            left, right, function = right, left, _FLIPPED.get(function, function)
        if not self._reads(left):
            raise DeclineError("a comparison of two constants")
        if self._reads(right):
            return self._of_two(function, left, right)
        target, operands = self._beside(left, [right])
        _require_comparable(function, target.type)
        return CallExpression(function, (target, *operands), BOOLEAN)

    def _of_two(self, function: ScalarFunction, left: ex.AnyExpression, right: ex.AnyExpression) -> CallExpression:
        """A comparison of two expressions, in the wider of their types.

        DuckDB's may be wider still, where one of them is between the other and a parameter.
        """
        one, other = self.of_rows(self._as_it_is(left)), self.of_rows(self._as_it_is(right))
        if _holds(one.type, other.type):
            other = _converted(other, one.type)
        elif _holds(other.type, one.type):
            one = _converted(one, other.type)
        if one.type.is_float or other.type.is_float:
            raise DeclineError("two columns of which one may be NaN")
        if one.type != other.type:
            raise DeclineError(f"{one.type} together with {other.type}")
        _require_comparable(function, one.type)
        return CallExpression(function, (one, other), BOOLEAN)

    def _membership(self, needle: ex.AnyExpression, listed: Sequence[ex.AnyExpression]) -> CallExpression:
        if not self._reads(needle) or any(map(self._reads, listed)):
            raise DeclineError("IN of something else than a list of constants")
        target, operands = self._beside(needle, listed)
        # Arrow compares values by their bits, which differ for 0.0 and -0.0
        if not is_orderable(target.type) or target.type.is_float:
            raise DeclineError(f"IN of {target.type}")
        return CallExpression(ScalarFunction.IN, (target, *operands), BOOLEAN)

    def _search(self, needle: ex.AnyExpression, values: ex.AnyExpression) -> CallExpression:
        """``needle = ANY(values)`` and its relatives, which differ for lists with NULL: these the kernel declines."""
        number, target = self._parameter(values), self.of_rows(self._as_it_is(needle))
        if number is None or target.type.kind not in LISTED_CLASSES:
            raise DeclineError(f"a search of {target.type} in a list")
        return CallExpression(ScalarFunction.IN, (target, ParameterListExpression(number, target.type)), BOOLEAN)

    def _beside(
        self, node: ex.AnyExpression, fixed: Sequence[ex.AnyExpression]
    ) -> tuple[Expression, Sequence[ConstantExpression | ParameterExpression]]:
        """An expression and the values that it is compared with, all of the type of the expression."""
        target = self.of_rows(self._as_it_is(node))
        operands = [self._operand(one, target.type) for one in fixed]
        if target.type.kind is TypeKind.FLOAT:
            return _converted(target, DOUBLE), [replace(operand, type=DOUBLE) for operand in operands]
        return target, operands

    def _operand(self, node: ex.AnyExpression, type_: SqlType) -> ConstantExpression | ParameterExpression:
        """A constant or a parameter as a value of a type."""
        number = self._parameter(node)
        if number is not None:
            return ParameterExpression(number, type_)
        found = self.value(self._uncast(node))
        if isinstance(found, ConstantExpression):
            return cast_constant(found, type_)
        if not isinstance(found, ParameterExpression) or found.type != type_:
            raise DeclineError(f"{found.type} against {type_}")
        return found

    # Arithmetic

    def _arithmetic(self, call: ex.Call, left: ex.AnyExpression, right: ex.AnyExpression) -> Expression:
        type_ = sql_type(call.return_type)
        if self._text.has_cast(call) and type_.kind in WORD_INTEGERS:
            return _converted(self._of_integers(call), type_)
        if type_.kind not in WORD_INTEGERS and type_ != DOUBLE:
            raise DeclineError(f"arithmetic of {type_}")
        operands = [self._factor(one, other, type_) for one, other in ((left, right), (right, left))]
        if all(map(is_fixed, operands)) or {operand.type for operand in operands} != {type_}:
            raise DeclineError(f"arithmetic of constants, or of {' and '.join(str(one.type) for one in operands)}")
        return CallExpression(_ARITHMETIC[call.name], tuple(operands), type_)

    def _factor(self, node: ex.AnyExpression, other: ex.AnyExpression, type_: SqlType) -> Expression:
        """An operand. A parameter is one beside a DOUBLE alone: only there it does not decide about the type."""
        number = self._parameter(node)
        if number is None:
            return self.value(node)
        if type_ != DOUBLE or self._uncast(other).return_type.id != "DOUBLE":
            raise DeclineError(f"${number} decides the type of the result")
        return ParameterExpression(number, DOUBLE)

    def _division(self, call: ex.Call, left: ex.AnyExpression, right: ex.AnyExpression) -> Expression:
        """DuckDB divides as DOUBLE, but FLOAT by anything short of DOUBLE as FLOAT."""
        if sql_type(call.return_type) != DOUBLE:
            raise DeclineError(f"division of {call.return_type.sql}")
        operands = []
        for one, other in ((left, right), (right, left)):
            number = self._parameter(one)
            if number is not None and self._uncast(other).return_type.id == "FLOAT":
                raise DeclineError(f"${number} decides the type of the result")
            operands.append(self.value(one) if number is None else ParameterExpression(number, DOUBLE))
        if all(map(is_fixed, operands)) or {operand.type for operand in operands} != {DOUBLE}:
            raise DeclineError("division of two constants")
        return CallExpression(ScalarFunction.DIVIDE, tuple(operands), DOUBLE)

    def _negation(self, node: ex.AnyExpression) -> Expression:
        inner = self.of_rows(node)
        if inner.type.kind not in (*_SIGNED, TypeKind.DOUBLE):
            raise DeclineError(f"the negative of {inner.type}")
        return CallExpression(ScalarFunction.NEGATE, (inner,), inner.type)

    def _integers(self, node: ex.AnyExpression) -> Expression:
        """What is cast to an integer, such as ``SET v = v + ?``: arithmetic there may have parameters.

        A parameter decides the type of the result in DuckDB, but here no reader sees that type.
        """
        if isinstance(node, ex.Call) and node.name in _ARITHMETIC and self._text.takes_type(node):
            return self._of_integers(node)
        return self.value(node)

    def _of_integers(self, call: ex.Call) -> Expression:
        """Arithmetic in the type of its columns.

        That is no wider than DuckDB's: the result is the same number, or overflows and is left to DuckDB.
        """
        if len(call.children) != 2:
            raise DeclineError("a parameter decides the type of the result")
        sides = [self._uncast(child) for child in call.children]
        values = [self._integers(side) if self._parameter(side) is None else None for side in sides]
        types = {value.type for value in values if value is not None and not is_fixed(value)}
        if len(types) != 1 or not {type_.kind for type_ in types} <= WORD_INTEGERS:
            raise DeclineError("arithmetic of several types, one of which a parameter decides")
        (type_,) = types
        return CallExpression(
            _ARITHMETIC[call.name],
            tuple(
                self._operand(side, type_) if value is None or is_fixed(value) else value
                for side, value in zip(sides, values, strict=True)
            ),
            type_,
        )

    def _of_decimals(self, call: ex.Call, type_: SqlType) -> Expression:
        """A sum or difference that is cast to the DECIMAL of its columns, such as ``SET amount = amount + ?``.

        Every operand is exactly of that type, so DuckDB's is the same number, which it computes in a wider type and
        does not round; or it overflows, and is left to DuckDB.
        """
        if len(call.children) != 2:
            raise DeclineError("arithmetic of one number")
        operands = [self._decimal(self._uncast(child), type_) for child in call.children]
        if all(map(is_fixed, operands)):
            raise DeclineError("arithmetic of constants")
        return CallExpression(_ARITHMETIC[call.name], tuple(operands), type_)

    def _decimal(self, node: ex.AnyExpression, type_: SqlType) -> Expression:
        if isinstance(node, ex.Call) and node.name in _SUMS:
            return self._of_decimals(node, type_)
        value = None if self._parameter(node) is not None else self.value(node)
        if value is None or is_fixed(value):
            return self._operand(node, type_)
        if value.type != type_:
            raise DeclineError(f"arithmetic of {value.type} as {type_}")
        return value

    # Other expressions

    def _cast(self, call: ex.Call) -> Expression:
        (child,) = call.children
        wanted = sql_type(call.return_type)
        if call.function_data["try_cast"]:
            raise DeclineError("TRY_CAST is left to DuckDB")
        is_own, child = not self._text.is_implicit(call), self._meant(child)
        if is_own and isinstance(child, ex.BoundParameter) and self._text.is_bare(child):
            return _given(child, wanted)
        if is_own and wanted.kind is TypeKind.DECIMAL and isinstance(child, ex.Call) and child.name in _SUMS:
            return self._of_decimals(child, wanted)
        inner = self._integers(child) if is_own and wanted.kind in WORD_INTEGERS else self.value(child)
        return cast_constant(inner, wanted) if isinstance(inner, ConstantExpression) else _converted(inner, wanted)

    def _like(self, searched: ex.AnyExpression, pattern: ex.AnyExpression) -> CallExpression:
        target, found = self.of_rows(searched), self.value(pattern)
        if target.type.kind is not TypeKind.VARCHAR or not isinstance(found, ConstantExpression):
            raise DeclineError("LIKE of something else than a text and a literal")
        text = found.value
        body = text.strip("%")
        if not body or any(char in body for char in "%_\\") or text not in (f"{body}%", f"%{body}", f"%{body}%"):
            raise DeclineError("LIKE with another pattern than 'abc%', '%abc' or '%abc%'")
        function = {f"{body}%": ScalarFunction.STARTS_WITH, f"%{body}": ScalarFunction.ENDS_WITH}.get(
            text, ScalarFunction.CONTAINS
        )
        return CallExpression(function, (target, ConstantExpression(body, target.type)), BOOLEAN)

    def _coalesce(self, node: ex.AnyExpression, default: ex.AnyExpression) -> Expression:
        first, second = self.of_rows(node), self.value(default)
        if not first.type.is_integer and first.type.kind not in (TypeKind.DOUBLE, TypeKind.VARCHAR):
            raise DeclineError(f"coalesce of {first.type}")
        if not isinstance(second, ConstantExpression) or second.type != first.type:
            raise DeclineError("coalesce with something else than a literal")
        return CallExpression(ScalarFunction.COALESCE, (first, second), first.type)

    def _case(self, case: ex.Case) -> Expression:
        type_ = sql_type(case.return_type)
        if not can_be_chosen(type_):
            raise DeclineError(f"CASE of {type_}")
        arguments: list[Expression] = []
        for check in case.case_checks:
            arguments += (self.condition(check.when_expr), self.value(check.then_expr))
        if not is_null(case.else_expr):
            arguments.append(self.value(case.else_expr))
        if any(isinstance(argument, ParameterExpression) for argument in arguments):
            raise DeclineError("CASE with a parameter")
        return CallExpression(ScalarFunction.CASE, tuple(arguments), type_)

    # Casts that DuckDB has made

    def _parameter(self, node: ex.AnyExpression) -> int | None:
        """The number of a parameter whose value has a type of its own; None for anything else."""
        inner = self._uncast(node)
        if not isinstance(inner, ex.BoundParameter) or not self._text.is_bare(inner):
            return None
        return int(inner.identifier) if inner.identifier.isdecimal() else None

    def _uncast(self, node: ex.AnyExpression) -> ex.AnyExpression:
        """An expression as the user wrote it."""
        while isinstance(node, ex.Call) and self._text.is_implicit(node):
            (node,) = node.children
        return self._meant(node)

    def _meant(self, node: ex.AnyExpression) -> ex.AnyExpression:
        """The parameter that a column is, or the expression itself."""
        column = self._columns[node.index] if isinstance(node, ex.InputColumn) else None
        return column if isinstance(column, ex.BoundParameter) else node

    def _as_it_is(self, node: ex.AnyExpression) -> ex.AnyExpression:
        """An expression without the casts of DuckDB's that only widen it.

        How far they do depends on the digits of the parameters beside it, and a form is the same for all of these.
        """
        while isinstance(node, ex.Call) and self._text.is_implicit(node):
            (inner,) = node.children
            if not _is_wider(sql_type(inner.return_type), sql_type(node.return_type)):
                return node
            node = inner
        return node

    def _reads(self, node: ex.AnyExpression) -> bool:
        """Whether an expression reads a column that is not the same in all rows."""
        columns = (self._columns[index] for index in inputs_of([node]))
        return any(isinstance(column, KernelDeclined | ColumnExpression | CallExpression) for column in columns)


def _given(parameter: ex.BoundParameter, type_: SqlType) -> ParameterExpression:
    """A parameter that the user has cast: a value of that type stays as it is.

    A number that is cast to FLOAT is rounded, and a HUGEINT lies in memory as a decimal.
    """
    if type_.kind in (TypeKind.FLOAT, TypeKind.HUGEINT) or not parameter.identifier.isdecimal():
        raise DeclineError(f"a parameter as {type_}")
    return ParameterExpression(int(parameter.identifier), type_)


def _is_wider(source: SqlType, target: SqlType) -> bool:
    """Whether a cast of DuckDB's gives each value an equal one, so that values compare alike before and after it.

    A number of so many digits that the other type does not hold it is an error.
    """
    if target.kind in INSTANTS.get(source.kind, ()):
        return True
    return all(type_.is_integer or type_.kind is TypeKind.DECIMAL for type_ in (source, target))


def _holds(type_: SqlType, other: SqlType) -> bool:
    """Whether an integer type has all values of another."""
    return type_.is_integer and other.is_integer and is_exact(other, type_)


def _require_comparable(function: ScalarFunction, type_: SqlType) -> None:
    is_equality = function in (ScalarFunction.EQUAL, ScalarFunction.NOT_EQUAL)
    if not is_orderable(type_) or (type_ == BOOLEAN and not is_equality):
        raise DeclineError(f"{function.value} of {type_}")


def _connected(function: ScalarFunction, conditions: Sequence[Expression]) -> CallExpression:
    if len(conditions) > _TERMS_MAX:
        raise DeclineError(f"{function.value} of many conditions")
    return CallExpression(function, tuple(conditions), BOOLEAN)


def _not(condition: Expression) -> CallExpression:
    return CallExpression(ScalarFunction.NOT, (condition,), BOOLEAN)


def _converted(expression: Expression, wanted: SqlType) -> Expression:
    given = expression.type
    if given == wanted:
        return expression
    is_number = (
        given.is_integer
        or given.kind is TypeKind.FLOAT
        or (given.kind is TypeKind.DECIMAL and given.scale <= SCALE_MAX)
    )
    if is_fixed(expression) or (not (given.is_integer and wanted.is_integer) and not (is_number and wanted == DOUBLE)):
        raise DeclineError(f"a cast of {given} to {wanted}")
    return CallExpression(ScalarFunction.CAST, (expression,), wanted)
