"""Splits tables into batches: large enough to be worth a Python call, small enough to flow.

It also measures the bytes of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final
from weakref import ref

import pyarrow as pa

from secateur.partitioning.tables.identifier import told_apart
from secateur.partitioning.types.empty_rows import empty_batch

BATCH_ROWS: Final = 65_536

SMALL_BYTES_MAX: Final = 1 << 16
"""A batch up to this weighs what it holds: finding that out again costs less than remembering it."""

_BATCH_BYTES: Final = 1 << 20

_known: tuple[ref[pa.RecordBatch] | None, int] = (None, 0)


def batches_of(table: pa.Table, rows_max: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table in batches of up to ``rows_max``; a table without rows yields one empty batch.

    Chunks that are large enough are sliced without a copy; runs of small ones, as many partitions make them, are
    combined. The empty batch carries the schema.
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


def small_batches_of(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Like :func:`batches_of`, in batches of about a megabyte.

    Queues exceed their bounds by up to a batch, and a row may be large.
    """
    return batches_of(table, min(BATCH_ROWS, max(1, table.num_rows * _BATCH_BYTES // max(table.nbytes, 1))))


def row_dicts(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows by the names of their columns; of columns of one name, the second is ``a_1``."""
    names = batch.schema.names
    if len(set(names)) < len(names):
        batch = batch.rename_columns(list(told_apart(names)))
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def bytes_of(batch: pa.RecordBatch) -> int:
    """The bytes of a batch, for bounds and metrics.

    Above 64 KiB the bytes of its values, which are not counted again for the last batch given to
    :func:`remember_bytes`. A batch over smaller buffers counts with its whole buffers, even if it is a slice of them:
    it keeps them alive, and ``nbytes`` takes 2 us a column, most of what a small batch costs on its way, while this
    takes 0.2 us.
    """
    held: int = batch.get_total_buffer_size()
    if held <= SMALL_BYTES_MAX:
        return held
    known, size = _known
    if known is not None and known() is batch:
        return size
    width = _row_bits(batch.schema)
    return batch.nbytes if width is None else batch.num_rows * width // 8


def remember_bytes(batch: pa.RecordBatch, size: int) -> None:
    """Remember the bytes of a batch above :data:`SMALL_BYTES_MAX` that a processor is about to get.

    The processor usually keeps it or passes it on at once.

    Where columns have no fixed width, counting releases the GIL for a moment: if other threads wait for it, getting it
    back takes longer than the counting.
    """
    global _known
    _known = (ref(batch), size)


@lru_cache(maxsize=256)
def _row_bits(schema: pa.Schema) -> int | None:
    """The bits of a row's values; None if they are not the same in every row."""
    if any(pa.types.is_dictionary(kind) for kind in schema.types):
        return None
    try:
        return sum(kind.bit_width for kind in schema.types)
    except ValueError:
        return None


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
