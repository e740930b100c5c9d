"""Sorted rows as the native executor reads them: the buffers of their columns, of which nothing is copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from secateur.native import native_module
from secateur.partitioning.types.column_type import NESTED, SqlType, TypeKind

_MODULE: Final = native_module()
_TEXTS: Final = frozenset({TypeKind.VARCHAR, TypeKind.BLOB})
_SCALE_MAX: Final = 6
"""Python writes small numbers with more digits behind the point with an exponent."""
_WORD_PRECISION_MAX: Final = 18
_LEFT_OUT: Final = NESTED | {TypeKind.INTERVAL, TypeKind.HUGEINT, TypeKind.DECIMAL}


def is_native(kind: SqlType) -> bool:
    """Whether the native executor writes values of a type, and the bytes of each are those that Python writes."""
    if kind.kind is TypeKind.DECIMAL:
        return kind.precision <= _WORD_PRECISION_MAX and kind.scale <= _SCALE_MAX
    return kind.kind not in _LEFT_OUT


def native_rows(table: pa.Table, types: Sequence[SqlType], keys: Sequence[str]) -> Any | None:
    """The rows of a table in the order of a key, for the native executor; None without it.

    Args:
        table: The rows, one chunk a column, sorted.
        types: The types of its columns.
        keys: The columns of the key, none of which has a NULL.

    Cost: some microseconds.
    """
    if _MODULE is None:
        return None
    columns = [_column(column, kind) for column, kind in zip(table.columns, types, strict=True)]
    return _MODULE.Rows(columns, [table.schema.get_field_index(name) for name in keys], table.num_rows)


def _column(column: pa.ChunkedArray, kind: SqlType) -> tuple[Any, ...] | None:
    if not is_native(kind) or column.num_chunks != 1:
        return None
    array = column.chunk(0)
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    validity, *offsets, values = array.buffers()
    return (
        kind.kind.value,
        kind.scale,
        _bytes(values),
        _bytes(offsets[0]) if kind.kind in _TEXTS else None,
        _bytes(validity) if array.null_count else None,
        array.offset,
    )


def _bytes(buffer: pa.Buffer | None) -> memoryview:
    return memoryview(b"") if buffer is None else memoryview(buffer).cast("B")
