"""Tables to batches of a good size, large enough to be worth a Python call, small enough to flow; and what a batch weighs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

__all__ = ["BATCH_ROWS", "batches_of", "bytes_of", "empty_batch"]

BATCH_ROWS: Final = 65_536

_SMALL_BYTES_MAX: Final = 1 << 16


def batches_of(table: pa.Table, rows_max: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """The rows of a table in batches of up to ``rows_max``; one without rows if the table has none, since a schema is information too.

    Chunks that are large enough are sliced without a copy; runs of small ones, as many partitions make them, are put together.
    """
    if not table.num_rows:
        yield empty_batch(table.schema)
        return
    small: list[pa.RecordBatch] = []
    small_rows = 0
    for batch in table.to_batches(max_chunksize=rows_max):
        if small and small_rows + batch.num_rows > rows_max:
            yield _together(small)
            small, small_rows = [], 0
        small.append(batch)
        small_rows += batch.num_rows
    if small:
        yield _together(small)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    return pa.RecordBatch.from_pylist([], schema=schema)


def bytes_of(batch: pa.RecordBatch) -> int:
    """The bytes of a batch, for bounds and metrics.

    Exact for more than 64 KiB. A batch over smaller buffers weighs what they do, also if it is a slice of them: it keeps them alive, and ``nbytes`` takes 2 us
    a column, most of what a small batch costs on its way, where this takes 0.2 us.
    """
    held: int = batch.get_total_buffer_size()
    return held if held <= _SMALL_BYTES_MAX else batch.nbytes


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
