"""Rows with structs as DuckDB reads them: DuckDB 2.0 refuses structs that are slices of longer ones.

Its error says "an Arrow batch carried column 0 with a struct or union below an offset the conversion would drop". A
slice of a partition, such as the rows of a key, is such a struct.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from secateur.partitioning.types.row_numbers import row_numbers


def without_struct_offsets(table: pa.Table) -> pa.Table:
    """The same rows, each struct at the start of its array.

    Cost: under a microsecond a column if there is no struct. A struct of a column is moved without a copy of its
    values; one inside of lists and maps is copied.
    """
    if not any(_has_struct(column.type) for column in table.columns):
        return table
    # As batches: DuckDB reads these, and where columns have other chunks, each batch has slices.
    return pa.Table.from_batches(
        [
            pa.RecordBatch.from_arrays([_at_start(column) for column in batch.columns], schema=batch.schema)
            for batch in table.to_batches()
        ],
        table.schema,
    )


def _has_struct(kind: pa.DataType) -> bool:
    count = kind.num_fields
    if not count:
        return False
    return bool(pa.types.is_struct(kind)) or any(_has_struct(kind.field(index).type) for index in range(count))


def _at_start(array: pa.Array) -> pa.Array:
    kind = array.type
    if not _has_struct(kind) or not _is_moved(array):
        return array
    if not pa.types.is_struct(kind):
        return array.take(row_numbers(np.arange(len(array))))
    return pa.StructArray.from_arrays(
        [_at_start(child) for child in array.flatten()],
        fields=[kind.field(index) for index in range(kind.num_fields)],
        mask=array.is_null() if array.null_count else None,
    )


def _is_moved(array: pa.Array) -> bool:
    """Whether a struct anywhere in an array is a slice."""
    kind = array.type
    if not _has_struct(kind):
        return False
    if pa.types.is_struct(kind):
        return array.offset > 0 or any(_is_moved(array.field(index)) for index in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _is_moved(array.keys) or _is_moved(array.items)
    return _is_moved(array.values)
