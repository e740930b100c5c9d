"""Copies of rows that own exactly their memory: one chunk a column, no parent buffer kept alive, no offset.

A slice of an Arrow table keeps the whole buffer behind it; 271 partitions sliced from one batch would keep the batch until the last of them is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from secateur.errors import LimitExceededError

__all__ = ["TEXT_BYTES_MAX", "concatenate", "gather", "single_array"]

TEXT_BYTES_MAX: Final = 2**31 - 1
"""Bytes that one VARCHAR or BLOB column of one partition can hold: Arrow's ``string`` counts in 32 bits."""


def gather(tables: Sequence[pa.Table], indices: pa.Array | None = None) -> pa.Table:
    """Copy rows of several tables into one that owns its memory.

    Args:
        tables: At least one, all of one schema, in any chunks.
        indices: Row numbers in the concatenation of the tables, in the order wanted; None for all rows in their order.

    Returns:
        One chunk a column. Peak memory beyond the result is one column, since columns are copied one after the other.

    Raises:
        LimitExceededError: A text column would hold more than :data:`TEXT_BYTES_MAX` bytes.
    """
    columns = []
    together = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    for position, field in enumerate(together.schema):
        chunks = together.column(position).chunks
        array = chunks[0] if indices is not None and len(chunks) == 1 else concatenate(chunks, field)
        columns.append(array if indices is None else array.take(indices))
    return pa.Table.from_arrays(columns, schema=together.schema)


def concatenate(arrays: Sequence[pa.Array], field: pa.Field) -> pa.Array:
    """Copy arrays into one that owns exactly its memory, also when there is only one.

    Args:
        arrays: Of the type of ``field``, or of its storage type.
        field: Name and type of the column.

    Raises:
        LimitExceededError: A text column would hold more than :data:`TEXT_BYTES_MAX` bytes.
    """
    if not arrays:
        return pa.array([], field.type)
    if pa.types.is_string(field.type) or pa.types.is_binary(field.type):
        size = sum(_text_bytes(array) for array in arrays)
        if size > TEXT_BYTES_MAX:
            raise LimitExceededError(
                f"column {field.name} would hold {size} bytes in one partition, {TEXT_BYTES_MAX} are possible; create the table with more PARTITIONS",
                column=field.name,
            )
    # Arrow copies even a single array here, and only the part that it shows: its documented way to compact.
    return pa.concat_arrays(arrays)


def single_array(table: pa.Table, name: str) -> pa.Array:
    """A column as one array; copies only when it is in several chunks."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else concatenate(column.chunks, table.schema.field(name))


def _text_bytes(array: pa.Array) -> int:
    if len(array) == 0:
        return 0
    offsets = memoryview(array.buffers()[1]).cast("i")
    return int(offsets[array.offset + len(array)] - offsets[array.offset])
