"""Grouping of few rows in plain Python.

Arrow's hash aggregation takes about 100 us to start, whatever it is given; a customer's twenty rows are grouped here in ten. Only types whose Python values
compare as SQL compares them are taken, so that the groups and the values are those of Arrow to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from secateur.partitioning.types import SqlType, TypeKind

__all__ = ["ORDERED_KINDS", "SMALL_ROWS_MAX", "SmallGroups", "compile_small_groups"]

#: Up to here Python is faster than the start of Arrow's aggregation.
SMALL_ROWS_MAX: Final = 128

#: (key columns, argument columns, row count) to (keys of the groups, one column for each wanted aggregate).
SmallGroups = Callable[[Sequence[Any], Sequence[Any], int], tuple[list[Any], list[Any]]]

_INTEGERS: Final = frozenset(
    {
        TypeKind.TINYINT,
        TypeKind.SMALLINT,
        TypeKind.INTEGER,
        TypeKind.BIGINT,
        TypeKind.UTINYINT,
        TypeKind.USMALLINT,
        TypeKind.UINTEGER,
        TypeKind.UBIGINT,
    }
)
#: Types whose Python values have SQL's order: UTF-8 bytes and code points sort alike.
ORDERED_KINDS: Final = _INTEGERS | {TypeKind.VARCHAR}
_KEYS: Final = ORDERED_KINDS | {TypeKind.BOOLEAN}
_SUMMED: Final = _INTEGERS | {TypeKind.DOUBLE}
_SIGNED: Final = frozenset({TypeKind.TINYINT, TypeKind.SMALLINT, TypeKind.INTEGER, TypeKind.BIGINT})


def compile_small_groups(keys: Sequence[SqlType], wanted: Sequence[tuple[str, int | None]], types: Sequence[SqlType]) -> SmallGroups | None:
    """A closure that groups few rows, or None when a type asks for Arrow.

    Args:
        keys: The types of the key columns; at least one.
        wanted: ``count_all`` with None; ``count``, ``sum``, ``min`` or ``max`` with the position of its argument.
        types: The types of the argument columns.
    """
    if any(key.kind not in _KEYS for key in keys):
        return None
    makers = []
    for name, position in wanted:
        type_ = None if position is None else types[position]
        if (name == "sum" and (type_ is None or type_.kind not in _SUMMED)) or (name in ("min", "max") and (type_ is None or type_.kind not in ORDERED_KINDS)):
            return None
        makers.append(_maker(name, position, type_))
    key_types = [key.arrow for key in keys]

    def compute(key_columns: Sequence[Any], arguments: Sequence[Any], row_count: int) -> tuple[list[Any], list[Any]]:
        rows_of: dict[Any, list[int]] = {}
        lists = [column.to_pylist() for column in key_columns]
        for row, key in enumerate(lists[0] if len(lists) == 1 else zip(*lists, strict=True)):
            rows_of.setdefault(key, []).append(row)
        found = list(rows_of) if len(lists) > 1 else [(key,) for key in rows_of]
        groups = list(rows_of.values())
        values = [argument.to_pylist() for argument in arguments]
        columns = [pa.array([key[position] for key in found], type_) for position, type_ in enumerate(key_types)]
        return columns, [make(values, groups) for make in makers]

    return compute


def _maker(name: str, position: int | None, type_: SqlType | None) -> Callable[[Sequence[list[Any]], list[list[int]]], pa.Array]:
    """One aggregate over the rows of each group, in the type that Arrow's own aggregation gives it."""
    if position is None or type_ is None:
        return lambda _values, groups: pa.array([len(rows) for rows in groups], pa.int64())
    if name == "count":
        return lambda values, groups: pa.array([sum(values[position][row] is not None for row in rows) for rows in groups], pa.int64())
    fold: Mapping[str, Callable[[list[Any]], Any]] = {"sum": sum, "min": min, "max": max}
    arrow = _sum_type(type_) if name == "sum" else type_.arrow
    finish = fold[name]

    def make(values: Sequence[list[Any]], groups: list[list[int]]) -> pa.Array:
        column = values[position]
        present = ([value for row in rows if (value := column[row]) is not None] for rows in groups)
        return pa.array([finish(some) if some else None for some in present], arrow)

    return make


def _sum_type(type_: SqlType) -> pa.DataType:
    if type_.kind is TypeKind.DOUBLE:
        return pa.float64()
    return pa.int64() if type_.kind in _SIGNED else pa.uint64()
