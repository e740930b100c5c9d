"""What commands write: rows as a table, CSV, JSON or an Arrow stream; and one message on standard error on failure."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from itertools import chain, zip_longest
from typing import Any, Final, ParamSpec, TextIO, TypeAlias, TypeVar

import msgspec
import pyarrow as pa
import typer
from rich.box import HEAVY_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.control import strip_control_codes
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from secateur.client.dbapi.cursor import Cursor
from secateur.client.dbapi.stats import QueryStats
from secateur.drawing.quantity import count_text
from secateur.errors import Error
from secateur.http.json_values import json_value_of
from secateur.partitioning.types.sql_text import told_apart
from secateur.protocol.statements import ResultColumn

P = ParamSpec("P")
R = TypeVar("R")

_INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ends, as shells have it."""

ROWS_SHOWN: Final = 40
"""Rows of a table on a terminal, unless the user wants others: what a glance takes in."""
_FETCHED: Final = 10_000
_COUNTED_MAX: Final = 1_000_000
"""Rows of a result that are read to be counted."""
_WIDE_CHARS: Final = 1 << 30
_LEGIBLE_CHARS: Final = 16
"""A column of a table may fold its values to so many; below that a row takes a line for each column."""

_Row: TypeAlias = Sequence[Any]


class CommandError(Exception):
    """The command cannot do what it was asked; the text says why, and what to do."""


def message_of(error: Exception) -> str:
    """Returns the text that tells of an error."""
    return f"{type(error).__name__}: {error.message}" if isinstance(error, Error) else str(error)


def failing_with_a_message(command: Callable[P, R]) -> Callable[P, R]:
    """Let a command end with the message of its error instead of a traceback."""

    @functools.wraps(command)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (Error, CommandError) as error:
            typer.echo(message_of(error), err=True)
        except KeyboardInterrupt:
            raise typer.Exit(_INTERRUPTED) from None
        raise typer.Exit(1)

    return checked


class OutputFormat(StrEnum):
    """The format in which rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


def write_rows(
    cursor: Cursor,
    output_format: OutputFormat,
    *,
    into: TextIO | None = None,
    rows_max: int | None = None,
    is_expanded: bool = False,
) -> int:
    """Write the rows of a result as they come.

    Args:
        cursor: Has executed a statement with rows.
        output_format: ``csv`` is as COPY writes it: a line with the names, NULL an empty field, and an empty text
            ``""``; ``json`` is one array of objects; its values are those of :mod:`secateur.http.json_values`;
            ``arrow`` is an Arrow IPC stream. Of columns of one name, the second is ``a_1`` in CSV and JSON, as COPY
            writes them.
        into: Where; None for standard output.
        rows_max: Rows of a table on a terminal, at most; the others stay to be fetched. None for all, which files and
            pipes get in any case.
        is_expanded: A row of a table has a line for each column.

    Returns:
        How many rows were written.

    Raises:
        CommandError: An Arrow stream would go to a terminal.
    """
    stream = into or sys.stdout
    match output_format:
        case OutputFormat.TABLE:
            return _write_table(cursor, stream, rows_max if stream.isatty() else None, is_expanded=is_expanded)
        case OutputFormat.CSV:
            return _write_csv(cursor, stream)
        case OutputFormat.JSON:
            return _write_json(cursor, stream)
        case OutputFormat.ARROW:
            return _write_arrow(cursor, stream)


def extent_text(cursor: Cursor, written: int, more: str) -> str:
    """Returns the number of rows of a result: ``100,000 rows``, or ``first 40 of 100,000 rows``.

    The rest of a result that comes in parts is read for that, up to a million rows.

    Nothing but the first ``written`` rows was read. ``more`` says how to see the others, in brackets behind it.
    """
    total = max(cursor.rowcount, written)
    if cursor.rowcount < 0:
        for batch in cursor.fetch_record_batch():
            total += batch.num_rows
            if total > _COUNTED_MAX:
                return f"first {written:,} of more than {_COUNTED_MAX:,} rows ({more})"
    rows = count_text(total, "row")
    return rows if total == written else f"first {written:,} of {rows} ({more})"


def cost_of(stats: QueryStats | None) -> str:
    """Returns what a statement has touched, for the line below its rows; empty where nothing is known."""
    if stats is None:
        return ""
    if stats.execution == "none":
        return f" ({'no partition can match: ' if stats.partitions_total else ''}answered by the client)"
    return (
        f" ({stats.execution}: {stats.partitions_read:,} of {stats.partitions_total:,} partitions,"
        f" {stats.members_touched} of {stats.members_total} members)"
    )


def print_done(text: str, record: Mapping[str, Any], *, as_json: bool) -> None:
    """Tell what a command has done: in words on standard error, or as JSON on standard output."""
    if as_json:
        typer.echo(msgspec.json.encode(record).decode())
    else:
        typer.echo(text, err=True)


def print_records(records: Sequence[Mapping[str, Any]], *, as_json: bool, empty: str) -> None:
    """Print what a command lists: records with the same names, or the sentence ``empty`` in place of a table."""
    if as_json:
        sys.stdout.write(msgspec.json.encode(records).decode() + "\n")
    elif not records:
        sys.stdout.write(empty + "\n")
    else:
        _draw(list(records[0]), iter([[list(record.values()) for record in records]]), sys.stdout)


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


def _write_table(cursor: Cursor, stream: TextIO, rows_max: int | None, *, is_expanded: bool) -> int:
    texts, count = _as_texts(cursor), 0

    def groups() -> Iterator[Sequence[_Row]]:
        nonlocal count
        while rows := cursor.fetchmany(_FETCHED if rows_max is None else rows_max - count):
            count += len(rows)
            yield list(map(texts, rows))

    _draw(_columns(cursor), groups(), stream, is_expanded=is_expanded)
    return count


def _draw(
    columns: Sequence[str], groups: Iterator[Sequence[_Row]], stream: TextIO, *, is_expanded: bool = False
) -> None:
    """Draw rows, which come in groups: into a file or pipe as they come, and as wide as they are."""
    console = Console(file=stream, highlight=False, width=None if stream.isatty() else _WIDE_CHARS)
    if is_expanded:
        for number, row in enumerate(chain.from_iterable(groups), 1):
            _draw_alone(number, columns, row, console)
    elif not stream.isatty():
        stream.writelines(f"{line}\n" for line in _aligned(columns, groups, console))
    else:
        rows = list(chain.from_iterable(groups))
        if console.width < _narrowest(columns, rows):
            _draw(columns, iter([rows]), stream, is_expanded=True)
        else:
            _draw_beside(columns, rows, console)


def _draw_beside(columns: Sequence[str], rows: Sequence[_Row], console: Console) -> None:
    table = Table(show_edge=True, header_style="bold")
    for name, is_number in zip(columns, _are_numbers(columns, rows), strict=True):
        table.add_column(escape(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    console.print(table)


def _aligned(columns: Sequence[str], groups: Iterator[Sequence[_Row]], console: Console) -> Iterator[str]:
    """The lines of the same table, drawn in a thirtieth of the time since it has no styles and folds nothing.

    A column whose values need more in a later group is wider from there on, as in psql with FETCH_COUNT.
    """
    box = HEAVY_HEAD.substitute(console.options)
    head = list(map(_lines, columns))
    widths = [2] * len(columns)  # with a blank on both sides
    for number, rows in enumerate(chain([next(groups, [])], groups)):
        texts = [list(map(_lines, row)) for row in rows]
        cells = zip(head, *texts, strict=True)
        widths = [
            max(width, *(cell_len(line) + 2 for lines in column for line in lines))
            for width, column in zip(widths, cells, strict=True)
        ]
        if not number:
            yield box.get_top(widths)
            yield from _beside(head, widths, [False] * len(columns), box.head_left, box.head_vertical)
            yield box.get_row(widths, "head")
        are_numbers = _are_numbers(columns, rows)
        for row in texts:
            yield from _beside(row, widths, are_numbers, box.mid_left, box.mid_vertical)
    yield box.get_bottom(widths)


def _beside(
    row: Iterable[Sequence[str]], widths: Sequence[int], are_numbers: Sequence[bool], edge: str, between: str
) -> Iterator[str]:
    """The lines of a row, of whose values some have several."""
    for line in zip_longest(*row, fillvalue=""):
        cells = []
        for text, width, is_number in zip(line, widths, are_numbers, strict=True):
            blanks = " " * (width - 2 - cell_len(text))
            cells.append(f" {blanks}{text} " if is_number else f" {text}{blanks} ")
        yield f"{edge}{between.join(cells)}{edge}"


def _lines(value: Any) -> list[str]:
    text = "NULL" if value is None else _text_of(value)
    return [text] if text.isprintable() else strip_control_codes(text).expandtabs().split("\n")


def _are_numbers(columns: Sequence[str], rows: Sequence[_Row]) -> list[bool]:
    """Of each column, whether it has a number, and so all stand at its right edge."""
    return [any(isinstance(row[at], (int, float, Decimal)) for row in rows) for at in range(len(columns))]


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


def _narrowest(columns: Sequence[str], rows: Sequence[_Row]) -> int:
    """Characters of a table whose long values are folded."""
    widths = [max(len(name), *(len(_text_of(row[at])) for row in rows), 4) for at, name in enumerate(columns)]
    return sum(min(width, _LEGIBLE_CHARS) for width in widths) + 3 * len(widths) + 1


def _write_csv(cursor: Cursor, stream: TextIO) -> int:
    from secateur.client.copy.copy import csv_parts  # DuckDB, which a table on the terminal need not wait for

    count = 0

    def tables() -> Iterator[pa.Table]:
        nonlocal count
        for batch in cursor.fetch_record_batch(_FETCHED):
            count += batch.num_rows
            yield pa.Table.from_batches([batch])

    columns = [ResultColumn(column[0], str(column[1])) for column in cursor.description or ()]
    for part in csv_parts(tables(), columns):
        stream.write(part.decode())
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
