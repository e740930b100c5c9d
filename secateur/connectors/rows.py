"""Combines rows that Python makes one by one into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from secateur.engine.exchange.batches import batches_of
from secateur.errors import DagError, DataError
from secateur.partitioning.types.arrow_form import array_of, inferred_array
from secateur.partitioning.types.held_values import check_texts

BATCH_ROWS_OF_PYTHON = 8_192
"""The default number of rows in a batch: few enough for a start without delay, many enough to make the cost of a
batch negligible."""


def rows_to_batches(items: Iterable[Any], schema: pa.Schema | None, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Items as batches, in their order; of no item at all a batch without rows, if there is a schema.

    Args:
        items: Each a mapping of column names to values (one row; columns that it leaves out are NULL), or a RecordBatch
            or Table (passed on as they are).
        schema: The schema of the rows that are mappings; None: taken from the first ``batch_rows`` of them.
        batch_rows: Rows that are gathered before they go on.

    Raises:
        DagError: An item is none of these.
        DataError: A value does not fit the schema, a row has a column that the schema lacks, or a text is not UTF-8.
    """
    gathered: list[Mapping[str, Any]] = []
    count = 0
    is_empty = True

    def together() -> pa.RecordBatch:
        nonlocal schema, gathered
        made = _batch(gathered, schema, count - len(gathered))
        schema, gathered = made.schema, []
        return made

    for item in items:
        is_empty = False
        if isinstance(item, Mapping):
            gathered.append(item)
            count += 1
            if len(gathered) == batch_rows:
                yield together()
            continue
        if gathered:
            yield together()
        if not isinstance(item, pa.RecordBatch | pa.Table):
            raise DagError(
                f"the source made a {type(item).__name__}; make a dict for each row, such as {{'x': 1}}, or pyarrow"
                " RecordBatches"
            )
        check_texts(item, count + 1)
        count += item.num_rows
        if isinstance(item, pa.RecordBatch):
            yield item
        else:
            yield from batches_of(item)
    if gathered or (is_empty and schema is not None):
        yield together()


def checked_batch_rows(batch_rows: int, source: str) -> int:
    """The number itself.

    Raises:
        DagError: It is no positive number.
    """
    if batch_rows < 1:
        raise DagError(f"{source}: batch_rows is {batch_rows}; it must be at least 1")
    return batch_rows


def _batch(rows: list[Mapping[str, Any]], schema: pa.Schema | None, first: int) -> pa.RecordBatch:
    names = dict.fromkeys(name for row in rows for name in row)
    if schema is not None and (unknown := [name for name in names if name not in schema.names]):
        raise DataError(
            f"a row from number {first} on has the column {unknown[0]!r}, but the rows before it, or the schema given,"
            f" have {schema.names}"
        )
    columns = {name: [row.get(name) for row in rows] for name in (names if schema is None else schema.names)}
    try:
        if schema is None:
            arrays = [inferred_array(of, name=name) for name, of in columns.items()]
            return pa.RecordBatch.from_arrays(arrays, names=list(columns))
        return pa.RecordBatch.from_arrays(
            [array_of(columns[field.name], field.type, name=field.name) for field in schema], schema=schema
        )
    except DataError as error:
        expected = (
            "one type a column" if schema is None else ", ".join(f"{field.name} {field.type}" for field in schema)
        )
        raise DataError(
            f"rows {first} to {first + len(rows) - 1} do not fit: {error}; expected {expected}; pass schema=... if that"
            " is not what you mean"
        ) from error
