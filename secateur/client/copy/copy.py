"""COPY from the client: files are read and written in this process.

Members never open a path that a user names. DuckDB reads and writes the files: code of our own for CSV and JSON, which
was tried first, returned other values for 7 of 32 types.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from secateur.client.copy.file_database import FileDatabase, file_database, options_sql
from secateur.client.copy.json_texts import JsonObjects, place_in_json
from secateur.client.copy.text_values import TextConversion, TextRows
from secateur.client.execution.execute import StatementCall
from secateur.client.execution.reads import RunOptions
from secateur.client.execution.select import run_select
from secateur.client.loads.load import LoadMode, load_rows
from secateur.client.session import Session
from secateur.errors import DataError, ProgrammingError
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.arrow_layout import without_struct_offsets
from secateur.partitioning.types.column_type import TypeKind
from secateur.partitioning.types.held_values import guarded_interval_sql, long_intervals_sql
from secateur.partitioning.types.result_type import ResultType, parse_result_type
from secateur.partitioning.types.sql_text import quoted, text_literal, told_apart
from secateur.protocol.copy_file import OPTIONS, CopyFile, CopyFormat, Direction, OptionValue
from secateur.protocol.statements import CopyFrom, CopyTo, ResultColumn, SelectStatement

if TYPE_CHECKING:
    import duckdb


_BATCH_ROWS: Final = 65_536
_AS_WRITTEN: Final[dict[str, OptionValue]] = {"QUOTE": '"', "ALLOW_QUOTED_NULLS": False}
"""The form in which COPY TO writes, unless the statement says otherwise.

DuckDB would guess the quote from the first 20,480 rows, and take an empty text for NULL.
"""


def read_batches(file: CopyFile, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """The rows of all files that the path names, for these columns in their order.

    They are read as DuckDB's own COPY does, CSV and Parquet by position and JSON by name: into a temporary table by its
    COPY, because its table functions do not read every file in the same way.

    They are all read before the first is given, on disk where they are many.

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


_KEPT_AS_TEXT: Final = re.compile(r"\b(?:UNION|VARIANT|GEOMETRY)\b")
"""Types whose values arrive as text that cannot be cast back to the type."""
_ALL_BEHIND_THE_POINT: Final = re.compile(r"DECIMAL\((\d+),\1\)")
_DIGITS_MAX: Final = 38
_PARQUET_INTERVALS: Final = (
    "an INTERVAL has microseconds, or is negative, and those of Parquet have whole milliseconds: write it as csv or"
    " json, or CAST it to VARCHAR"
)


def write_file(file: CopyFile, tables: Iterable[pa.Table], columns: Sequence[ResultColumn]) -> int:
    """Write tables, one after another, as they come. An existing file is replaced, unless an error occurs.

    Args:
        file: The file.
        tables: At least one, all with these columns, in the Arrow form of their types.
        columns: Names and types. Of columns of one name, DuckDB gives later ones a number behind it.

    Returns:
        Their rows.

    Raises:
        ProgrammingError: It cannot be written, or an option has an invalid value.
        NotSupportedError: A column of a type that the format has no form for.
        Error: An error of ``tables``.
    """
    rows = _Rows(iter(tables))
    path = Path(file.path)
    if not path.name:
        raise ProgrammingError(f"{file.path!r} is not the path of a file: COPY TO needs one")
    # A pipe or a device is written to directly. The suffix stays the last one: it determines the compression.
    is_replaced = path.is_file() or not path.exists()
    written = path.with_name(f".partial-{os.getpid()}-{path.name}") if is_replaced else path
    try:
        with file_database(file, "written") as database:
            database.connection.register("rows", rows.reader())
            query = _query(database.connection.table("rows"), columns, file.format)
            said = options_sql(file, OPTIONS[file.format, Direction.WRITE])
            try:
                # DuckDB's own temporary file would suffice for files that exist, but not for those that do
                # not.
                count = database.connection.execute(
                    f"COPY ({query}) TO {text_literal(str(written))} {said}"
                ).fetchall()[0][0]
            except Exception:
                rows.check()
                raise
        if is_replaced:
            written.replace(path)
    except OSError as error:
        raise ProgrammingError(
            f"{file.path!r} cannot be written on the machine of this client, where COPY writes: {error}"
        ) from error
    finally:
        if is_replaced:
            written.unlink(missing_ok=True)
    return int(count)


class _Rows:
    """Tables as one Arrow stream for DuckDB, which makes another error of one that is raised while it reads."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._first = next(tables)
        self._tables = tables
        self._failure: BaseException | None = None

    def reader(self) -> pa.RecordBatchReader:
        # Names may repeat in a result, and not in a table.
        schema = pa.schema([pa.field(f"c{index}", field.type) for index, field in enumerate(self._first.schema)])
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def check(self) -> None:
        """Raise the error of the tables, if there was one."""
        if self._failure is not None:
            raise self._failure

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            for table in chain([self._first], self._tables):
                yield from without_struct_offsets(table.rename_columns(schema.names)).to_batches()
        except BaseException as error:
            self._failure = error
            raise


def _query(relation: duckdb.DuckDBPyRelation, columns: Sequence[ResultColumn], form: CopyFormat) -> str:
    """The rows under their names, each column of its own type: Arrow has none for HUGEINT and some others."""
    items = []
    for index, (column, found) in enumerate(zip(columns, relation.types, strict=True)):
        value, kind = f"c{index}", parse_result_type(column.type)
        wanted = _WRITTEN[form](kind) if form in _WRITTEN else column.type
        if str(found) != wanted and _KEPT_AS_TEXT.search(column.type) is None:
            value = f"CAST({value} AS {wanted})"
        lossy = long_intervals_sql(value, kind, of_one=_lossy_in_parquet) if form is CopyFormat.PARQUET else None
        if lossy is not None:
            value = f"CASE WHEN {lossy} THEN error({text_literal(_PARQUET_INTERVALS)}) ELSE {value} END"
        items.append(f"{value} AS {quoted(column.name)}")
    return f"SELECT {', '.join(items)} FROM rows"


def _in_json(kind: ResultType) -> str:
    """The text of a type with digits before the point of each DECIMAL: DuckDB would write ``.5``, which is no JSON."""
    digits = _ALL_BEHIND_THE_POINT.fullmatch(kind.text)
    if digits is None:
        return kind.text_with(_in_json)
    return f"DECIMAL({int(digits[1]) + 1},{digits[1]})" if int(digits[1]) < _DIGITS_MAX else "VARCHAR"


_WRITTEN: Final = {CopyFormat.PARQUET: with_decimals, CopyFormat.JSON: _in_json}
"""The text of the type as which a column is written, where DuckDB writes its own type with a loss."""


def _lossy_in_parquet(interval: str) -> str:
    parts = ", ".join(
        f"extract({part} FROM {interval})" for part in ("year", "month", "day", "hour", "minute", "second")
    )
    is_finer = f"extract(microsecond FROM {interval}) % 1000 <> 0"
    return f"coalesce({is_finer} OR least({parts}) < 0, false)"


def csv_parts(tables: Iterable[pa.Table], columns: Sequence[ResultColumn]) -> Iterator[bytes]:
    """Yield a line with the names, then the rows of each table. NULL is an empty field, and an empty text ``""``.

    Args:
        tables: As they come; each is held, with its text, until the next is asked for.
        columns: Names and types.

    Raises:
        Error: As :func:`write_file`.
    """
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(told_apart(column.name for column in columns))
    yield head.getvalue().encode()
    with TemporaryDirectory(prefix="secateur-csv-") as folder:
        file = CopyFile(str(Path(folder) / "rows"), CopyFormat.CSV, (("HEADER", False),))
        for table in tables:
            write_file(file, [table], columns)
            yield Path(file.path).read_bytes()


_HELD_BYTES_MAX: Final = 256 << 20


def copy_from(session: Session, copy: CopyFrom) -> int:
    """Load the rows of files into a table: all of them, or none. Returns their number.

    Raises:
        ProgrammingError: A file is not to be had.
        DataError: It does not read, or has a value that its column cannot hold.
        Error: As :func:`~secateur.client.loads.load.load_rows`.
    """
    now = datetime.now(UTC)
    columns, schema = [copy.table.column(name) for name in copy.columns], copy.table.arrow_schema
    batches = (
        batch for read in read_batches(copy.file, columns) for batch in conform(read, copy.table, now=now).to_batches()
    )
    held: list[pa.RecordBatch] = []
    nbytes = 0
    for batch in batches:
        held.append(batch)
        nbytes += batch.nbytes
        if nbytes > _HELD_BYTES_MAX:
            stream = pa.RecordBatchReader.from_batches(schema, chain(held, batches))
            return load_rows(session, copy.table, stream, LoadMode.APPEND).rows
    # Held rows can be sent again, should partitions move meanwhile.
    return load_rows(session, copy.table, pa.Table.from_batches(held, schema=schema), LoadMode.APPEND).rows


def copy_to(call: StatementCall[CopyTo[SelectStatement]]) -> int:
    """Write the rows of a query into a file, as they come. Returns their number.

    Raises:
        ProgrammingError: The file cannot be written.
        Error: As :func:`~secateur.client.execution.select.run_select`.
    """
    copy = call.statement
    with closing(run_select(call.of(copy.select), RunOptions.ROWS_IN_PARTS).rows) as rows:
        return write_file(copy.file, rows.tables(), rows.columns)
