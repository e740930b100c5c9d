"""The columns of a relation as the stages of the arrow kernel read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from secateur.partitioning.types.column_type import SqlType, TypeKind

JOINED_ROWS_MAX: Final = 65_536
"""The chunks of a relation up to so many rows are combined first, because calls on one array cost less than calls on
many small ones.
"""

_ARRAY_FILTER: Final = pc.get_function("array_filter")
_FILTER: Final = pc.get_function("filter")
_DROP: Final = pc.FilterOptions("drop")

Rows = tuple[Mapping[str, Any], int]
"""Columns by name and their row count, which one stage passes to the next."""


def loaded(table: pa.Table, name: str, type_: SqlType) -> Any:
    """A column as one Array, or, where joining its chunks would cost more, as it is; UUID as its bytes."""
    column = table.column(name)
    if column.num_chunks == 1:
        array = column.chunk(0)
    elif table.num_rows <= JOINED_ROWS_MAX:
        array = column.combine_chunks()
    elif type_.kind is TypeKind.UUID:
        return pa.chunked_array([chunk.storage for chunk in column.chunks])
    else:
        return column
    return array.storage if type_.kind is TypeKind.UUID else array


def kept(columns: Mapping[str, Any], mask: Any) -> Rows:
    """The rows for which a mask is true."""
    if isinstance(mask, pa.Array):
        count = mask.true_count
        if count == len(mask):
            return columns, count
        return {name: _ARRAY_FILTER.call([column, mask], _DROP) for name, column in columns.items()}, count
    count = pc.sum(mask, min_count=0).as_py()
    return {name: _FILTER.call([column, mask], _DROP) for name, column in columns.items()}, count
