"""Writes a result to a file with DuckDB; the file appears under its name when it is complete."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from secateur.client.copy.file_database import file_database, options_sql
from secateur.client.copy.file_options import OPTIONS, Direction
from secateur.client.copy.reading import with_decimals
from secateur.errors import ProgrammingError
from secateur.partitioning.tables.identifier import quoted, text_literal, told_apart
from secateur.partitioning.types.held_values import long_intervals_sql
from secateur.partitioning.types.result_type import ResultType, parse_result_type
from secateur.partitioning.types.struct_offsets import without_struct_offsets
from secateur.protocol.copy_file import CopyFile, CopyFormat
from secateur.protocol.statements import ResultColumn

if TYPE_CHECKING:
    import duckdb


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
        Error: As :func:`~secateur.client.copy.writing.write_file`.
    """
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(told_apart(column.name for column in columns))
    yield head.getvalue().encode()
    with TemporaryDirectory(prefix="secateur-csv-") as folder:
        file = CopyFile(str(Path(folder) / "rows"), CopyFormat.CSV, (("HEADER", False),))
        for table in tables:
            write_file(file, [table], columns)
            yield Path(file.path).read_bytes()
