"""Functions over single rows as processors, for convenience: a row is a dict.

They cost about a microsecond for each value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from secateur.dag.supplier import ProcessorSupplier
from secateur.engine.exchange.batches import row_dicts
from secateur.engine.processors.transform import map_batches
from secateur.errors import DagError
from secateur.partitioning.types.arrow_form import array_of

Row = Mapping[str, Any]


def map_dicts(
    function: Callable[[dict[str, Any]], Row], schema: pa.Schema, *, cooperative: bool = False
) -> ProcessorSupplier:
    """A vertex that makes one row of each row.

    Args:
        function: Is given a row as a dict by column name, NULL as None; returns another. A column that it leaves out is
            NULL.
        schema: The columns of the rows that it returns.
        cooperative: True only for functions so fast, on batches so small, that a whole batch takes less than about a
            millisecond; otherwise it runs in a thread of its own.

    Raises:
        DagError: Running, when the function returns something else, or a column that the schema lacks.
        DataError: Running, when a value does not fit its column.
    """
    return map_batches(
        lambda batch: _batch_of([function(row) for row in row_dicts(batch)], schema), cooperative=cooperative
    )


def flat_map_dicts(
    function: Callable[[dict[str, Any]], Iterable[Row]], schema: pa.Schema, *, cooperative: bool = False
) -> ProcessorSupplier:
    """A vertex that makes any number of rows of each row.

    Args:
        function: Is given a row as a dict by column name; returns none, one or more, as a list or any other iterable.
        schema: As for :func:`map_dicts`.
        cooperative: As for :func:`map_dicts`.

    Raises:
        DagError, DataError: As :func:`map_dicts`.
    """
    return map_batches(
        lambda batch: _batch_of([made for row in row_dicts(batch) for made in function(row)], schema),
        cooperative=cooperative,
    )


def filter_dicts(predicate: Callable[[dict[str, Any]], bool], *, cooperative: bool = False) -> ProcessorSupplier:
    """A vertex that keeps the rows for which a function returns a true value.

    Args:
        predicate: Is given a row as a dict by column name.
        cooperative: As for :func:`map_dicts`.
    """
    return map_batches(
        lambda batch: batch.filter(pa.array([bool(predicate(row)) for row in row_dicts(batch)], pa.bool_())),
        cooperative=cooperative,
    )


def _batch_of(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    names = frozenset(schema.names)
    for row in rows:
        if not isinstance(row, Mapping):
            raise DagError(f"the function returned a {type(row).__name__}; return a dict for each row")
        if not row.keys() <= names:
            raise DagError(
                f"the function returned the column {min(row.keys() - names)!r}, which its schema lacks; it has"
                f" {', '.join(schema.names)}"
            )
    return pa.RecordBatch.from_arrays(
        [array_of([row.get(field.name) for row in rows], field.type, name=field.name) for field in schema],
        schema=schema,
    )
