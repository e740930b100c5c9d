"""Reads files with DuckDB as its own COPY does: CSV and Parquet by position, JSON by name.

A file goes into a temporary table by DuckDB's COPY, because its table functions do not read every file in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from secateur.client.copy.file_database import FileDatabase, file_database, options_sql
from secateur.client.copy.file_options import OPTIONS, Direction
from secateur.client.copy.json_texts import JsonObjects, place_in_json
from secateur.client.copy.text_rows import TextRows
from secateur.client.copy.text_values import TextConversion
from secateur.errors import DataError
from secateur.partitioning.tables.identifier import quoted, text_literal
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import TypeKind
from secateur.partitioning.types.held_values import guarded_interval_sql, long_intervals_sql
from secateur.partitioning.types.result_type import ResultType, parse_result_type
from secateur.protocol.copy_file import CopyFile, CopyFormat, OptionValue

_BATCH_ROWS: Final = 65_536
_AS_WRITTEN: Final[dict[str, OptionValue]] = {"QUOTE": '"', "ALLOW_QUOTED_NULLS": False}
"""The form in which COPY TO writes, unless the statement says otherwise.

DuckDB would guess the quote from the first 20,480 rows, and take an empty text for NULL.
"""


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
        if file.format is CopyFormat.JSON:
            yield from _json_rows(database, file, columns).reader()
            return
        # DuckDB reads no lists of a fixed length inside of structs; who stores the rows checks the length of each.
        columns = [Column(column.name, column.type.of_any_length) for column in columns]
        listed = ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)
        database.connection.execute(f"CREATE TABLE copied ({listed})")
        if file.format is CopyFormat.CSV:
            file = CopyFile(file.path, file.format, tuple({**_AS_WRITTEN, **dict(file.given)}.items()))
        said = options_sql(file, OPTIONS[file.format, Direction.READ])
        database.connection.execute(f"COPY copied FROM {text_literal(file.path)} {said}")
        items = ", ".join(_exported(column) for column in columns)
        try:
            yield from database.connection.sql(f"SELECT {items} FROM copied").to_arrow_reader(_BATCH_ROWS)
        except (OSError, pa.ArrowException) as error:  # what DuckDB's stream makes of its errors
            raise DataError(f"{file.path!r} has a value that its column cannot hold: {error}") from error


def _json_rows(database: FileDatabase, file: CopyFile, columns: Sequence[Column]) -> TextRows:
    """The rows of JSON files, whose values DuckDB would read as DOUBLEs where they are numbers with a fraction."""
    said = dict(file.given)
    lenient = bool(said.get("IGNORE_ERRORS"))
    options = [f"ignore_errors = {str(lenient).lower()}"]
    if "ARRAY" in said:
        options.append(f"format = '{'array' if said['ARRAY'] else 'unstructured'}'")
    if "COMPRESSION" in said:
        options.append(f"compression = {text_literal(str(said['COMPRESSION']))}")
    if "MAXIMUM_OBJECT_SIZE" in said:
        options.append(f"maximum_object_size = {said['MAXIMUM_OBJECT_SIZE']}")
    source = f"read_json_objects({text_literal(file.path)}, {', '.join(options)})"
    database.connection.execute(f"CREATE TABLE objects AS FROM {source}")
    records = {"false": False, "auto": None}.get(str(said.get("RECORDS", True)).lower(), True)

    path = Path(file.path)

    def place(number: int, name: str | None) -> str:
        return f"{path}:{place_in_json(path, number, name)}" if path.is_file() else f"{path}: record {number + 1}"

    JsonObjects(database.connection, place, lenient, records).put_texts(columns)
    formats = (None if name not in said else str(said[name]) for name in ("DATEFORMAT", "TIMESTAMPFORMAT"))
    return TextRows(
        database.connection,
        "texts",
        tuple((f"c{number}", column) for number, column in enumerate(columns)),
        TextConversion(False, *formats),
        lambda row, position: place(row, columns[position].name),
        in_parts=True,
        lenient=lenient,
    )


def _exported(column: Column) -> str:
    """A column as Arrow can carry it, and otherwise an error: DuckDB's export would wrap some values round."""
    name, kind = quoted(column.name), parse_result_type(str(column.type))
    is_long = long_intervals_sql(name, kind)
    value = name if is_long is None else guarded_interval_sql(name, is_long)
    if column.type.contains((TypeKind.HUGEINT,)):
        value = f"CAST({name} AS {with_decimals(kind)})"
    return f"{value} AS {name}"


def with_decimals(kind: ResultType) -> str:
    """The text of a type with DECIMAL(38,0) in place of HUGEINT, at any depth."""
    return "DECIMAL(38,0)" if kind.text == TypeKind.HUGEINT.value else kind.text_with(with_decimals)
