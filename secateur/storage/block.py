"""Memory for stored rows: one private mapping for each batch, returned to the system when its last reader is gone.

Partitions are replaced whole, and an allocator keeps memory that it gets back: after a table of 167 MB had been
replaced four times, the process held 4.4 times its size. With mappings it holds 1.1 times
(``benchmarks/storage/memory.py``). As a side effect a partition is one block of bytes, an Arrow stream, that can be
written or sent as it is.
"""

from __future__ import annotations

import mmap
from typing import Final

import pyarrow as pa

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
