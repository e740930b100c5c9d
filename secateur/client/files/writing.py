"""A result as a file. It appears under its name when it is complete."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

from secateur.client.files.csv_text import csv_texts
from secateur.client.files.file_options import FileFormat, FileOptions
from secateur.errors import NotSupportedError, ProgrammingError

__all__ = ["write_file"]

_ROWS_AT_ONCE = 10_000


def write_file(options: FileOptions, rows: pa.Table) -> None:
    """Write a table.

    Args:
        options: The file; one that is there is replaced.
        rows: In the Arrow form of their SQL types. Of columns of one name, later ones get a number behind it.

    Raises:
        ProgrammingError: It cannot be written.
        NotSupportedError: A column of a type that the format has no form for.
    """
    rows = rows.rename_columns(_distinct(rows.column_names))
    # The suffix stays the last one: it says how the file is compressed.
    path = Path(options.path)
    partial = path.with_name(f".partial-{os.getpid()}-{path.name}")
    try:
        try:
            match options.format:
                case FileFormat.CSV:
                    _write_text(partial, _csv_lines(options, rows))
                case FileFormat.JSON:
                    _write_text(partial, _json_lines(rows))
                case FileFormat.PARQUET:
                    _write_parquet(partial, rows, options.compression)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise ProgrammingError(f"{options.path!r} cannot be written on the machine of this client, where COPY writes: {error}") from error


def _write_text(path: Path, lines: Iterator[str]) -> None:
    with pa.output_stream(str(path), compression="detect") as sink:
        for line in lines:
            sink.write(line.encode())


def _write_parquet(path: Path, rows: pa.Table, compression: str | None) -> None:
    import pyarrow.parquet as pq  # imported where it is used: clients that never copy need not load it

    try:
        pq.write_table(rows, path, compression=compression or "snappy")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise NotSupportedError(f"parquet: {error}; cast the column in the query") from error


def _csv_lines(options: FileOptions, rows: pa.Table) -> Iterator[str]:
    delimiter, quote = options.delimiter or ("\t" if options.path.endswith(".tsv") else ","), options.quote

    def cell(text: str | None) -> str:
        if text is None:
            return options.null
        needs = not text or text == options.null or any(mark in text for mark in (delimiter, quote, "\n", "\r") if mark)
        return f"{quote}{text.replace(quote, quote * 2)}{quote}" if needs and quote else text

    if options.header is not False:
        yield delimiter.join(map(cell, rows.column_names)) + "\n"
    for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
        part = rows.slice(start, _ROWS_AT_ONCE)
        for line in zip(*(csv_texts(column, name) for column, name in zip(part.columns, part.column_names, strict=True)), strict=True):
            yield delimiter.join(map(cell, line)) + "\n"


def _json_lines(rows: pa.Table) -> Iterator[str]:
    for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
        for row in rows.slice(start, _ROWS_AT_ONCE).to_pylist():
            yield json.dumps({name: _json_value(value) for name, value in row.items()}, ensure_ascii=False, separators=(",", ":")) + "\n"


def _json_value(value: Any) -> Any:
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else float(value)
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ") + ("" if value.tzinfo is None else "+00")
        case date() | time():
            return value.isoformat()
        case UUID():
            return str(value)
        case bytes():
            return value.decode("latin-1")
        case list():
            return [_json_value(element) for element in value]
        case _:
            return value


def _distinct(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    taken = set(names)
    for name in names:
        candidate, number = name, 0
        while candidate in found or (number and candidate in taken):
            number += 1
            candidate = f"{name}_{number}"
        found.append(candidate)
    return found
