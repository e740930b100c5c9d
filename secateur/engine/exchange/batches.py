"""Splits tables into batches: large enough to be worth a Python call, small enough to flow.

It also measures the bytes of a batch, and has the buffer in which processors keep batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final
from weakref import ref

import pyarrow as pa

from secateur.errors import DagError
from secateur.partitioning.types.arrow_layout import empty_batch
from secateur.partitioning.types.sql_text import told_apart

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


class RowBuffer:
    """Collects batches that agree in the names and types of their columns.

    They may differ in properties that change no value: nullability, metadata, the dictionary of a dictionary column;
    and a column may be of type ``null`` in some.

    Attributes:
        rows: Rows held.
        bytes: Bytes held, as :func:`~secateur.engine.exchange.batches.bytes_of` counts them.
        schema: The schema of the rows held now or taken before; None before the first batch.
    """

    __slots__ = ("_batches", "bytes", "rows", "schema")

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.bytes = 0
        self.schema: pa.Schema | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep a batch; of one without rows only the schema.

        Raises:
            DagError: Its columns are not those of the batches before.
        """
        if self.schema is None:
            self.schema = batch.schema
        elif not self.schema.equals(batch.schema):
            self.schema = _unified(self.schema, batch.schema)
        if batch.num_rows:
            self._batches.append(batch)
            self.rows += batch.num_rows
            self.bytes += bytes_of(batch)

    def take(self) -> pa.Table | None:
        """All rows held, in the order of arrival, and empty the buffer; None when no batch has come yet."""
        if self.schema is None:
            return None
        schema = self.schema
        held, self._batches = self._batches, []
        self.rows = self.bytes = 0
        return pa.Table.from_batches(
            [batch if batch.schema.equals(schema) else batch.cast(schema) for batch in held], schema
        )


def together(first: pa.Table | None, second: pa.Table) -> pa.Table:
    """The rows of one table followed by those of another with the same columns, as :class:`RowBuffer` means it.

    Copies nothing.
    """
    if first is None:
        return second
    if first.schema.equals(second.schema):
        return pa.concat_tables([first, second])
    schema = _unified(first.schema, second.schema)
    return pa.concat_tables([first.cast(schema), second.cast(schema)])


def _unified(first: pa.Schema, second: pa.Schema) -> pa.Schema:
    if first.names != second.names:
        raise DagError(
            f"batches of different columns arrived: {', '.join(first.names)}, then {', '.join(second.names)}; select"
            " the same ones upstream"
        )
    fields = []
    for one, other in zip(first, second, strict=True):
        if one.type.equals(other.type) or pa.types.is_null(other.type):
            fields.append(pa.field(one.name, one.type))
        elif pa.types.is_null(one.type):
            fields.append(pa.field(one.name, other.type))
        else:
            raise DagError(
                f"column {one.name!r} arrived as {one.type} and as {other.type}; cast it to one type upstream, for"
                " example in map_batches()"
            )
    return pa.schema(fields)
