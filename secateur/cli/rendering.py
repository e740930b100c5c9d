"""Writes rows to the terminal or into a pipe: as a table, CSV, JSON or an Arrow stream."""

from __future__ import annotations

import csv
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec
import pyarrow as pa
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from secateur.cli.failures import CommandError
from secateur.client.dbapi.cursor import Cursor
from secateur.http.json_values import json_value_of
from secateur.partitioning.tables.identifier import told_apart
from secateur.protocol.copy_file import CopyFile, CopyFormat
from secateur.protocol.statements import ResultColumn

_FETCHED: Final = 10_000
_LEGIBLE_CHARS: Final = 16
"""A column of a table may fold its values to so many; below that a row takes a line for each column."""
_TABLE_ROWS_MAX: Final = 10_000
"""Rows of a table: it is drawn when all of them are known."""


class OutputFormat(StrEnum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


def write_rows(cursor: Cursor, output_format: OutputFormat, *, into: TextIO | None = None) -> int:
    """Write the rows of a result, as they come unless it is a table.

    Args:
        cursor: Has executed a statement with rows.
        output_format: ``csv`` is as COPY writes it: a line with the names, NULL an empty field, and an empty text
            ``""``; ``json`` is one array of objects; its values are those of :mod:`secateur.http.json_values`;
            ``arrow`` is an Arrow IPC stream. Of columns of one name, the second is ``a_1`` in CSV and JSON, as COPY
            writes them.
        into: Where; None for standard output.

    Returns:
        How many rows were written.

    Raises:
        CommandError: An Arrow stream would go to a terminal.
    """
    stream = into or sys.stdout
    match output_format:
        case OutputFormat.TABLE:
            return _write_table(cursor, stream)
        case OutputFormat.CSV:
            return _write_csv(cursor, stream)
        case OutputFormat.JSON:
            return _write_json(cursor, stream)
        case OutputFormat.ARROW:
            return _write_arrow(cursor, stream)


def print_done(text: str, record: Mapping[str, Any], *, as_json: bool) -> None:
    """Tell what a command has done: in words on standard error, or as JSON on standard output."""
    if as_json:
        typer.echo(msgspec.json.encode(record).decode())
    else:
        typer.echo(text, err=True)


def print_records(records: Sequence[Mapping[str, Any]], *, as_json: bool, empty: str) -> None:
    """Print what a command lists.

    Args:
        records: All with the same names.
        as_json: Write one JSON array instead of a table.
        empty: The sentence of an empty table.
    """
    if as_json:
        sys.stdout.write(msgspec.json.encode(records).decode() + "\n")
    elif not records:
        sys.stdout.write(empty + "\n")
    else:
        _draw(list(records[0]), [list(record.values()) for record in records], sys.stdout)


def _columns(cursor: Cursor) -> list[str]:
    return [column[0] for column in cursor.description or ()]


def _rows(cursor: Cursor) -> Iterator[Sequence[Any]]:
    while rows := cursor.fetchmany(_FETCHED):
        yield from rows


def _as_json(cursor: Cursor) -> Callable[[Sequence[Any]], list[Any]]:
    """The function that makes the values of a row those of JSON."""
    encoders = [json_value_of(column[1]) for column in cursor.description or ()]
    return lambda row: [encode(value) for encode, value in zip(encoders, row, strict=True)]


def _as_texts(cursor: Cursor) -> Callable[[Sequence[Any]], list[Any]]:
    """The function that makes lists, structs and maps of a row JSON, and bytes hexadecimal."""
    encoders = [json_value_of(column[1]) for column in cursor.description or ()]

    def texts(row: Sequence[Any]) -> list[Any]:
        return [
            msgspec.json.encode(encode(value)).decode() if isinstance(value, (list, dict, tuple)) else value
            for encode, value in zip(encoders, row, strict=True)
        ]

    return texts


def _text_of(value: Any) -> str:
    """A value as tables have it; that of NULL is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value.hex() if isinstance(value, bytes) else str(value)


def _write_table(cursor: Cursor, stream: TextIO) -> int:
    rows = cursor.fetchmany(_TABLE_ROWS_MAX + 1)
    shown = list(map(_as_texts(cursor), rows[:_TABLE_ROWS_MAX]))
    _draw(_columns(cursor), shown, stream)
    if len(rows) > len(shown):
        cursor.close()
        sys.stderr.write(
            f"only the first {_TABLE_ROWS_MAX:,} rows are shown: add LIMIT, or write all with --format csv\n"
        )
    return len(shown)


def _draw(columns: Sequence[str], rows: Sequence[Sequence[Any]], stream: TextIO) -> None:
    console = Console(file=stream, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 2 * _width_of(columns, rows))  # nobody looks at a pipe through a window
    elif console.width < _width_of(columns, rows, _LEGIBLE_CHARS):
        for number, row in enumerate(rows, 1):
            _draw_alone(number, columns, row, console)
        return
    table = Table(show_edge=True, header_style="bold")
    for position, name in enumerate(columns):
        is_number = any(isinstance(row[position], (int, float, Decimal)) for row in rows)
        table.add_column(escape(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    console.print(table)


def _draw_alone(number: int, columns: Sequence[str], row: Sequence[Any], console: Console) -> None:
    """A row as one line for each column, where side by side they would be too narrow to be read."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in zip(columns, row, strict=True):
        grid.add_row(escape(name), _cell(value))
    console.print(f"row {number:,}", style="dim")
    console.print(grid)


def _cell(value: Any) -> Text:
    return Text("NULL", style="dim") if value is None else Text(_text_of(value))


def _width_of(columns: Sequence[str], rows: Sequence[Sequence[Any]], most: int | None = None) -> int:
    """Characters of a table: of each column its longest value, or ``most``, which is folded then."""
    widths = [
        max([len(name), *(len(_text_of(row[position])) for row in rows), 4]) for position, name in enumerate(columns)
    ]
    return sum(width if most is None else min(width, most) for width in widths) + 3 * len(widths) + 1


def _write_csv(cursor: Cursor, stream: TextIO) -> int:
    from secateur.client.copy.writing import write_file  # DuckDB, which a table on the terminal need not wait for

    csv.writer(stream, lineterminator="\n").writerow(told_apart(_columns(cursor)))
    columns = [ResultColumn(column[0], str(column[1])) for column in cursor.description or ()]
    count = 0
    with tempfile.TemporaryDirectory(prefix="secateur-csv-") as folder:
        file = CopyFile(str(Path(folder) / "rows"), CopyFormat.CSV, (("HEADER", False),))
        for batch in cursor.fetch_record_batch(_FETCHED):
            count += write_file(file, [pa.Table.from_batches([batch])], columns)
            with Path(file.path).open(encoding="utf-8", newline="") as rows:
                shutil.copyfileobj(rows, stream)
    return count


def _write_json(cursor: Cursor, stream: TextIO) -> int:
    names, count = list(told_apart(_columns(cursor))), 0
    stream.write("[")
    for row in map(_as_json(cursor), _rows(cursor)):
        stream.write(",\n" if count else "\n")
        stream.write(msgspec.json.encode(dict(zip(names, row, strict=True))).decode())
        count += 1
    stream.write("\n]\n" if count else "]\n")
    return count


def _write_arrow(cursor: Cursor, stream: TextIO) -> int:
    if stream.isatty():
        raise CommandError("an Arrow stream is not for a terminal: redirect it into a file")
    count = 0
    reader = cursor.fetch_record_batch()
    with pa.ipc.new_stream(stream.buffer, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            count += batch.num_rows
    return count
