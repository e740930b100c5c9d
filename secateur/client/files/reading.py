"""Rows of files, batch by batch, as columns of a table: CSV and parquet by position, JSON by name, as the dialect has it."""

from __future__ import annotations

import csv
import glob
import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from secateur.client.files.file_options import FileFormat, FileOptions
from secateur.errors import DataError, ProgrammingError
from secateur.partitioning.table import Column

__all__ = ["read_batches"]

_DELIMITERS: Final = (",", "|", ";", "\t")
_LINES_AT_ONCE: Final = 10_000
_PARSED: Final = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_decimal,
    pa.types.is_string,
)
"""Types that Arrow's CSV reader makes of a text as the dialect does."""


def read_batches(options: FileOptions, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """The rows of all files that the path names, in the order of their names.

    Args:
        options: The file.
        columns: The columns that get its values, in order.

    Yields:
        Batches with the names of the columns; their types may have to be converted still.

    Raises:
        ProgrammingError: There is no such file here, or it cannot be read.
        DataError: It is not of the format, has another number of columns, or a value that its column cannot hold.
    """
    paths = sorted(glob.glob(options.path)) if glob.has_magic(options.path) else [options.path]  # noqa: PTH207 - absolute ones, too
    if not paths:
        raise ProgrammingError(f"no file matches {options.path!r} on the machine of this client, where COPY reads")
    for path in paths:
        try:
            match options.format:
                case FileFormat.CSV:
                    yield from _csv(path, options, columns)
                case FileFormat.PARQUET:
                    yield from _parquet(path, columns)
                case FileFormat.JSON:
                    yield from _json(path, columns)
        except OSError as error:
            if isinstance(error, pa.ArrowException):
                raise DataError(f"{path!r} does not read as {options.format.value}: {error}") from error
            raise ProgrammingError(f"{path!r} cannot be read on the machine of this client, where COPY reads: {error}") from error
        except (pa.ArrowException, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise DataError(f"{path!r} does not read as {options.format.value}: {error}") from error


def _csv(path: str, options: FileOptions, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    import pyarrow.csv as pacsv  # imported where it is used: clients that never copy need not load it

    with pa.input_stream(path, compression="detect") as source:
        first = _first_line(source)
    if not first:
        return
    delimiter = options.delimiter or _delimiter(first, options.quote, len(columns))
    names = [column.name for column in columns]
    parse = pacsv.ParseOptions(delimiter=delimiter, quote_char=options.quote or False, newlines_in_values=True)
    convert = pacsv.ConvertOptions(
        column_types={column.name: column.type.arrow if _is_parsed(column.type.arrow) else pa.string() for column in columns},
        null_values=[options.null],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    header = _has_header(first, delimiter, options, names, parse, convert) if options.header is None else options.header
    read = pacsv.ReadOptions(column_names=names, skip_rows=int(header))
    with pa.input_stream(path, compression="detect") as source:
        if header and len(source.read()) <= len(first.encode()):
            return
    with pa.input_stream(path, compression="detect") as source:
        yield from pacsv.open_csv(source, read_options=read, parse_options=parse, convert_options=convert)


def _first_line(source: Any) -> str:
    return str(io.TextIOWrapper(source, encoding="utf-8").readline())


def _delimiter(line: str, quote: str, count: int) -> str:
    """The one of the usual delimiters that makes as many values of a line as there are columns."""
    return next((delimiter for delimiter in _DELIMITERS if len(next(csv.reader([line], delimiter=delimiter, quotechar=quote or None))) == count), ",")


def _has_header(line: str, delimiter: str, options: FileOptions, names: Sequence[str], parse: Any, convert: Any) -> bool:
    """Whether the first line has names: those of the columns, or values that the columns cannot hold."""
    import pyarrow.csv as pacsv

    cells = next(csv.reader([line], delimiter=delimiter, quotechar=options.quote or None))
    if [cell.strip().casefold() for cell in cells] == [name.casefold() for name in names]:
        return True
    try:
        pacsv.read_csv(io.BytesIO(line.encode()), read_options=pacsv.ReadOptions(column_names=list(names)), parse_options=parse, convert_options=convert)
    except pa.ArrowInvalid:
        return len(cells) == len(names)
    return False


def _is_parsed(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in _PARSED)


def _parquet(path: str, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        found = file.schema_arrow.names
        if len(found) != len(columns):
            raise DataError(
                f"{path!r} has {len(found)} columns ({', '.join(found)}) for the {len(columns)} columns {', '.join(column.name for column in columns)}: "
                "name the columns behind the table"
            )
        for batch in file.iter_batches():
            yield pa.RecordBatch.from_arrays(batch.columns, names=[column.name for column in columns])


def _json(path: str, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    with pa.input_stream(path, compression="detect") as source:
        lines = io.TextIOWrapper(source, encoding="utf-8")
        objects = _objects(lines)
        while group := list(islice(objects, _LINES_AT_ONCE)):
            folded = [{str(name).casefold(): value for name, value in found.items()} for found in group]
            arrays = [_json_column([found.get(column.name.casefold()) for found in folded], column) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _objects(lines: io.TextIOWrapper) -> Iterator[dict[str, Any]]:
    first = lines.read(1)
    while first.isspace():
        first = lines.read(1)
    if first == "[":
        found = json.loads(first + lines.read())
        yield from (_checked(value) for value in found)
        return
    line = first + lines.readline()
    while line:
        if line.strip():
            yield _checked(json.loads(line))
        line = lines.readline()


def _checked(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"a JSON file of rows has objects, one a line or in an array; found {json.dumps(value)[:60]}")
    return value


def _json_column(values: list[Any], column: Column) -> pa.Array:
    kind = column.type.arrow
    try:
        if pa.types.is_string(kind):
            return pa.array([value if value is None or isinstance(value, str) else json.dumps(value) for value in values], kind)
        kinds = {type(value) for value in values} - {type(None)}
        if kinds == {str} and _is_parsed(kind):
            return pc.cast(pa.array(values, pa.string()), kind)
        if kinds <= {int, float} and (pa.types.is_decimal(kind) or pa.types.is_floating(kind)):
            return pc.cast(pa.array([None if value is None else repr(value) for value in values], pa.string()), kind)
        return pa.array(values)
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(f"column {column.name} is {column.type} and cannot hold a value of the file: {error}", column=column.name) from error
