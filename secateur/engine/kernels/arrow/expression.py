"""Expressions of the arrow kernel: five kinds of typed nodes, pure data.

Only expressions that can be evaluated exactly as in DuckDB have a node; ``planner/arrow/form.py`` decides
which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

import msgspec

from secateur.partitioning.types.column_type import SqlType


class ScalarFunction(Enum):
    """The function of a :class:`CallExpression`.

    A NULL argument gives NULL, except for AND and OR (three-valued logic), IS_NULL, COALESCE, CASE, and IN, which
    behaves like a chain of OR.
    """

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    AND = "and"
    OR = "or"
    NOT = "not"
    IS_NULL = "is_null"
    IN = "in"
    """The first argument is in the list of the others, which are constants and parameters of its type, or one
    :class:`ParameterListExpression`.
    """
    ADD = "+"
    """In the type of the operands, as the other arithmetic: what overflows is left to DuckDB."""
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    """Division of two DOUBLEs."""
    NEGATE = "neg"
    CAST = "cast"
    """To the call's type: from an integer to an integer, or from an integer, FLOAT or DECIMAL to DOUBLE."""
    COALESCE = "coalesce"
    """The first argument, or where it is NULL the second, a constant of its type."""
    CASE = "case"
    """Conditions and values by turns, and perhaps a last value: the value behind the first condition that is true, else
    the last one, or NULL. All values are of one type.
    """
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    CONTAINS = "contains"


class ColumnExpression(msgspec.Struct, frozen=True, array_like=True, tag="column", tag_field="kind"):
    """A column of the scope, by its exact name."""

    name: str
    type: SqlType


class ConstantExpression(msgspec.Struct, frozen=True, array_like=True, tag="constant", tag_field="kind"):
    """A value of the statement's text, canonical for its type (``partitioning.types.coerce``).

    It is never NULL and never NaN.
    """

    value: Any
    type: SqlType


class ParameterExpression(msgspec.Struct, frozen=True, array_like=True, tag="parameter", tag_field="kind"):
    """The value of ``$number``, which has to be one of ``type`` exactly; any other sends the call to DuckDB."""

    number: int
    type: SqlType


class ParameterListExpression(msgspec.Struct, frozen=True, array_like=True, tag="elements", tag_field="kind"):
    """The elements of ``$number``, a list of one or more values, each exactly of ``type``.

    Any other value sends the call to DuckDB.
    """

    number: int
    type: SqlType


class CallExpression(msgspec.Struct, frozen=True, array_like=True, tag="call", tag_field="kind"):
    """A function of expressions; ``type`` is the type of the result."""

    function: ScalarFunction
    arguments: tuple[Expression, ...]
    type: SqlType


Expression = ColumnExpression | ConstantExpression | ParameterExpression | ParameterListExpression | CallExpression


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, top down."""
    yield expression
    if isinstance(expression, CallExpression):
        for argument in expression.arguments:
            yield from walk(argument)


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The conditions that AND joins, in their order; the condition itself if it joins none; nothing for None."""
    if isinstance(condition, CallExpression) and condition.function is ScalarFunction.AND:
        for argument in condition.arguments:
            yield from conjuncts(argument)
    elif condition is not None:
        yield condition


def columns_in(expressions: Iterable[Expression]) -> dict[str, SqlType]:
    """Name and type of each column that some expressions read."""
    return {
        node.name: node.type
        for expression in expressions
        for node in walk(expression)
        if isinstance(node, ColumnExpression)
    }
