"""Dictionaries, run ends and views as the values that they stand for: Arrow's kernels compute with few of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from secateur.partitioning.types.nested_parts import with_parts
from secateur.partitioning.types.row_numbers import row_numbers


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values that an array of a type stands for; the type itself where these are its own."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def plain_values(array: pa.Array) -> pa.Array:
    """An array of :func:`plain_type`, of the same length; the array itself where it is one."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return plain_values(array.dictionary).take(array.indices)  # Arrow decodes no dictionary of views itself
    if pa.types.is_run_end_encoded(kind):
        # Arrow decodes no run ends of dictionaries or views itself.
        rows = np.arange(array.offset, array.offset + len(array))
        runs = np.searchsorted(array.run_ends.to_numpy(), rows, side="right")
        return plain_values(array.values).take(row_numbers(runs))
    plain = plain_type(kind)
    return array if plain is kind else array.cast(plain)


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch in whose columns Arrow can choose and reorder rows: no views, no run ends, no dictionary of either.

    There are none inside of nested columns either. Costs a microsecond for a column that is none of these.
    """
    kept = [_has_kernels(kind) for kind in batch.schema.types]
    if all(kept):
        return batch
    columns = [
        column if is_kept else _with_kernels(column) for column, is_kept in zip(batch.columns, kept, strict=True)
    ]
    fields = [field.with_type(column.type) for field, column in zip(batch.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, batch.schema.metadata))


def _with_kernels(array: pa.Array) -> pa.Array:
    if _has_kernels(array.type):
        return array
    if _has_parts(array.type):
        return with_parts(array, lambda part, _: _with_kernels(part))
    return plain_values(array)


def _has_kernels(kind: pa.DataType) -> bool:
    if _has_parts(kind):
        return all(_has_kernels(kind.field(index).type) for index in range(kind.num_fields))
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    return plain_type(values) == values


def _has_parts(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) and not pa.types.is_run_end_encoded(kind))
