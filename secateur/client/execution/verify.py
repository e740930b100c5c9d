"""Compares the rows of two results, for ``SET pruning = verify``."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from secateur.partitioning.types.arrow_layout import map_leaves

_RELATIVE_TOLERANCE: Final = 1e-9
_ABSOLUTE_TOLERANCE: Final = 1e-12


def same_rows(left: pa.Table, right: pa.Table) -> bool:
    """Compare two tables as multisets of rows; floating-point values with a relative tolerance of 1e-9.

    Sums of floats depend on the order of their terms, and rows without ORDER BY have none. The order of an ordered
    result is not compared.

    Cost: O(n log n) Python objects; rows that differ in nothing but floats are matched one by one where sorting them
    does not pair them.
    """
    if (
        left.num_rows != right.num_rows
        or left.schema.names != right.schema.names
        or left.schema.types != right.schema.types
    ):
        return False
    if left.equals(right):
        return True
    floats = [index for index, kind in enumerate(left.schema.types) if pa.types.is_floating(kind)]
    groups_left, groups_right = _grouped(left, floats), _grouped(right, floats)
    return groups_left.keys() == groups_right.keys() and all(
        _paired(rows, groups_right[key]) for key, rows in groups_left.items()
    )


_Floats = tuple[float | None, ...]


def _grouped(table: pa.Table, floats: Sequence[int]) -> dict[str, list[_Floats]]:
    """The float columns of the rows, by the text of everything else in the row."""
    columns = [_values(column) for column in table.columns]
    others = [column for index, column in enumerate(columns) if index not in floats]
    groups: dict[str, list[_Floats]] = defaultdict(list)
    for position in range(table.num_rows):
        groups[repr([column[position] for column in others])].append(
            tuple(columns[index][position] for index in floats)
        )
    return groups


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; days and instants as numbers, because Python has no object for some of them."""
    return [value for chunk in column.chunks for value in map_leaves(chunk, _counted).to_pylist()]


def _counted(leaf: pa.Array) -> pa.Array:
    if pa.types.is_date32(leaf.type):
        return leaf.cast(pa.int32())
    return leaf.cast(pa.int64()) if pa.types.is_timestamp(leaf.type) else leaf


def _paired(left: list[_Floats], right: list[_Floats]) -> bool:
    if len(left) != len(right):
        return False
    if all(_close(a, b) for a, b in zip(sorted(left, key=_order), sorted(right, key=_order), strict=True)):
        return True
    rest = list(right)
    for row in left:
        match = next((index for index, other in enumerate(rest) if _close(row, other)), None)
        if match is None:
            return False
        rest.pop(match)
    return True


def _order(row: _Floats) -> tuple[tuple[bool, bool, float], ...]:
    return tuple(
        (value is None, value is not None and math.isnan(value), 0.0 if value is None or math.isnan(value) else value)
        for value in row
    )


def _close(left: _Floats, right: _Floats) -> bool:
    return all(
        a is b
        or (
            a is not None
            and b is not None
            and (
                (math.isnan(a) and math.isnan(b))
                or math.isclose(a, b, rel_tol=_RELATIVE_TOLERANCE, abs_tol=_ABSOLUTE_TOLERANCE)
            )
        )
        for a, b in zip(left, right, strict=True)
    )
