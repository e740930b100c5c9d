"""Operands of comparisons: constants, and expressions of parameters that are not bound yet.

Also the expressions in partition trees and key searches, and the places of their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeVar, assert_never, get_type_hints

import msgspec
from msgspec.structs import replace

from secateur.partitioning.pruning.domain import Domain
from secateur.partitioning.pruning.expression import UNKNOWN, ParameterFunction, belongs, cast, evaluate
from secateur.partitioning.types.column_type import SqlType, TypeKind


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
    operands: tuple[Quick, ...]


class Cast(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="cast"):
    """``CAST(operand AS type)`` of an operand that depends on a parameter."""

    operand: Quick
    type: SqlType


class Evaluated(msgspec.Struct, frozen=True, array_like=True, tag_field="kind", tag="evaluated"):
    """An expression of parameters that DuckDB evaluates once per execution, before partitions are selected.

    Attributes:
        sql: The expression, whose parameters are ``$1`` and so on, in a form that makes no large values.
        shown: The same as the user wrote it, for EXPLAIN.
        parameters: The indexes of its parameters, counted from 0.
        quick: The operand that computes the same where it is certain of the value, without DuckDB; None where there
            is none.
        index: The place of its value behind the parameters of the plan, counted from 0: a list of the value alone,
            empty if it is not known. -1 in a tree that is not part of a plan yet.
    """

    sql: str
    shown: str
    parameters: tuple[int, ...]
    quick: Computed | Cast | None = None
    index: int = -1


Operand = Constant | Parameter | Evaluated
"""One value: a constant, a parameter or an expression of parameters."""

Quick = Constant | Parameter | Computed | Cast
"""One value that is computed without DuckDB: a part of the quick form of an expression."""


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
    value = quick_value(operand, params)
    if value is not UNKNOWN and belongs(value, column_type):
        return value
    return _evaluated(operand, params, column_type) if isinstance(operand, Evaluated) else UNKNOWN


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


def parameters_of(operand: Operand | Quick | ParameterList) -> Iterator[int]:
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
        case Evaluated():
            yield from operand.parameters
        case _:
            assert_never(operand)


def _evaluated(operand: Evaluated, params: Sequence[Any], column_type: SqlType) -> Any:
    """The value that DuckDB has given, which stands behind the parameters.

    A text beside a column of another type is converted by DuckDB alone.
    """
    held = params[operand.index] if 0 <= operand.index < len(params) else None
    if type(held) is not list or not held:
        return UNKNOWN
    (value,) = held
    return UNKNOWN if type(value) is str and column_type.kind is not TypeKind.VARCHAR else value


def not_quick(expressions: Sequence[Evaluated], params: Sequence[Any]) -> tuple[Evaluated, ...]:
    """The expressions whose values only DuckDB can tell for these parameters."""
    return tuple([each for each in expressions if quick_value(each, params) is UNKNOWN])


def quick_value(operand: Operand | Quick, params: Sequence[Any]) -> Any:
    """The value of an operand as far as it is certain without DuckDB, else :data:`UNKNOWN`."""
    match operand:
        case Evaluated():
            return UNKNOWN if operand.quick is None else quick_value(operand.quick, params)
        case Constant(value):
            return value
        case Parameter(index):
            return params[index]
        case Computed(ParameterFunction.COALESCE, operands):
            # A parameter's NULL has no type; any other NULL may have a type to which DuckDB converts the others.
            values = [(inner, quick_value(inner, params)) for inner in operands]
            return evaluate(
                ParameterFunction.COALESCE,
                [UNKNOWN if value is None and not isinstance(inner, Parameter) else value for inner, value in values],
            )
        case Computed(function, operands):
            return evaluate(function, [quick_value(inner, params) for inner in operands])
        case Cast(Parameter(index), wanted):
            return cast(params[index], wanted)
        case Cast(inner, wanted):
            return cast(quick_value(inner, params), wanted)
        case _:
            assert_never(operand)


S = TypeVar("S")

_PLAIN: Final = frozenset({int, float, bool, str, bytes, type(None)})


def expressions_in(parts: Iterable[Any]) -> tuple[Evaluated, ...]:
    """The distinct expressions of some trees, searches or parts of them, in the order of their places."""
    found = {expression: None for part in parts for expression in _found(part)}
    return tuple(sorted(found, key=lambda expression: expression.index))


def places(parts: Iterable[Any], first: int) -> dict[str, int]:
    """A place for each expression, by its SQL: ``first`` and up."""
    return {
        sql: first + position
        for position, sql in enumerate(dict.fromkeys(each.sql for part in parts for each in _found(part)))
    }


def numbered(part: S, places: Mapping[str, int]) -> S:
    """A tree, a search or a part of one whose expressions have these places.

    A plan numbers its expressions once. Whoever executes it, or routes it, has DuckDB evaluate them
    (:mod:`secateur.duckdb_expressions`) and appends the values to the parameters, where the trees find them.
    """
    made: Any = part
    if isinstance(part, Evaluated):
        made = replace(part, index=places[part.sql])
    elif isinstance(part, tuple):
        made = tuple(numbered(item, places) for item in part)
    elif isinstance(part, msgspec.Struct) and any(_found(part)):
        made = replace(part, **{name: numbered(getattr(part, name), places) for name in part.__struct_fields__})
    result: S = made
    return result


def _found(part: Any) -> list[Evaluated]:
    found: list[Evaluated] = []
    pending = [part]
    while pending:
        one = pending.pop()
        if isinstance(one, Evaluated):
            found.append(one)
        elif isinstance(one, tuple):
            pending.extend(one[::-1])
        elif isinstance(one, msgspec.Struct) and not isinstance(one, Domain):
            pending.extend([value for name in _searched(type(one)) if (value := getattr(one, name))])
    return found


@cache
def _searched(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields of a part, the last one first, but for those that are plain values."""
    named = get_type_hints(kind)
    return tuple(name for name in reversed(kind.__struct_fields__) if named[name] not in _PLAIN)
