"""Operands of comparisons: constants, and expressions of parameters that are not bound yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from secateur.partitioning.pruning.expression import UNKNOWN, ParameterFunction, belongs, cast, evaluate
from secateur.partitioning.types.column_type import SqlType, TypeKind, parse_type

__all__ = [
    "Cast",
    "Computed",
    "Constant",
    "Operand",
    "Parameter",
    "ParameterList",
    "listed_from_wire",
    "operand_from_wire",
    "operand_to_wire",
    "parameters_of",
    "resolve_list",
    "resolve_operand",
]


@dataclass(frozen=True, slots=True)
class Constant:
    """A value known at planning, as the Python object that DuckDB gives for it; None is NULL."""

    value: Any


@dataclass(frozen=True, slots=True)
class Parameter:
    """The parameter at ``index``, counted from 0."""

    index: int


@dataclass(frozen=True, slots=True)
class ParameterList:
    """All elements of the list that the parameter at ``index`` holds, as operands of IN.

    A list that is NULL has none.
    """

    index: int


@dataclass(frozen=True, slots=True)
class Computed:
    """A function of operands, at least one of which depends on a parameter."""

    function: ParameterFunction
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Cast:
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


def operand_to_wire(operand: Operand | ParameterList) -> list[Any]:
    """Plain data for msgpack; :func:`operand_from_wire` reads it back."""
    match operand:
        case Constant(value):
            return ["constant", value]
        case Parameter(index):
            return ["parameter", index]
        case ParameterList(index):
            return ["list", index]
        case Computed(function, operands):
            return ["computed", function.value, *map(operand_to_wire, operands)]
        case Cast(inner, wanted):
            return ["cast", operand_to_wire(inner), str(wanted)]
        case _:
            assert_never(operand)


def operand_from_wire(data: list[Any]) -> Operand:
    """Read :func:`operand_to_wire` of what stands for one value."""
    kind, *content = data
    match kind:
        case "constant":
            return Constant(content[0])
        case "parameter":
            return Parameter(content[0])
        case "computed":
            return Computed(ParameterFunction(content[0]), tuple(map(operand_from_wire, content[1:])))
        case _:
            return Cast(operand_from_wire(content[0]), parse_type(content[1]))


def listed_from_wire(data: list[Any]) -> Operand | ParameterList:
    """Read :func:`operand_to_wire`."""
    return ParameterList(data[1]) if data[0] == "list" else operand_from_wire(data)


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
