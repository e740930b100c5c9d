"""The form of a table's columns in Parquet files.

Every type has the form that Arrow gives it, except INTERVAL: Parquet's own intervals have milliseconds, and ours
microseconds. An INTERVAL is a struct of months, days and nanoseconds, in lists as well.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

__all__ = ["from_parquet", "parquet_schema", "to_parquet"]

_INTERVAL: Final = pa.month_day_nano_interval()
_PARTS: Final = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())])
_LAYOUT: Final = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])


def parquet_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of the files of a table with this schema."""
    return pa.schema([field.with_type(_stored(field.type)) for field in schema])


def to_parquet(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of a table as they are written to a file."""
    columns = [_written(column) if _has_interval(column.type) else column for column in batch.columns]
    return pa.record_batch(columns, schema=parquet_schema(batch.schema))


def from_parquet(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of a file as rows of a table with this schema."""
    columns = [
        _read(column, field.type) if _has_interval(field.type) else column
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.record_batch(columns, names=schema.names)


def _has_interval(kind: pa.DataType) -> bool:
    return kind == _INTERVAL or (pa.types.is_list(kind) and _has_interval(kind.value_type))


def _stored(kind: pa.DataType) -> pa.DataType:
    if kind == _INTERVAL:
        return _PARTS
    return pa.list_(_stored(kind.value_type)) if _has_interval(kind) else kind


def _written(column: pa.Array) -> pa.Array:
    if column.type != _INTERVAL:
        return _with_values(column, _written(column.values))
    _, data = column.buffers()
    cells = np.frombuffer(data, _LAYOUT)[column.offset : column.offset + len(column)]
    parts = [pa.array(np.ascontiguousarray(cells[name])) for name in _LAYOUT.names or ()]
    return pa.StructArray.from_arrays(parts, fields=list(_PARTS), mask=column.is_null())


def _read(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind != _INTERVAL:
        return _with_values(column, _read(column.values, kind.value_type))
    cells: Any = np.zeros(len(column), _LAYOUT)
    for name, part in zip(_LAYOUT.names or (), column.flatten(), strict=True):
        cells[name] = part.fill_null(0).to_numpy(zero_copy_only=False)
    valid = None
    if column.null_count:
        valid = pa.array(column.is_valid().to_numpy(zero_copy_only=False)).buffers()[1]
    return pa.Array.from_buffers(_INTERVAL, len(column), [valid, pa.py_buffer(cells)])


def _with_values(column: pa.Array, values: pa.Array) -> pa.Array:
    """The same lists of other values; ``values`` replace those of ``column.values`` one by one."""
    offsets = pa.array(column.offsets.to_numpy())
    return pa.ListArray.from_arrays(offsets, values, mask=column.is_null())
