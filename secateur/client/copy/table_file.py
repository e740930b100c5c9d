"""Opens a file of rows for a load: its columns are matched by name, its values are read by the types of the table.

Every format ends in Arrow. Parquet and Arrow files have types, which the load converts to those of the table. CSV and
JSON files have texts, which are converted here, and exactly: a text that its column would round or cut is refused, with
its line. Without a table, the types of such a file are those of all of its texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from secateur.client.copy.file_database import file_database
from secateur.client.copy.load_options import FORMATS, AskedFile, FileOptions, pattern_of
from secateur.client.copy.text_files import csv_rows, json_rows
from secateur.client.copy.text_values import TextRows
from secateur.errors import DataError, NullKeyError, ProgrammingError
from secateur.partitioning.tables.table import Column
from secateur.protocol.copy_file import CopyFile, CopyFormat

_BATCH_ROWS: Final = 65_536
_ENDINGS: Final = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


@dataclass(frozen=True, slots=True)
class TableFile:
    """An open file.

    Attributes:
        columns: Its columns: with the names and types of the table, and otherwise its own.
        reader: Its rows, which can be read once, in Arrow types that convert to those of the columns.
        rows: How many they are; None for a format that does not say it before they are read.
        hints: What to know about the types that were found for columns.
    """

    columns: tuple[Column, ...]
    reader: pa.RecordBatchReader
    rows: int | None
    hints: tuple[str, ...] = ()


@contextmanager
def open_table_file(
    path: Path,
    options: FileOptions | None = None,
    columns: Sequence[Column] | None = None,
    *,
    same_names: bool = False,
) -> Iterator[TableFile]:
    """Open a file for the length of the block.

    Args:
        path: The file; it may be compressed with gzip or zstd if it is CSV or JSON.
        options: What is said about it.
        columns: Those of the table that it is for; None finds out what it has.
        same_names: Whether an object of JSON that does not name a column of another object is an error; else it has
            NULL there.

    Raises:
        ProgrammingError: There is no such file, it cannot be read, its format is not known, or does not have an option
            that is said.
        UnknownColumnError: It has a column that the table lacks, or lacks one that is said.
        DataError: It is not of the format, or has a value that its column cannot hold, when that is read.
    """
    options = options or FileOptions()
    if not path.is_file():
        raise ProgrammingError(f"there is no file {str(path)!r}")
    file_format = options.file_format or _format_of(path)
    options.check(file_format)
    asked = AskedFile(path, options, columns, options.declared(), same_names)
    match file_format:
        case "arrow":
            with _errors_of(path, "arrow"), pa.memory_map(str(path)) as source:
                reader = _arrow_reader(source)
                yield TableFile(asked.columns_of(reader.schema), reader, None)
        case "parquet":
            with _errors_of(path, "parquet"), pyarrow.parquet.ParquetFile(path) as parquet:
                names = [parquet.schema.column(number).converted_type for number in range(len(parquet.schema))]
                if "INTERVAL" in names:  # which Arrow reads as bytes
                    with file_database(CopyFile(str(path), CopyFormat.PARQUET), "read") as database:
                        rows = database.connection.sql(f"FROM read_parquet({pattern_of(path)})")
                        reader = rows.to_arrow_reader(_BATCH_ROWS)
                        yield TableFile(asked.columns_of(reader.schema), reader, parquet.metadata.num_rows)
                        return
                batches = parquet.iter_batches(_BATCH_ROWS)
                reader = pa.RecordBatchReader.from_batches(parquet.schema_arrow.remove_metadata(), batches)
                yield TableFile(asked.columns_of(reader.schema), reader, parquet.metadata.num_rows)
        case kind:
            with file_database(CopyFile(str(path), CopyFormat(kind)), "read") as database:
                rows = (csv_rows if kind == "csv" else json_rows)(database, asked)
                with _errors_of(path, kind, rows):
                    columns = tuple(column for _, column in rows.columns)
                    yield TableFile(columns, rows.reader(), None, rows.hints)


def _arrow_reader(source: pa.MemoryMappedFile) -> pa.RecordBatchReader:
    """Read the file form, which has a magic word at its start, or the stream form of Arrow IPC."""
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    if is_file:
        file = pa.ipc.open_file(source)
        return pa.RecordBatchReader.from_batches(
            file.schema, (_checked(file.get_batch(number)) for number in range(file.num_record_batches))
        )
    stream = pa.ipc.open_stream(source)
    return pa.RecordBatchReader.from_batches(stream.schema, map(_checked, stream))


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Refuse offsets that point outside of their buffers, which would crash whoever follows them."""
    batch.validate(full=True)
    return batch


def _format_of(path: Path) -> str:
    endings = [ending.lower() for ending in path.suffixes if ending.lower() not in (".gz", ".zst")]
    found = _ENDINGS.get(endings[-1]) if endings else None
    if found is None:
        raise ProgrammingError(f"the name of {str(path)!r} does not say its format: name one of {', '.join(FORMATS)}")
    return found


@contextmanager
def _errors_of(path: Path, file_format: str, rows: TextRows | None = None) -> Iterator[None]:
    """Around the reading and loading of a file: errors name it, and the place of a NULL that may not be in texts."""
    try:
        yield
    except pa.ArrowException as error:
        raise DataError(f"{str(path)!r} cannot be read as {file_format}: {error}") from error
    except OSError as error:
        raise ProgrammingError(f"{str(path)!r} cannot be read as {file_format}: {error}") from error
    except (DataError, NullKeyError) as error:
        if error.message.startswith(str(path)):
            raise
        is_null = rows is not None and isinstance(error, NullKeyError)
        place = rows.place_of_null(str(error.details.get("column"))) if rows is not None and is_null else None
        raise type(error)(f"{place or path}: {error.message}", **error.details) from error
