"""Reads files with DuckDB as its own COPY does: CSV and parquet by position, JSON by name."""

from __future__ import annotations

import glob
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from secateur.client.copy.file_database import file_database, options_sql
from secateur.client.copy.file_options import OPTIONS, Direction
from secateur.errors import DataError, ProgrammingError
from secateur.partitioning.tables.identifier import quoted, text_literal
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.held_values import guarded_interval_sql, long_intervals_sql
from secateur.partitioning.types.result_type import ResultType, parse_result_type
from secateur.protocol.copy_file import CopyFile, CopyFormat

__all__ = ["read_batches"]

_BATCH_ROWS: Final = 65_536
_DOUBLE_DIGITS: Final = 15
"""Two different numbers of so many digits are different DOUBLEs."""
_NUMBER: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')


def read_batches(file: CopyFile, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """The rows of all files that the path names.

    They are all read before the first is given, on disk where they are many.

    Args:
        file: The file.
        columns: The columns that get its values, in order.

    Yields:
        Batches with the names of the columns; their types may have to be converted still.

    Raises:
        ProgrammingError: There is no such file here, it cannot be read, or an option cannot have its value.
        DataError: It is not of the format, has another number of columns, or a value that its column cannot hold.
    """
    with file_database(file, "read") as database:
        listed = ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)
        database.connection.execute(f"CREATE TABLE copied ({listed})")
        if file.format is CopyFormat.JSON and any(_is_wide_decimal(column.type) for column in columns):
            file = _with_long_numbers_as_texts(file, database.folder / "json")
        said = options_sql(file, OPTIONS[file.format, Direction.READ])
        database.connection.execute(f"COPY copied FROM {text_literal(file.path)} {said}")
        items = ", ".join(_exported(column) for column in columns)
        try:
            yield from database.connection.sql(f"SELECT {items} FROM copied").to_arrow_reader(_BATCH_ROWS)
        except (OSError, pa.ArrowException) as error:  # what DuckDB's stream makes of its errors
            raise DataError(f"{file.path!r} has a value that its column cannot hold: {error}") from error


def _exported(column: Column) -> str:
    """A column as Arrow can carry it, and otherwise an error: DuckDB's export would wrap some values round."""
    name, kind = quoted(column.name), parse_result_type(str(column.type))
    is_long = long_intervals_sql(name, kind)
    value = name if is_long is None else guarded_interval_sql(name, is_long)
    if column.type.contains((TypeKind.HUGEINT,)):
        value = f"CAST({name} AS {_with_decimals(kind)})"
    return f"{value} AS {name}"


def _with_decimals(kind: ResultType) -> str:
    """The text of a type with DECIMAL(38,0) in place of HUGEINT, at any depth."""
    return "DECIMAL(38,0)" if kind.text == TypeKind.HUGEINT.value else kind.text_with(_with_decimals)


def _is_wide_decimal(type_: SqlType) -> bool:
    return any(map(_is_wide_decimal, type_.parts)) or (
        type_.kind is TypeKind.DECIMAL and type_.precision > _DOUBLE_DIGITS
    )


def _with_long_numbers_as_texts(file: CopyFile, folder: Path) -> CopyFile:
    """Copies of JSON files in which numbers of more digits than a DOUBLE has are texts, which DuckDB converts exactly.

    DuckDB reads every number with a fraction as a DOUBLE, also where the column is a DECIMAL of 38 digits.
    """
    path, said = file.path, dict(file.given)
    compression = str(said.pop("COMPRESSION", "auto")).lower()
    codec = {"auto": "detect", "auto_detect": "detect", "none": None, "uncompressed": None}.get(
        compression, compression
    )
    paths = sorted(glob.glob(path)) if glob.has_magic(path) else [path]  # noqa: PTH207 - absolute ones, too
    folder.mkdir()
    try:
        for number, source in enumerate(paths):
            with (
                pa.input_stream(source, compression=codec) as stream,
                (folder / f"{number:08}.json").open("wb") as copy,
            ):
                for line in io.BufferedReader(stream):
                    copy.write(_NUMBER.sub(_long_as_text, line))
    except (OSError, ValueError) as error:  # Arrow's are some of these
        raise ProgrammingError(
            f"{path!r} cannot be read on the machine of this client, where COPY reads: {error}"
        ) from error
    if not paths:
        raise ProgrammingError(f"no file matches {path!r} on the machine of this client, where COPY reads")
    return CopyFile(str(folder / "*.json"), file.format, tuple(said.items()))


def _long_as_text(found: re.Match[bytes]) -> bytes:
    token = found[0]
    is_long = not token.startswith(b'"') and sum(48 <= byte <= 57 for byte in token) > _DOUBLE_DIGITS
    return b'"%s"' % token if is_long else token
