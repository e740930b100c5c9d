"""The manifest of a backup: which tables it has, and which files have their rows.

It is a JSON document, ``manifest.json``, which is written after all files. A folder without it is no backup.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import msgspec

from secateur.errors import DataError, NotSupportedError, ProgrammingError
from secateur.protocol.decoders import from_json

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
    """A Parquet file with rows of one table.

    Attributes:
        path: Its path within the folder of the backup.
        rows: Its rows.
        bytes: Its size.
        sha256: The SHA-256 digest of its bytes, in hexadecimal.
    """

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
