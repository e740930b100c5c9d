"""Sorted rows as the native executor reads them: the buffers of their columns, of which nothing is copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from secateur.native import native_module
from secateur.partitioning.types.column_type import OPAQUE, TEXTUAL, SqlType, TypeKind

_MODULE: Final = native_module()
_SCALE_MAX: Final = 6
"""Python writes small numbers with more digits behind the point with an exponent."""
_WORD_PRECISION_MAX: Final = 18
_LEFT_OUT: Final = OPAQUE - TEXTUAL | {TypeKind.HUGEINT, TypeKind.DECIMAL}
_KINDS: Final[dict[pa.DataType, str]] = {
    **{
        kind: str(kind)
        for kind in (
            *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
            *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
            *(pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary()),
        )
    },
    pa.date32(): "date32",
    pa.time64("us"): "time64",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
    pa.uuid(): "uuid",
}


def is_native(kind: SqlType) -> bool:
    """Whether the native executor writes values of a type, and the bytes of each are those that Python writes."""
    if kind.kind is TypeKind.DECIMAL:
        return kind.precision <= _WORD_PRECISION_MAX and kind.scale <= _SCALE_MAX
    return kind.kind not in _LEFT_OUT


def native_rows(table: pa.Table, keys: Sequence[str]) -> Any | None:
    """The rows of a table in the order of a key, for the native executor; None without it.

    Args:
        table: The rows, one chunk a column, sorted.
        keys: The columns of the key, none of which has a NULL.

    Cost: some microseconds.
    """
    if _MODULE is None:
        return None
    columns = [_column(column) for column in table.columns]
    return _MODULE.Rows(columns, [table.schema.get_field_index(name) for name in keys], table.num_rows)


def _column(column: pa.ChunkedArray) -> tuple[Any, ...] | None:
    kind, scale = _KINDS.get(column.type), 0
    if pa.types.is_decimal128(column.type) and column.type.precision <= _WORD_PRECISION_MAX:
        kind, scale = "decimal", column.type.scale
    if kind is None or column.num_chunks != 1 or scale > _SCALE_MAX:
        return None
    array = column.chunk(0)
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    validity, *offsets, values = array.buffers()
    return (
        kind,
        scale,
        _bytes(values),
        _bytes(offsets[0]) if offsets else None,
        _bytes(validity) if array.null_count else None,
        array.offset,
    )


def _bytes(buffer: pa.Buffer | None) -> memoryview:
    return memoryview(b"") if buffer is None else memoryview(buffer).cast("B")
