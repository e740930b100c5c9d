"""The Parquet files of one table in a backup.

Every type has the form that Arrow gives it, except INTERVAL: Parquet's own intervals have milliseconds, and ours
microseconds. An INTERVAL is a struct of months, days and nanoseconds, inside of other types as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from secateur.client.backup.manifest import BackedUpFile, checksum
from secateur.partitioning.types.nested_parts import INTERVAL_LAYOUT, interval_cells, map_leaves, with_parts

_FILE_BYTES: Final = 256 << 20
_GROUP_BYTES: Final = 32 << 20


class TableFiles:
    """Writes the rows of one table, file after file.

    Args:
        folder: The folder of the backup.
        name: The folder of the table within it.
        schema: The schema of the table.
        file_bytes: A table with more bytes of rows gets another file; of Arrow data, which Parquet stores in less.
        group_bytes: Bytes of rows that are held before they are written as one row group.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        schema: pa.Schema,
        *,
        file_bytes: int = _FILE_BYTES,
        group_bytes: int = _GROUP_BYTES,
    ) -> None:
        self._folder = folder
        self._name = name
        self._file_bytes_max = file_bytes
        self._group_bytes = group_bytes
        self._schema = parquet_schema(schema)
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._file_bytes = 0
        self._file_rows = 0
        self._count = 0
        self._path = ""
        self._writer: pq.ParquetWriter | None = None

    def add(self, rows: pa.Table) -> Iterator[BackedUpFile]:
        """Write rows; yields a file that they have completed."""
        for batch in rows.to_batches():
            self._held.append(batch)
            self._held_bytes += batch.nbytes
        if self._held_bytes >= self._group_bytes:
            self._flush()
        if self._file_bytes >= self._file_bytes_max:
            yield self._complete()

    def finish(self) -> Iterator[BackedUpFile]:
        """Write what is held; yields the last file, if it has rows."""
        self._flush()
        if self._writer is not None:
            yield self._complete()

    def close(self) -> None:
        """Close a file that will not be completed."""
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        held, self._held = self._held, []
        held = [to_parquet(batch) for batch in held if batch.num_rows]
        if not held:
            return
        if self._writer is None:
            self._path = f"{self._name}/part-{self._count:05}.parquet"
            self._writer = pq.ParquetWriter(self._folder / self._path, self._schema, compression="zstd")
            self._count += 1
        group = pa.Table.from_batches(held, self._schema)
        self._writer.write_table(group, row_group_size=group.num_rows)
        self._file_bytes += self._held_bytes
        self._file_rows += group.num_rows
        self._held_bytes = 0

    def _complete(self) -> BackedUpFile:
        assert self._writer is not None
        self._writer.close()
        self._writer = None
        path, rows = self._folder / self._path, self._file_rows
        self._file_bytes = self._file_rows = 0
        to_disk(path)
        return BackedUpFile(self._path, rows, path.stat().st_size, checksum(path))


def to_disk(path: Path) -> None:
    """Have a file, or the names in a folder, survive a failure of the machine."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
