"""Writes a result as the text of a CSV file, part by part: COPY's text of each value, for readers that are no file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from secateur.client.copy.writing import write_file
from secateur.partitioning.tables.identifier import told_apart
from secateur.protocol.copy_file import CopyFile, CopyFormat
from secateur.protocol.statements import ResultColumn


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
