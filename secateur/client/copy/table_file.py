"""Opens a file of rows without a table that says what its columns are: they are those of the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from secateur.client.copy.file_database import file_database
from secateur.errors import DataError, ProgrammingError
from secateur.partitioning.tables.identifier import text_literal
from secateur.protocol.copy_file import CopyFile, CopyFormat

__all__ = ["FORMATS", "TableFile", "open_table_file"]

_BATCH_ROWS: Final = 65_536
_READERS: Final = {CopyFormat.CSV: "read_csv", CopyFormat.JSON: "read_json"}
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
FORMATS: Final = tuple(dict.fromkeys(_ENDINGS.values()))
"""The formats that can be opened."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """An open file.

    Attributes:
        reader: Its rows, which can be read once; it has their columns as well.
        rows: How many they are; None for a format that does not say it before they are read.
    """

    reader: pa.RecordBatchReader
    rows: int | None


@contextmanager
def open_table_file(path: Path, file_format: str | None = None) -> Iterator[TableFile]:
    """Open a file for the length of the block.

    Args:
        path: The file; it may be compressed with gzip or zstd if it is CSV or JSON.
        file_format: One of :data:`FORMATS`; None takes it from the ending of the name.

    Raises:
        ProgrammingError: There is no such file, it cannot be read, or its format is not known.
        DataError: It is not of the format.
    """
    if not path.is_file():
        raise ProgrammingError(f"there is no file {str(path)!r}")
    match file_format or _format_of(path):
        case "parquet":
            with _arrow_errors(path, "parquet"), pyarrow.parquet.ParquetFile(path) as parquet:
                batches = parquet.iter_batches(_BATCH_ROWS)
                reader = pa.RecordBatchReader.from_batches(parquet.schema_arrow.remove_metadata(), batches)
                yield TableFile(reader, parquet.metadata.num_rows)
        case "arrow":
            with _arrow_errors(path, "arrow"), pa.memory_map(str(path)) as source:
                yield TableFile(_arrow_reader(source), None)
        case "csv" | "json" as kind:
            form = CopyFormat(kind)
            with file_database(CopyFile(str(path), form, ()), "read") as database, _arrow_errors(path, kind):
                relation = database.connection.sql(f"SELECT * FROM {_READERS[form]}({text_literal(str(path))})")
                yield TableFile(relation.to_arrow_reader(_BATCH_ROWS), None)
        case other:
            raise ProgrammingError(f"there is no format {other!r}; there is {', '.join(FORMATS)}")


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
def _arrow_errors(path: Path, file_format: str) -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as error:
        raise DataError(f"{str(path)!r} cannot be read as {file_format}: {error}") from error
    except OSError as error:
        raise ProgrammingError(f"{str(path)!r} cannot be read as {file_format}: {error}") from error
