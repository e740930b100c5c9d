"""The form of a table's columns in Parquet files.

Every type has the form that Arrow gives it, except INTERVAL: Parquet's own intervals have milliseconds, and ours
microseconds. An INTERVAL is a struct of months, days and nanoseconds, inside of other types as well.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from secateur.partitioning.types.nested_parts import INTERVAL_LAYOUT, interval_cells, map_leaves, with_parts

_INTERVAL: Final = pa.month_day_nano_interval()
_PARTS: Final = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())])


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
    return kind == _INTERVAL or any(_has_interval(kind.field(index).type) for index in range(kind.num_fields))


def _stored(kind: pa.DataType) -> pa.DataType:
    if kind == _INTERVAL:
        return _PARTS
    if not _has_interval(kind):
        return kind
    if pa.types.is_struct(kind):
        return pa.struct(
            [kind.field(index).with_type(_stored(kind.field(index).type)) for index in range(kind.num_fields)]
        )
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_type), _stored(kind.item_type))
    return pa.list_(_stored(kind.value_type))


def _written(column: pa.Array) -> pa.Array:
    return map_leaves(column, lambda leaf: _in_parts(leaf) if leaf.type == _INTERVAL else leaf)


def _in_parts(column: pa.Array) -> pa.Array:
    cells = interval_cells(column)
    parts = [pa.array(np.ascontiguousarray(cells[name])) for name in INTERVAL_LAYOUT.names or ()]
    return pa.StructArray.from_arrays(parts, fields=list(_PARTS), mask=column.is_null())


def _read(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not _has_interval(kind):
        return column
    if kind != _INTERVAL:
        if pa.types.is_map(kind):
            inside = [kind.key_type, kind.item_type]
        else:
            inside = [kind.field(index).type for index in range(kind.num_fields)]
        return with_parts(column, lambda part, index: _read(part, inside[index]))
    cells: Any = np.zeros(len(column), INTERVAL_LAYOUT)
    for name, part in zip(INTERVAL_LAYOUT.names or (), column.flatten(), strict=True):
        cells[name] = part.fill_null(0).to_numpy(zero_copy_only=False)
    valid = None
    if column.null_count:
        valid = pa.array(column.is_valid().to_numpy(zero_copy_only=False)).buffers()[1]
    return pa.Array.from_buffers(_INTERVAL, len(column), [valid, pa.py_buffer(cells)])
