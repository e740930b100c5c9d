"""The formats of files that a job can read, and how one file becomes a stream of batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, assert_never

import pyarrow as pa

from secateur.engine.exchange.batches import BATCH_ROWS
from secateur.errors import DagError, DataError
from secateur.partitioning.types.empty_rows import empty_batch
from secateur.partitioning.types.held_values import check_texts

_TEXT_BYTES: Final = 1 << 20


class SourceFormat(StrEnum):
    """The format of a file's content."""

    PARQUET = "parquet"
    CSV = "csv"
    """CSV files with a header line; types are inferred from each file's first block, unless a schema is given."""
    ARROW = "arrow"
    """Arrow IPC files (also known as Feather version 2)."""
    TEXT = "text"
    """UTF-8 lines: one column ``line`` of strings, without line ends."""


_OF_SUFFIX: Final = {
    ".parquet": SourceFormat.PARQUET,
    ".pq": SourceFormat.PARQUET,
    ".csv": SourceFormat.CSV,
    ".arrow": SourceFormat.ARROW,
    ".feather": SourceFormat.ARROW,
    ".ipc": SourceFormat.ARROW,
    ".txt": SourceFormat.TEXT,
    ".log": SourceFormat.TEXT,
}

_TEXT_SCHEMA: Final = pa.schema([("line", pa.string())])


def file_format(name: str | None, pattern: str) -> SourceFormat:
    """Return the format with the given name or, without a name, that of the pattern's suffix.

    Raises:
        DagError: There is no such format, or the suffix does not determine one.
    """
    known = ", ".join(repr(str(form)) for form in SourceFormat)
    if name is None:
        found = _OF_SUFFIX.get(Path(pattern).suffix.lower())
        if found is None:
            raise DagError(
                f"file_source({pattern!r}): the suffix does not say the format; pass format=, one of {known}"
            )
        return found
    try:
        return SourceFormat(name)
    except ValueError:
        raise DagError(f"file_source({pattern!r}): there is no format {name!r}; it is one of {known}") from None


def read_file(
    path: str, form: SourceFormat, columns: Sequence[str] | None, schema: pa.Schema | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches; at least one batch, so that the schema is known.

    Args:
        path: The path of one file on this machine.
        form: Its format.
        columns: The columns to read, in order; None for all. Only these are read from Parquet and Arrow files.
        schema: The schema to read it with; None: its own.

    Raises:
        DagError: A column is not there; names the file.
    """
    match form:
        case SourceFormat.TEXT:
            return _lines(path)
        case SourceFormat.PARQUET | SourceFormat.CSV | SourceFormat.ARROW:
            return _table_rows(path, form, columns, schema)
        case _:
            assert_never(form)


def _table_rows(
    path: str, form: SourceFormat, columns: Sequence[str] | None, schema: pa.Schema | None
) -> Iterator[pa.RecordBatch]:
    import pyarrow.dataset as pads  # here, because it imports pandas: a quarter of a second of each process

    file = pads.dataset([path], schema=schema, format="ipc" if form is SourceFormat.ARROW else str(form))
    missing = [name for name in columns or () if name not in file.schema.names]
    if missing:
        raise DagError(f"file {path} has no column {missing[0]!r}; it has {', '.join(file.schema.names)}")
    names = file.schema.names if columns is None else list(columns)
    rows = 0
    # One batch ahead: the rows that are read and not yet taken stay few for files of any size.
    for batch in file.scanner(
        columns=names, batch_size=BATCH_ROWS, batch_readahead=1, fragment_readahead=1
    ).to_batches():
        if batch.num_rows:
            _check(batch, path, form, rows + 1)
            rows += batch.num_rows
            yield batch
    if not rows:
        yield empty_batch(pa.schema([file.schema.field(name) for name in names]))


def _check(batch: pa.RecordBatch, path: str, form: SourceFormat, first_row: int) -> None:
    """Arrow maps files of its own as they are; of the other formats it makes the arrays itself, but not the texts."""
    try:
        if form is SourceFormat.ARROW:
            batch.validate(full=True)
        else:
            check_texts(batch, first_row)
    except DataError as error:
        raise DataError(f"file {path}, {error.message}", **error.details) from error
    except pa.ArrowInvalid as error:
        raise DataError(
            f"file {path} contradicts itself, and is damaged or was not written by Arrow: {error}"
        ) from error


def _lines(path: str) -> Iterator[pa.RecordBatch]:
    rows = 0
    with Path(path).open(encoding="utf-8", newline=None) as file:
        while lines := file.readlines(_TEXT_BYTES):
            rows += len(lines)
            yield pa.record_batch([pa.array([line.rstrip("\n") for line in lines], pa.string())], schema=_TEXT_SCHEMA)
    if not rows:
        yield empty_batch(_TEXT_SCHEMA)
