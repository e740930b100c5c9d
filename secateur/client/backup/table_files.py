"""The Parquet files of one table in a backup."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from secateur.client.backup.manifest import BackedUpFile, checksum
from secateur.client.backup.parquet_form import parquet_schema, to_parquet

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
