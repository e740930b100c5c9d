"""Memory for stored rows: one private mapping for each batch, returned to the system when its last reader is gone.

Partitions are replaced whole, and an allocator keeps memory that it gets back: after a table of 167 MB had been
replaced four times, the process held 4.4 times its size. With mappings it holds 1.1 times
(``benchmarks/storage/memory.py``). As a side effect a partition is one block of bytes, an Arrow stream, that can be
written or sent as it is.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from secateur.errors import LimitExceededError

BLOCK_BYTES_MIN: Final = 64 * 1024
"""Below this, rounding up to pages would waste more than an allocator keeps."""

_COLUMN_BYTES_MIN: Final = 4 * 1024
"""Bytes per column below which describing the columns would take more than a tenth."""

_FLAGS: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)


def into_block(table: pa.Table) -> pa.Table | None:
    """Copy a table into a mapping of its own.

    Args:
        table: One chunk a column. Of slices, only the visible rows are copied.

    Returns:
        The copy, or None where a mapping does not pay because the table is small. Costs one pass over the bytes.
    """
    bytes_min = max(BLOCK_BYTES_MIN, _COLUMN_BYTES_MIN * table.num_columns)
    # First the cheap upper bound, in which a slice counts with all of its parent.
    if table.get_total_buffer_size() < bytes_min or message_bytes(table) < bytes_min:
        return None
    measure = pa.MockOutputStream()
    _write(table, measure)
    try:
        block = pa.py_buffer(mmap.mmap(-1, measure.size(), flags=_FLAGS))
    except OSError:
        # The number of mappings of a process is limited, its heap is not.
        return None
    _write(table, pa.FixedSizeBufferWriter(block))
    return pa.ipc.open_stream(block).read_all()


def message_bytes(table: pa.Table) -> int:
    """Bytes of a table as Arrow messages; slices count only their visible rows.

    An order of magnitude cheaper than ``Table.nbytes`` (10 us for 19 columns).
    """
    return sum(pa.ipc.get_record_batch_size(batch) for batch in table.to_batches())


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


TEXT_BYTES_MAX: Final = 2**31 - 1
"""Bytes that one VARCHAR or BLOB column of one partition can hold: Arrow's ``string`` counts in 32 bits."""


def gather(tables: Sequence[pa.Table], indices: pa.Array | None = None, *, at_rest: bool = False) -> pa.Table:
    """Copy rows of several tables into one that owns its memory.

    A slice of an Arrow table keeps the whole buffer behind it; 271 partitions sliced from one batch would keep the
    batch until the last of them is gone.

    Args:
        tables: At least one, all of one schema, in any chunks.
        indices: Row numbers in the concatenation of the tables, in the order wanted; None for all rows in their order.
        at_rest: Whether the rows will be kept, so that a block of memory of their own is worth its page faults (0.4 us
            per KiB); otherwise they come from Arrow's pool.

    Returns:
        One chunk a column.

    Raises:
        LimitExceededError: A text column would hold more than :data:`TEXT_BYTES_MAX` bytes.
    """
    together = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    if together.get_total_buffer_size() > TEXT_BYTES_MAX:
        for column, field in zip(together.columns, together.schema, strict=True):
            _check_text(column.chunks, field)
    rows = together.combine_chunks()
    if indices is not None:
        rows = rows.take(indices)
    block = into_block(rows) if at_rest else None
    if block is not None:
        return block
    # A selection is a copy already. Combining copies only columns in several chunks; of a few rows, `take` is the
    # fastest way to copy.
    return rows if indices is not None else rows.take(pa.array(range(rows.num_rows), pa.int64()))


def concatenate(arrays: Sequence[pa.Array], field: pa.Field) -> pa.Array:
    """Put arrays into one.

    Args:
        arrays: Arrays of the type of ``field``, or of its storage type.
        field: Name and type of the column.

    Raises:
        LimitExceededError: A text column would hold more than :data:`TEXT_BYTES_MAX` bytes.
    """
    if not arrays:
        return pa.array([], field.type)
    _check_text(arrays, field)
    return pa.concat_arrays(arrays)


def single_array(table: pa.Table, name: str) -> pa.Array:
    """A column as one array; copies only when it is in several chunks."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else concatenate(column.chunks, table.schema.field(name))


def _check_text(arrays: Sequence[pa.Array], field: pa.Field) -> None:
    if not (pa.types.is_string(field.type) or pa.types.is_binary(field.type)):
        return
    size = sum(_text_bytes(array) for array in arrays)
    if size > TEXT_BYTES_MAX:
        raise LimitExceededError(
            f"column {field.name} would hold {size} bytes in one partition, {TEXT_BYTES_MAX} are possible; create the"
            " table with more PARTITIONS",
            column=field.name,
        )


def _text_bytes(array: pa.Array) -> int:
    if len(array) == 0:
        return 0
    offsets = memoryview(array.buffers()[1]).cast("i")
    return int(offsets[array.offset + len(array)] - offsets[array.offset])
