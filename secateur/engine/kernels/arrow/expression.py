"""Expressions of the arrow kernel: four kinds of typed nodes, pure data that is sent as nested lists.

Only expressions that can be evaluated exactly as in DuckDB have a node; ``planner/fragments/arrow_compiler.py`` decides
which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, assert_never

from secateur.partitioning.types.column_type import SqlType, parse_type

__all__ = [
    "CallExpression",
    "ColumnExpression",
    "ConstantExpression",
    "Expression",
    "ParameterExpression",
    "ParameterListExpression",
    "ScalarFunction",
    "from_wire",
    "to_wire",
    "walk",
]


class ScalarFunction(Enum):
    """The function of a :class:`CallExpression`.

    A NULL argument gives NULL, except for AND and OR (three-valued logic), IS_NULL, COALESCE, and IN, which behaves
    like a chain of OR.
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
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    """Division of two DOUBLEs."""
    NEGATE = "neg"
    CAST = "cast"
    """To the call's type: from an integer to an integer, or from an integer, FLOAT or DECIMAL to DOUBLE."""
    COALESCE = "coalesce"
    """The first argument, or where it is NULL the second, a constant of its type."""
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    CONTAINS = "contains"


@dataclass(frozen=True, slots=True)
class ColumnExpression:
    """A column of the scope, by its exact name."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class ConstantExpression:
    """A value of the statement's text, canonical for its type (``partitioning.coerce``); never NULL and never NaN."""

    value: Any
    type: SqlType


@dataclass(frozen=True, slots=True)
class ParameterExpression:
    """The value of ``$number``, which has to be one of ``type`` exactly; any other sends the call to DuckDB."""

    number: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class ParameterListExpression:
    """The elements of ``$number``, a list of one or more values, each exactly of ``type``.

    Any other value sends the call to DuckDB.
    """

    number: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class CallExpression:
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


def to_wire(expression: Expression) -> list[Any]:
    """Plain data: lists, strings and canonical values; :func:`from_wire` reads it back."""
    kind = str(expression.type)
    match expression:
        case ColumnExpression(name):
            return ["column", kind, name]
        case ConstantExpression(value):
            return ["constant", kind, value]
        case ParameterExpression(number):
            return ["parameter", kind, number]
        case ParameterListExpression(number):
            return ["elements", kind, number]
        case CallExpression(function, arguments):
            return [function.value, kind, *map(to_wire, arguments)]
        case _:
            assert_never(expression)


def from_wire(data: Sequence[Any]) -> Expression:
    """Build the expression that :func:`to_wire` described."""
    tag, kind, *rest = data
    type_ = parse_type(kind)
    match tag:
        case "column":
            return ColumnExpression(rest[0], type_)
        case "constant":
            return ConstantExpression(rest[0], type_)
        case "parameter":
            return ParameterExpression(rest[0], type_)
        case "elements":
            return ParameterListExpression(rest[0], type_)
        case _:
            return CallExpression(ScalarFunction(tag), tuple(map(from_wire, rest)), type_)
