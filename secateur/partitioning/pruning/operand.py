"""Operands of comparisons: constants, and expressions of parameters that are not bound yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

import msgspec

from secateur.partitioning.pruning.expression import UNKNOWN, ParameterFunction, belongs, cast, evaluate
from secateur.partitioning.types.column_type import SqlType, TypeKind

__all__ = [
    "Cast",
    "Computed",
    "Constant",
    "Operand",
    "Parameter",
    "ParameterList",
    "parameters_of",
    "resolve_list",
    "resolve_operand",
]


class Constant(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="constant"):
    """A value known at planning, as the Python object that DuckDB gives for it; None is NULL."""

    value: Any


class Parameter(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="parameter"):
    """The parameter at ``index``, counted from 0."""

    index: int


class ParameterList(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="list"):
    """All elements of the list that the parameter at ``index`` holds, as operands of IN.

    A list that is NULL has none.
    """

    index: int


class Computed(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="computed"):
    """A function of operands, at least one of which depends on a parameter."""

    function: ParameterFunction
    operands: tuple[Operand, ...]


class Cast(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="cast"):
    """``CAST(operand AS type)`` of an operand that depends on a parameter."""

    operand: Operand
    type: SqlType


Operand = Constant | Parameter | Computed | Cast
"""One value: a constant, a parameter or a function of operands."""


def resolve_operand(operand: Operand, params: Sequence[Any], column_type: SqlType) -> Any:
    """Return an operand's value for a comparison with a column of the given type.

    The value is :data:`UNKNOWN` when it is not certain, or when the comparison would convert it.

    Raises:
        IndexError: There are fewer parameters than the statement has.
    """
    if isinstance(operand, Parameter):
        return params[operand.index]
    if isinstance(operand, Constant):
        return operand.value
    value = _value(operand, params)
    return value if value is UNKNOWN or belongs(value, column_type) else UNKNOWN


def resolve_list(operand: ParameterList, params: Sequence[Any], column_type: SqlType) -> Sequence[Any]:
    """The elements of a list as operands.

    A list has a type before it is compared with the column: its texts stay texts, while a single text would be read as
    a value of the column's type. A value that is not a list has no elements, but may have a meaning that only DuckDB
    defines (``x IN 'a text'`` finds substrings).

    Raises:
        IndexError: There are fewer parameters than the statement has.
    """
    value = params[operand.index]
    if value is None:
        return ()
    if not isinstance(value, list) or (column_type.kind is not TypeKind.VARCHAR and str in set(map(type, value))):
        return (UNKNOWN,)
    return value


def parameters_of(operand: Operand | ParameterList) -> Iterator[int]:
    """The indexes of the parameters that an operand depends on."""
    match operand:
        case Constant():
            pass
        case Parameter(index) | ParameterList(index):
            yield index
        case Computed(_, operands):
            for inner in operands:
                yield from parameters_of(inner)
        case Cast(inner, _):
            yield from parameters_of(inner)
        case _:
            assert_never(operand)


def _value(operand: Operand, params: Sequence[Any]) -> Any:
    match operand:
        case Constant(value):
            return value
        case Parameter(index):
            return params[index]
        case Computed(ParameterFunction.COALESCE, operands):
            # A parameter's NULL has no type; any other NULL may have a type to which DuckDB converts the others.
            values = [(inner, _value(inner, params)) for inner in operands]
            return evaluate(
                ParameterFunction.COALESCE,
                [UNKNOWN if value is None and not isinstance(inner, Parameter) else value for inner, value in values],
            )
        case Computed(function, operands):
            return evaluate(function, [_value(inner, params) for inner in operands])
        case Cast(inner, wanted):
            return cast(_value(inner, params), wanted)
        case _:
            assert_never(operand)
