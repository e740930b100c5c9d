"""The files of a backup: the manifest, and the Parquet files of each table.

Every type has the form that Arrow gives it, except INTERVAL: Parquet's own intervals have milliseconds, and ours
microseconds. An INTERVAL is a struct of months, days and nanoseconds, inside of other types as well.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from secateur.errors import DataError, NotSupportedError, ProgrammingError
from secateur.partitioning.types.arrow_layout import (
    INTERVAL_LAYOUT,
    interval_cells,
    map_leaf_types,
    map_leaves,
    with_parts,
)
from secateur.protocol.codec import from_json

MANIFEST: Final = "manifest.json"
FORMAT: Final = "secateur-backup"
VERSION: Final = 1
_READ_BYTES: Final = 1 << 20


class BackedUpColumn(msgspec.Struct, frozen=True):
    """A column: its name, the SQL text of its type, and whether it may hold NULL."""

    name: str
    type: str
    nullable: bool


class BackedUpIndex(msgspec.Struct, frozen=True):
    """A secondary index; it has no rows of its own."""

    name: str
    columns: tuple[str, ...]


class BackedUpRange(msgspec.Struct, frozen=True):
    """A partition of a table with ranges: its number in the cluster that was backed up, and its range as text.

    A restored table has the same ranges, and may number them in another way.
    """

    partition: int
    range: str | None


class BackedUpFile(msgspec.Struct, frozen=True):
    """A Parquet file with rows of one table, by its path within the folder of the backup."""

    path: str
    rows: int
    bytes: int
    sha256: str


class BackedUpTable(msgspec.Struct, frozen=True):
    """A table.

    Attributes:
        name: Its name.
        sql: The CREATE TABLE statement that makes it.
        columns: Its columns in order.
        primary_key: The columns of its key.
        partitioning: The text after PARTITION BY; None for a replicated table.
        ranges: Its partitions, if it has ranges.
        backups: Copies beside the primary.
        replicated: Whether every member has a full copy.
        indexes: Its indexes.
        rows: Its rows in all files.
        files: The files; none for a table without rows.
    """

    name: str
    sql: str
    columns: tuple[BackedUpColumn, ...]
    primary_key: tuple[str, ...]
    partitioning: str | None
    ranges: tuple[BackedUpRange, ...]
    backups: int
    replicated: bool
    indexes: tuple[BackedUpIndex, ...]
    rows: int
    files: tuple[BackedUpFile, ...]


class BackedUpDefinition(msgspec.Struct, frozen=True):
    """A view or a named type, by the statement that makes it."""

    name: str
    sql: str


class Manifest(msgspec.Struct, frozen=True):
    """The content of a backup.

    It is a JSON document, ``manifest.json``, which is written after all files. A folder without it is no backup.

    Attributes:
        format: :data:`FORMAT`.
        version: The version of this format.
        created: When the backup began, in UTC as ISO 8601.
        tables: The tables.
        views: The views, each behind those that it reads as far as the order of their making shows.
        types: The named types.
    """

    format: str
    version: int
    created: str
    tables: tuple[BackedUpTable, ...]
    views: tuple[BackedUpDefinition, ...] = ()
    types: tuple[BackedUpDefinition, ...] = ()

    def encoded(self) -> bytes:
        """The document, indented for people."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a backup.

    Raises:
        ProgrammingError: The folder is no complete backup, or cannot be read.
        DataError: The manifest is damaged.
        NotSupportedError: It is of a newer version.
    """
    path = folder / MANIFEST
    try:
        encoded = path.read_bytes()
    except OSError as error:
        raise ProgrammingError(
            f"{str(folder)!r} is no backup on the machine of this client, where RESTORE reads: a complete backup has"
            f" the file {MANIFEST}: {error}"
        ) from error
    try:
        header = from_json(encoded, _Header)
        if header.format != FORMAT:
            raise DataError(f"{str(path)!r} is of the format {header.format!r}, expected {FORMAT!r}")
        if header.version != VERSION:
            raise NotSupportedError(
                f"{str(path)!r} has version {header.version} of the format; this client reads version {VERSION}:"
                " restore it with the secateur that made it"
            )
        manifest = from_json(encoded, Manifest)
    except msgspec.DecodeError as error:
        raise DataError(f"{str(path)!r} is damaged: {error}") from error
    root = folder.resolve()
    for file in (file for table in manifest.tables for file in table.files):
        if not (folder / file.path).resolve().is_relative_to(root):
            raise DataError(f"{str(path)!r} is damaged: the file {file.path!r} is outside of the backup")
    return manifest


def checksum(path: Path) -> str:
    """The SHA-256 digest of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()


class _Header(msgspec.Struct, frozen=True):
    """The part of the document that every version has."""

    format: str
    version: int


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
    return pa.schema([field.with_type(map_leaf_types(field.type, _stored)) for field in schema])


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


def _stored(kind: pa.DataType) -> pa.DataType:
    return _PARTS if kind == _INTERVAL else kind


def _has_interval(kind: pa.DataType) -> bool:
    return kind == _INTERVAL or any(_has_interval(kind.field(index).type) for index in range(kind.num_fields))


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
