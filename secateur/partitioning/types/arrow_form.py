"""Conversions to an Arrow type of the user's own, such as those that the schema of a job names.

They are those to the column type that holds every value of the Arrow type, and then a change of form that loses
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, Final

import pyarrow as pa

from secateur.errors import DataError, NotSupportedError
from secateur.partitioning.types.cast import cast_column
from secateur.partitioning.types.column_type import UNIT_TIMESTAMPS, SqlType, TypeKind, type_of_arrow
from secateur.partitioning.types.python_column import column_of, without_missing

_AS_GUESSED: Final = frozenset({bool, bytes, float, int, str})
"""Python types whose values Arrow never changes, unless they are mixed, which it refuses."""


_UNITS: Final = {SqlType(kind).arrow: SqlType(kind) for kind in UNIT_TIMESTAMPS}


def cast_to_arrow(column: pa.Array | pa.ChunkedArray, target: pa.DataType, *, name: str) -> pa.Array:
    """Convert an Arrow column.

    Returns:
        One array of exactly ``target``; the column itself if it is one.

    Raises:
        DataError: Some value cannot be held, or the types do not convert.
    """
    if column.type == target and isinstance(column, pa.Array):
        return column
    held = _held_as(target)
    if held is None and column.type.id != target.id:
        raise DataError(f"column {name}: the data are {column.type}, which is not converted to {target}", column=name)
    return _in_form(column if held is None else cast_column(column, held, name=name), target, name)


def array_of(values: Iterable[Any], target: pa.DataType, *, name: str) -> pa.Array:
    """Convert Python values, as :func:`~secateur.partitioning.types.python_column.column_of` does.

    Raises:
        DataError: A value cannot be held exactly.
    """
    held = _held_as(target)
    if held is not None:
        return _in_form(column_of(values, held, name=name), target, name)
    given = list(values)
    try:
        found = pa.array(given, target)
        is_same = found.to_pylist() == given
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"column {name}: a value is no {target}: {error}", column=name) from error
    if not is_same:
        raise DataError(f"column {name}: a value does not fit {target} without loss", column=name)
    return found


def inferred_array(values: Sequence[Any], *, name: str) -> pa.Array:
    """Convert Python values to a column of the type that holds each of them exactly: nobody has said another.

    It is Arrow's guess, except where that would change a value: dates beside points in time are points in time, and
    whole numbers of more than 64 bits are decimals.

    Raises:
        DataError: No type holds all of them.
    """
    given = without_missing(values)
    kinds = set(map(type, given)) - {type(None)}
    try:
        if any(issubclass(kind, datetime) for kind in kinds) and all(issubclass(kind, date) for kind in kinds):
            zone = "UTC" if any(getattr(value, "tzinfo", None) is not None for value in given) else None
            return array_of(given, pa.timestamp("us", zone), name=name)
        if kinds == {int} and not all(-(1 << 63) <= value < 1 << 63 for value in given if value is not None):
            return array_of(given, pa.decimal128(38, 0), name=name)
        guessed = pa.array(given)
        is_same = kinds <= _AS_GUESSED and not {bytes, str} <= kinds  # of which Arrow makes bytes
        return guessed if is_same else array_of(given, guessed.type, name=name)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(f"column {name}: its values ({found}) are not of one type: {error}", column=name) from error


def _held_as(target: pa.DataType) -> SqlType | None:
    """The column type that holds every value of an Arrow type; None for an Arrow type that is no column's."""
    if pa.types.is_time(target):
        return SqlType(TypeKind.TIME)
    if target in _UNITS:
        return _UNITS[target]
    try:
        return type_of_arrow(target)
    except NotSupportedError:
        return None


def _in_form(column: pa.Array | pa.ChunkedArray, target: pa.DataType, name: str) -> pa.Array:
    try:
        held = column if column.type == target else column.cast(target)
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(f"column {name}: a value does not fit {target}: {error}", column=name) from error
    if isinstance(held, pa.Array):
        return held
    together = held.combine_chunks()
    return together if isinstance(together, pa.Array) else pa.concat_arrays(together.chunks or [pa.array([], target)])
