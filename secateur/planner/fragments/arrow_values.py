"""Compiles scalar expressions for the arrow kernel, or gives the reason why only DuckDB can evaluate them.

The types are DuckDB's: ``+`` of two integers has the wider one's type, a literal takes the type of the column that it
is compared with, ``/`` gives a DOUBLE. The statement's compiler compares the type of each result column with that of
DuckDB's binder, so a wrong rule here costs speed, not correctness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec.structs import replace
from sqlglot import exp

from secateur.engine.kernels.arrow.doubles import SCALE_MAX
from secateur.engine.kernels.arrow.exact_values import LISTED_CLASSES
from secateur.engine.kernels.arrow.expression import (
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    Expression,
    ParameterExpression,
    ParameterListExpression,
    ScalarFunction,
)
from secateur.partitioning.tables.identifier import folded
from secateur.partitioning.types.column_type import NESTED, SqlType, TypeKind
from secateur.planner.fragments.arrow_constants import cast_type, constant_operand, is_constant
from secateur.planner.text.membership import list_membership

BOOLEAN: Final = SqlType(TypeKind.BOOLEAN)
DOUBLE: Final = SqlType(TypeKind.DOUBLE)
_INTEGER: Final = SqlType(TypeKind.INTEGER)
_VARCHAR: Final = SqlType(TypeKind.VARCHAR)

_COMPARISONS: Final[dict[type[exp.Expr], ScalarFunction]] = {
    exp.EQ: ScalarFunction.EQUAL,
    exp.NEQ: ScalarFunction.NOT_EQUAL,
    exp.LT: ScalarFunction.LESS,
    exp.LTE: ScalarFunction.LESS_EQUAL,
    exp.GT: ScalarFunction.GREATER,
    exp.GTE: ScalarFunction.GREATER_EQUAL,
}
_FLIPPED: Final = {
    ScalarFunction.LESS: ScalarFunction.GREATER,
    ScalarFunction.LESS_EQUAL: ScalarFunction.GREATER_EQUAL,
    ScalarFunction.GREATER: ScalarFunction.LESS,
    ScalarFunction.GREATER_EQUAL: ScalarFunction.LESS_EQUAL,
}
_ARITHMETIC: Final[dict[type[exp.Expr], ScalarFunction]] = {
    exp.Add: ScalarFunction.ADD,
    exp.Sub: ScalarFunction.SUBTRACT,
    exp.Mul: ScalarFunction.MULTIPLY,
}
_READ: Final[dict[type[exp.Expr], frozenset[str]]] = {
    exp.Like: frozenset({"negate"}),
    exp.In: frozenset({"expressions"}),
    exp.Between: frozenset({"low", "high"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.Cast: frozenset({"to"}),
    exp.If: frozenset({"true"}),
    exp.Coalesce: frozenset({"expressions"}),
    exp.Count: frozenset({"big_int"}),
    exp.Group: frozenset({"expressions", "all"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"desc", "nulls_first"}),
    exp.Table: frozenset({"alias"}),
    exp.Column: frozenset({"table"}),
}
"""The arguments of a node, beside its operands, that the translation reads.

sqlglot adds such arguments from version to version (LIKE's ``negate`` once was a NOT around it). Ignoring one would
give a wrong answer; a node that has any other argument is therefore declined.
"""
_CASE_KINDS: Final = (TypeKind.DOUBLE, TypeKind.VARCHAR, TypeKind.DATE, TypeKind.TIMESTAMP)
_OPERANDS: Final = frozenset({"this", "expression"})
_SIGNED: Final = (TypeKind.TINYINT, TypeKind.SMALLINT, TypeKind.INTEGER, TypeKind.BIGINT)
_UNSIGNED: Final = (TypeKind.UTINYINT, TypeKind.USMALLINT, TypeKind.UINTEGER, TypeKind.UBIGINT)


class DeclineError(Exception):
    """A part of the statement is left to DuckDB; the message is for EXPLAIN.

    It never leaves the compiler.
    """


class NameScope(Protocol):
    """Resolves names, and other nodes that a stage knows as a whole."""

    def resolve(self, node: exp.Expr) -> Expression | None:
        """Return the expression for a node that this scope knows as a whole: a column, a group key or an aggregate.

        None to compile the node by its parts.
        """


class ColumnScope(NameScope, Protocol):
    """Resolves the names of columns of relations."""

    def __contains__(self, name: str) -> bool:
        """Whether a bare name is that of a column."""


class RowScope:
    """The columns of one relation, found by name without regard to case."""

    def __init__(self, schema: Mapping[str, SqlType], qualifiers: frozenset[str]) -> None:
        self._columns = {folded(name): ColumnExpression(name, type_) for name, type_ in schema.items()}
        self._qualifiers = qualifiers

    def resolve(self, node: exp.Expr) -> Expression | None:
        if not isinstance(node, exp.Column):
            return None
        refuse_unread(node)
        column = self._columns.get(folded(node.name))
        if column is None or (node.table and folded(node.table) not in self._qualifiers):
            raise DeclineError(f"{node.sql(dialect='duckdb')} is not a plain column")
        return column

    def __contains__(self, name: str) -> bool:
        return folded(name) in self._columns


def compile_value(node: exp.Expr, scope: NameScope) -> Expression:
    """Compile a node that has a value for each row (or group) of the scope.

    Raises:
        DeclineError: Only DuckDB can evaluate it exactly.
    """
    known = scope.resolve(node)
    if known is not None:
        return known
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "coalesce" and node.expressions:
        node = exp.Coalesce(this=node.expressions[0].copy(), expressions=[item.copy() for item in node.expressions[1:]])
    member = list_membership(node)
    if member is not None:
        return _element(*member, scope)
    refuse_unread(node)
    if isinstance(node, exp.Paren):
        return compile_value(node.this, scope)
    if type(node) in _COMPARISONS:
        return _comparison(_COMPARISONS[type(node)], node.this, node.expression, scope)
    if isinstance(node, (exp.And, exp.Or)):
        return _connective(node, scope)
    if isinstance(node, exp.Not):
        return CallExpression(ScalarFunction.NOT, (require_boolean(compile_value(node.this, scope)),), BOOLEAN)
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return CallExpression(ScalarFunction.IS_NULL, (_operand(node.this, scope),), BOOLEAN)
    if isinstance(node, exp.In):
        return _membership(node, scope)
    if isinstance(node, exp.Between):
        low = _comparison(ScalarFunction.GREATER_EQUAL, node.this, node.args["low"], scope)
        return CallExpression(
            ScalarFunction.AND,
            (low, _comparison(ScalarFunction.LESS_EQUAL, node.this, node.args["high"], scope)),
            BOOLEAN,
        )
    if type(node) is exp.Like:
        return _like(node, scope)
    if type(node) in _ARITHMETIC:
        return _arithmetic(_ARITHMETIC[type(node)], node.this, node.expression, scope)
    if isinstance(node, exp.Div):
        return _division(node, scope)
    if isinstance(node, exp.Neg):
        return _negation(node, scope)
    if type(node) is exp.Cast:
        return _cast(node, scope)
    if isinstance(node, exp.Coalesce):
        return _coalesce(node, scope)
    if isinstance(node, exp.Case):
        return _case(node, scope)
    raise DeclineError(f"{_named(node)} is left to DuckDB")


def refuse_unread(node: exp.Expr) -> None:
    """Decline a node that has an argument which the compiler does not read."""
    unread = {key for key, value in node.args.items() if value} - _OPERANDS - _READ.get(type(node), frozenset())
    if unread:
        raise DeclineError(f"{min(unread)} of {_named(node)}")


def require_boolean(expression: Expression) -> Expression:
    """The expression itself, which must be a condition."""
    if expression.type != BOOLEAN:
        raise DeclineError(f"a {expression.type} where a condition stands")
    return expression


def is_orderable(type_: SqlType) -> bool:
    """Whether Arrow groups and orders values of a type as DuckDB does (NaN is handled where it occurs)."""
    return type_.kind not in NESTED and type_.kind is not TypeKind.INTERVAL


def _comparison(function: ScalarFunction, left: exp.Expr, right: exp.Expr, scope: NameScope) -> Expression:
    if is_constant(left):
        left, right, function = right, left, _FLIPPED.get(function, function)
    if is_constant(left):
        raise DeclineError("a comparison of two constants")
    comparison_target = _operand(left, scope)
    if not is_orderable(comparison_target.type) or (
        comparison_target.type == BOOLEAN and function not in (ScalarFunction.EQUAL, ScalarFunction.NOT_EQUAL)
    ):
        raise DeclineError(f"{function.value} of {comparison_target.type}")
    if is_constant(right):
        return CallExpression(function, _with_constant(comparison_target, right), BOOLEAN)
    return comparison_of(function, comparison_target, _operand(right, scope))


def comparison_of(function: ScalarFunction, left: Expression, right: Expression) -> CallExpression:
    """Compare two values that are no constants.

    Raises:
        DeclineError: Their types are not comparable here.
    """
    if left.type.is_float or right.type.is_float:
        raise DeclineError("two columns of which one may be NaN")
    if not is_orderable(left.type):
        raise DeclineError(f"{function.value} of {left.type}")
    if left.type != right.type:
        left, right = _same_width(left, right)
    return CallExpression(function, (left, right), BOOLEAN)


def _with_constant(
    comparison_target: Expression, node: exp.Expr
) -> tuple[Expression, ConstantExpression | ParameterExpression]:
    constant = constant_operand(node, comparison_target.type)
    if constant is None:
        raise DeclineError(f"{node.sql(dialect='duckdb')} against {comparison_target.type}")
    if comparison_target.type.kind is TypeKind.FLOAT:
        return _converted(comparison_target, DOUBLE), replace(constant, type=DOUBLE)
    return comparison_target, constant


def _operand(node: exp.Expr, scope: NameScope) -> Expression:
    """Compile a side of a comparison.

    A condition is declined, because the two parsers may disagree about where it begins (``a = b IS NULL``).
    """
    expression = compile_value(node, scope)
    if expression.type == BOOLEAN and isinstance(expression, CallExpression) and not isinstance(node, exp.Paren):
        raise DeclineError("a condition inside a comparison")
    return expression


def _connective(node: exp.And | exp.Or, scope: NameScope) -> Expression:
    function = ScalarFunction.AND if isinstance(node, exp.And) else ScalarFunction.OR
    return CallExpression(
        function, tuple(require_boolean(compile_value(term, scope)) for term in node.flatten()), BOOLEAN
    )


def _membership(node: exp.In, scope: NameScope) -> Expression:
    items = node.expressions
    if not items or not all(map(is_constant, items)):
        raise DeclineError("IN of something else than a list of constants")
    comparison_target = _operand(node.this, scope)
    # Arrow compares values by their bits, which differ for 0.0 and -0.0
    if not is_orderable(comparison_target.type) or comparison_target.type.is_float:
        raise DeclineError(f"IN of {comparison_target.type}")
    return CallExpression(
        ScalarFunction.IN, (comparison_target, *(_with_constant(comparison_target, item)[1] for item in items)), BOOLEAN
    )


def _element(needle: exp.Expr, index: int, scope: NameScope) -> Expression:
    comparison_target = _operand(needle, scope)
    if comparison_target.type.kind not in LISTED_CLASSES:
        raise DeclineError(f"a list of {comparison_target.type}")
    return CallExpression(
        ScalarFunction.IN, (comparison_target, ParameterListExpression(index + 1, comparison_target.type)), BOOLEAN
    )


def _like(node: exp.Like, scope: NameScope) -> Expression:
    comparison_target, pattern = _operand(node.this, scope), node.expression
    if comparison_target.type.kind is not TypeKind.VARCHAR or not (
        isinstance(pattern, exp.Literal) and pattern.is_string
    ):
        raise DeclineError("LIKE of something else than a text and a literal")
    text = str(pattern.this)
    body = text.strip("%")
    if not body or any(char in body for char in "%_\\") or text not in (f"{body}%", f"%{body}", f"%{body}%"):
        raise DeclineError("LIKE with another pattern than 'abc%', '%abc' or '%abc%'")
    function = {f"{body}%": ScalarFunction.STARTS_WITH, f"%{body}": ScalarFunction.ENDS_WITH}.get(
        text, ScalarFunction.CONTAINS
    )
    matches = CallExpression(function, (comparison_target, ConstantExpression(body, comparison_target.type)), BOOLEAN)
    return CallExpression(ScalarFunction.NOT, (matches,), BOOLEAN) if node.args.get("negate") else matches


def _arithmetic(function: ScalarFunction, left: exp.Expr, right: exp.Expr, scope: NameScope) -> Expression:
    if is_constant(left) and is_constant(right):
        raise DeclineError("arithmetic of two constants")
    if is_constant(left):
        other = _number(right, scope)
        return CallExpression(function, (_number_beside(left, other), other), other.type)
    comparison_target = _number(left, scope)
    if is_constant(right):
        return CallExpression(
            function, (comparison_target, _number_beside(right, comparison_target)), comparison_target.type
        )
    other = _number(right, scope)
    if comparison_target.type != other.type:
        comparison_target, other = (
            (_converted(comparison_target, DOUBLE), _converted(other, DOUBLE))
            if DOUBLE in (comparison_target.type, other.type)
            else _same_width(comparison_target, other)
        )
    elif comparison_target.type.kind is TypeKind.FLOAT:
        raise DeclineError("arithmetic of FLOAT")
    return CallExpression(function, (comparison_target, other), comparison_target.type)


def _number(node: exp.Expr, scope: NameScope) -> Expression:
    expression = compile_value(node, scope)
    if expression.type.kind not in (*_SIGNED, *_UNSIGNED, TypeKind.DOUBLE, TypeKind.FLOAT):
        raise DeclineError(f"arithmetic of {expression.type}")
    return expression


def _number_beside(node: exp.Expr, comparison_target: Expression) -> Expression:
    constant = constant_operand(node, comparison_target.type)
    if (
        constant is None
        or comparison_target.type.kind is TypeKind.FLOAT
        or (isinstance(constant, ParameterExpression) and comparison_target.type != DOUBLE)
    ):
        raise DeclineError(
            f"arithmetic of {comparison_target.type} with {node.sql(dialect='duckdb')}, which decides the type of the"
            " result"
        )
    return constant


def _division(node: exp.Div, scope: NameScope) -> Expression:
    """DuckDB divides as DOUBLE, but FLOAT by anything short of DOUBLE as FLOAT."""
    sides = (node.this, node.expression)
    values = [None if is_constant(side) else compile_value(side, scope) for side in sides]
    types = [value.type for value in values if value is not None]
    if not types or (any(type_.kind is TypeKind.FLOAT for type_ in types) and DOUBLE not in types):
        raise DeclineError("division of FLOAT or of two constants")
    operands = [
        constant_operand(side, DOUBLE) if value is None else _converted(value, DOUBLE)
        for side, value in zip(sides, values, strict=True)
    ]
    if operands[0] is None or operands[1] is None:
        raise DeclineError(f"{node.sql(dialect='duckdb')}: a constant that is no DOUBLE")
    return CallExpression(ScalarFunction.DIVIDE, (operands[0], operands[1]), DOUBLE)


def _negation(node: exp.Neg, scope: NameScope) -> Expression:
    inner = compile_value(node.this, scope)
    if inner.type.kind not in (*_SIGNED, TypeKind.DOUBLE):
        raise DeclineError(f"the negative of {inner.type}")
    return CallExpression(ScalarFunction.NEGATE, (inner,), inner.type)


def _cast(node: exp.Cast, scope: NameScope) -> Expression:
    wanted = cast_type(node)
    if wanted is None:
        raise DeclineError(f"a cast to {node.to.sql(dialect='duckdb')}")
    if wanted.kind in (*_SIGNED, *_UNSIGNED):
        return _converted(_cast_arithmetic(node.this, scope), wanted)
    return _converted(compile_value(node.this, scope), wanted)


def _cast_arithmetic(node: exp.Expr, scope: NameScope) -> Expression:
    """Compile what is cast to an integer, such as ``SET v = v + ?``: arithmetic there may have parameters.

    A parameter decides the type of the result in DuckDB, but here no reader sees that type. Computed in the type of the
    columns, which is no wider than DuckDB's, the result is the same number, or overflows and is left to DuckDB.
    """
    inner = node
    while isinstance(inner, exp.Paren):
        inner = inner.this
    function = _ARITHMETIC.get(type(inner))
    if function is None or scope.resolve(inner) is not None:
        return compile_value(node, scope)
    refuse_unread(inner)
    sides = (inner.this, inner.expression)
    values = [None if is_constant(side) else _cast_arithmetic(side, scope) for side in sides]
    types = {value.type for value in values if value is not None}
    if len(types) != 1 or not {type_.kind for type_ in types} <= {*_SIGNED, *_UNSIGNED}:
        return compile_value(node, scope)
    (type_,) = types
    operands = [
        constant_operand(side, type_) if value is None else value for side, value in zip(sides, values, strict=True)
    ]
    if operands[0] is None or operands[1] is None:
        return compile_value(node, scope)
    return CallExpression(function, (operands[0], operands[1]), type_)


def _same_width(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    for family in (_SIGNED, _UNSIGNED):
        if left.type.kind in family and right.type.kind in family:
            wider = max(left.type, right.type, key=lambda type_: family.index(type_.kind))
            return _converted(left, wider), _converted(right, wider)
    raise DeclineError(f"{left.type} together with {right.type}")


def _coalesce(node: exp.Coalesce, scope: NameScope) -> Expression:
    comparison_target = compile_value(node.this, scope)
    if len(node.expressions) != 1 or not (
        comparison_target.type.is_integer or comparison_target.type.kind in (TypeKind.DOUBLE, TypeKind.VARCHAR)
    ):
        raise DeclineError(f"coalesce of {comparison_target.type}")
    default = constant_operand(node.expressions[0], comparison_target.type)
    if not isinstance(default, ConstantExpression):
        raise DeclineError(f"coalesce with {node.expressions[0].sql(dialect='duckdb')}")
    return CallExpression(ScalarFunction.COALESCE, (comparison_target, default), comparison_target.type)


def _case(node: exp.Case, scope: NameScope) -> Expression:
    """Compile a CASE whose values are of one type; literals take the type of the others, or their own."""
    conditions: list[Expression] = []
    for branch in node.args["ifs"]:
        refuse_unread(branch)
        conditions.append(
            require_boolean(compile_value(branch.this, scope))
            if node.this is None
            else _comparison(ScalarFunction.EQUAL, node.this, branch.this, scope)
        )
    default = node.args.get("default")
    nodes = [branch.args["true"] for branch in node.args["ifs"]]
    if default is not None and not isinstance(default, exp.Null):
        nodes.append(default)
    computed = [None if is_constant(value) else compile_value(value, scope) for value in nodes]
    types = {value.type for value in computed if value is not None} or {_type_of_literals(nodes)}
    type_ = min(types, key=str)
    if len(types) > 1 or not (type_.is_integer or type_.kind in _CASE_KINDS):
        raise DeclineError(f"CASE of {' and '.join(sorted(map(str, types)))}")
    values: list[Expression] = []
    for given, value in zip(nodes, computed, strict=True):
        constant = constant_operand(given, type_) if value is None else value
        if constant is None or isinstance(constant, ParameterExpression):
            raise DeclineError(f"CASE with {given.sql(dialect='duckdb')}")
        values.append(constant)
    pairs = [part for pair in zip(conditions, values, strict=False) for part in pair]
    return CallExpression(ScalarFunction.CASE, (*pairs, *values[len(conditions) :]), type_)


def _type_of_literals(nodes: Sequence[exp.Expr]) -> SqlType:
    """The type of a CASE whose values are all literals: whole numbers of an INTEGER, or texts."""
    if all(isinstance(node, exp.Literal) and node.is_string for node in nodes):
        return _VARCHAR
    if all(isinstance(node, exp.Literal) and node.name.isdecimal() for node in nodes):
        return _INTEGER
    raise DeclineError("CASE of literals of several types")


def _converted(expression: Expression, wanted: SqlType) -> Expression:
    given = expression.type
    if given == wanted:
        return expression
    is_number = (
        given.is_integer
        or given.kind is TypeKind.FLOAT
        or (given.kind is TypeKind.DECIMAL and given.scale <= SCALE_MAX)
    )
    if not (given.is_integer and wanted.is_integer) and not (is_number and wanted == DOUBLE):
        raise DeclineError(f"a cast of {given} to {wanted}")
    return CallExpression(ScalarFunction.CAST, (expression,), wanted)


def _named(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key
