"""The result of a statement or a job as the server keeps it: Arrow batches, read as pages of JSON or as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from secateur.client.copy.writing import csv_parts
from secateur.client.dbapi.cursor import Cursor
from secateur.client.dbapi.rows import Rows
from secateur.errors import LimitExceededError
from secateur.http.arrow_answers import ARROW_TYPE, described
from secateur.http.json_values import json_value_of
from secateur.partitioning.tables.identifier import told_apart
from secateur.partitioning.types.nested_parts import map_leaves
from secateur.protocol.statements import ResultColumn

_BATCH_ROWS: Final = 65_536
_TEXT_ROWS: Final = 8_192
_NANOSECONDS: Final = pa.timestamp("ns")
_INFINITE: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class KeptResult:
    """All rows of a result.

    Attributes:
        columns: Names and types of SQL.
        table: The rows.
    """

    columns: tuple[ResultColumn, ...]
    table: pa.Table

    @property
    def bytes(self) -> int:
        """The memory of its rows."""
        return int(self.table.nbytes)


@dataclass(frozen=True, slots=True)
class JsonPage:
    """Some rows of a result.

    Attributes:
        rows: A JSON array of arrays.
        next_offset: The number of the first row behind them; None at the end.
    """

    rows: bytes
    next_offset: int | None


def fetched(cursor: Cursor, bytes_max: int) -> KeptResult | None:
    """Read the result of a cursor to its end; None if it has none.

    Raises:
        LimitExceededError: It has more bytes than that.
        Error: The statement failed while its rows were read.
    """
    if cursor.description is None:
        return None
    columns = tuple(ResultColumn(name, type_code) for name, type_code, *_ in cursor.description)
    reader = cursor.fetch_record_batch(_BATCH_ROWS)
    batches, size = [], 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size > bytes_max:
            raise LimitExceededError(
                f"the result has more than {bytes_max:,} bytes, which is what the HTTP server keeps of one: add a LIMIT"
                " or an aggregation, or read it with the Python client, which gets it part by part",
                limit=bytes_max,
            )
    return KeptResult(columns, pa.Table.from_batches(batches, reader.schema))


def json_page(result: KeptResult, offset: int, rows_max: int, bytes_max: int, *, objects: bool = False) -> JsonPage:
    """Some rows in JSON. Takes about a microsecond for each value.

    Args:
        result: The result.
        offset: The number of the first row, from 0.
        rows_max: How many rows.
        bytes_max: How many bytes of JSON; the page ends early when the next row has no room.
        objects: Whether a row is an object with the names of the columns, instead of an array.

    Raises:
        LimitExceededError: One row alone has more bytes.
        DataError: A value that Python has none for, such as a year beyond 9999.
    """
    if not result.columns:  # a job without a result; a slice of a table without columns has any number of rows
        return JsonPage(b"[]", None)
    part = result.table.slice(offset, rows_max)
    texts: list[bytes] = []
    size = 2
    for text in _json_rows(part, result.columns, objects=objects):
        size += len(text) + 1
        if size > bytes_max:
            if not texts:
                raise LimitExceededError(
                    f"row {offset} has {len(text):,} bytes as JSON, an answer may have {bytes_max:,}: ask for the"
                    f" result as an Arrow stream, with the header 'Accept: {ARROW_TYPE}'",
                    limit=bytes_max,
                )
            break
        texts.append(text)
    end = offset + len(texts)
    return JsonPage(b"[" + b",".join(texts) + b"]", end if end < result.table.num_rows else None)


def _json_rows(rows: pa.Table, columns: Sequence[ResultColumn], *, objects: bool) -> Iterator[bytes]:
    """Each row as an array, or as an object with the names of the columns."""
    names = list(told_apart(column.name for column in columns))
    encoders = [json_value_of(column.type) for column in columns]
    for row in Rows(_with_nanoseconds(rows), columns).iterate():
        values = [encode(value) for encode, value in zip(encoders, row, strict=True)]
        yield msgspec.json.encode(dict(zip(names, values, strict=True)) if objects else values)


def _with_nanoseconds(rows: pa.Table) -> pa.Table:
    """The rows with texts in place of TIMESTAMP_NS, whose Python values have microseconds."""
    for position, column in enumerate(rows.columns):
        if str(_NANOSECONDS) in str(column.type) and column.num_chunks:  # perhaps inside of a list, a struct or a map
            texts = pa.chunked_array([map_leaves(chunk, _nanosecond_texts) for chunk in column.chunks])
            rows = rows.set_column(position, rows.schema.field(position).name, texts)
    return rows


def _nanosecond_texts(leaf: pa.Array) -> pa.Array:
    if leaf.type != _NANOSECONDS:
        return leaf
    instants = leaf.to_numpy(zero_copy_only=False)
    if (np.abs(instants.view(np.int64)) == _INFINITE).any():
        return leaf  # refused where rows become Python values, as those of other types are
    return pa.array(np.datetime_as_string(instants), mask=np.isnat(instants))


def text_stream(result: KeptResult, *, is_csv: bool) -> Iterator[bytes]:
    """The result as CSV, or as lines of JSON with an object for each row, a part for some thousand rows.

    Raises:
        DataError: A value that JSON or Python has none for, such as a year beyond 9999.
        NotSupportedError: A column of a type that CSV has no form for.
    """
    if not result.columns:
        return
    slices = (result.table.slice(start, _TEXT_ROWS) for start in range(0, result.table.num_rows, _TEXT_ROWS))
    if is_csv:
        yield from csv_parts(slices, result.columns)
        return
    for rows in slices:
        yield b"".join(text + b"\n" for text in _json_rows(rows, result.columns, objects=True))


def arrow_stream(result: KeptResult, description: Mapping[str, Any]) -> Iterator[bytes]:
    """The result in the Arrow IPC streaming format, a part for each batch.

    Args:
        result: The result.
        description: What a JSON answer says beside the rows.
    """
    sink = BytesIO()
    with pa.ipc.new_stream(sink, described(result.table.schema, description)) as writer:
        yield _taken(sink)
        for batch in result.table.to_batches(max_chunksize=_BATCH_ROWS):
            writer.write_batch(batch)
            yield _taken(sink)
    yield _taken(sink)


def _taken(sink: BytesIO) -> bytes:
    """Takes the bytes that were written since the last call."""
    written = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return written
