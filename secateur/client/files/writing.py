"""A result as a file. It appears under its name when it is complete."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
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


def write_file(options: FileOptions, tables: Iterable[pa.Table]) -> int:
    """Write tables, one after another, as they come.

    Args:
        options: The file; one that is there is replaced.
        tables: At least one, all with the same columns, in the Arrow form of their SQL types. Of columns of one name, later ones get a number behind it.

    Returns:
        Their rows.

    Raises:
        ProgrammingError: It cannot be written.
        NotSupportedError: A column of a type that the format has no form for.
    """
    parts = _Parts(tables)
    # The suffix stays the last one: it says how the file is compressed.
    path = Path(options.path)
    partial = path.with_name(f".partial-{os.getpid()}-{path.name}")
    try:
        try:
            match options.format:
                case FileFormat.CSV:
                    _write_text(partial, _csv_lines(options, parts))
                case FileFormat.JSON:
                    _write_text(partial, _json_lines(parts))
                case FileFormat.PARQUET:
                    _write_parquet(partial, parts, options.compression)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise ProgrammingError(f"{options.path!r} cannot be written on the machine of this client, where COPY writes: {error}") from error
    return parts.rows


class _Parts:
    """Tables under names that differ, counted as they go by."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self._tables = iter(tables)
        first = next(self._tables)
        self._first: pa.Table | None = first
        self.names = _distinct(first.column_names)
        self.schema = first.rename_columns(self.names).schema
        self.rows = 0

    def __iter__(self) -> Iterator[pa.Table]:
        first, self._first = self._first, None
        for table in [first] if first is not None else []:
            yield self._named(table)
        for table in self._tables:
            yield self._named(table)

    def _named(self, table: pa.Table) -> pa.Table:
        self.rows += table.num_rows
        return table.rename_columns(self.names)


def _write_text(path: Path, lines: Iterator[str]) -> None:
    with pa.output_stream(str(path), compression="detect") as sink:
        for line in lines:
            sink.write(line.encode())


def _write_parquet(path: Path, parts: _Parts, compression: str | None) -> None:
    import pyarrow.parquet as pq  # imported where it is used: clients that never copy need not load it

    try:
        with pq.ParquetWriter(path, parts.schema, compression=compression or "snappy") as writer:
            for table in parts:
                writer.write_table(table)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise NotSupportedError(f"parquet: {error}; cast the column in the query") from error


def _csv_lines(options: FileOptions, parts: _Parts) -> Iterator[str]:
    delimiter, quote = options.delimiter or ("\t" if options.path.endswith(".tsv") else ","), options.quote

    def cell(text: str | None) -> str:
        if text is None:
            return options.null
        needs = not text or text == options.null or any(mark in text for mark in (delimiter, quote, "\n", "\r") if mark)
        return f"{quote}{text.replace(quote, quote * 2)}{quote}" if needs and quote else text

    if options.header is not False:
        yield delimiter.join(map(cell, parts.names)) + "\n"
    for part in _slices(parts):
        for line in zip(*(csv_texts(column, name) for column, name in zip(part.columns, part.column_names, strict=True)), strict=True):
            yield delimiter.join(map(cell, line)) + "\n"


def _slices(parts: _Parts) -> Iterator[pa.Table]:
    for table in parts:
        for start in range(0, table.num_rows, _ROWS_AT_ONCE):
            yield table.slice(start, _ROWS_AT_ONCE)


def _json_lines(parts: _Parts) -> Iterator[str]:
    for part in _slices(parts):
        for row in part.to_pylist():
            yield json.dumps({name: _json_value(value) for name, value in row.items()}, ensure_ascii=False, separators=(",", ":")) + "\n"


def _json_value(value: Any) -> Any:
    match value:
        case Decimal():
            return int(value) if value.as_tuple().exponent == 0 else float(value)
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
