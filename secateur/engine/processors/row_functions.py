"""Functions of the user as processors: over batches, and for convenience over single rows, each of which is a dict.

Those over rows cost about a microsecond for each value. :func:`key_by` adds the key columns of a partitioned edge, a
join or an aggregate, which the kernel computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.processor import Emitter, Processor
from secateur.dag.supplier import FactorySupplier, ProcessorSupplier
from secateur.engine.exchange.batches import row_dicts
from secateur.engine.processors.kernel import column_of
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


BatchFunction = Callable[[pa.RecordBatch], pa.RecordBatch | Iterable[pa.RecordBatch]]
MaskFunction = Callable[[pa.RecordBatch], pa.Array | pa.ChunkedArray]


def map_batches(function: BatchFunction, *, cooperative: bool = False) -> ProcessorSupplier:
    """A vertex that applies a function to each batch.

    Args:
        function: Returns a batch, or an iterable of none, one or more.
        cooperative: True only for a function that returns within about a millisecond and waits for nothing: it then
            runs on the member's event loop, which is shared with everything else that the member serves. Otherwise each
            processor has a thread of its own.
    """
    return FactorySupplier(partial(_Transform, function, cooperative), is_cooperative=True)


def filter_rows(mask: MaskFunction, *, cooperative: bool = False) -> ProcessorSupplier:
    """A vertex that keeps the rows for which a function returns True.

    Args:
        mask: Returns one boolean for each row of the batch; a null drops the row, as in SQL.
        cooperative: As for :func:`map_batches`.
    """
    return map_batches(lambda batch: batch.filter(mask(batch)), cooperative=cooperative)


class _Transform(Processor):
    def __init__(self, function: BatchFunction, cooperative: bool) -> None:
        self.cooperative = cooperative
        self._function = function
        self._emitter: Emitter | None = None

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if self._emitter is None:
            made = self._function(batch)
            if not isinstance(made, pa.RecordBatch) and not isinstance(made, Iterable):
                raise DagError(
                    f"the function returned a {type(made).__name__}; return a pyarrow.RecordBatch, or an iterable of"
                    " them"
                )
            self._emitter = Emitter(self.outbox, iter((made,)) if isinstance(made, pa.RecordBatch) else iter(made))
        if not self._emitter.emit():
            return False
        self._emitter = None
        return True


KeyFunction = Callable[[pa.RecordBatch], pa.Array]


def key_by(keys: Mapping[str, str | KeyFunction], *, keep: bool = True, cooperative: bool = False) -> ProcessorSupplier:
    """A vertex that puts key columns in front of its rows.

    Args:
        keys: For each key column its name, and where its values come from: the name of a column, or a function from a
            batch to an array with a value for each row.
        keep: Whether columns that only lend their values stay under their own names too; False renames them. A column
            that has the name of a key gives way to the key.
        cooperative: As for :func:`~secateur.processors.map_batches`, where there are functions.

    Raises:
        DagError: No key is named. Running, when the input has no such column, or the function returns something else.
    """
    if not keys:
        raise DagError("key_by() was given no key; name at least one column")
    names = {name: source for name, source in keys.items() if isinstance(source, str)}
    functions = {name: source for name, source in keys.items() if not isinstance(source, str)}
    if not functions:
        return RenamedKeysSupplier(names, keep)
    return FactorySupplier(partial(_KeyBy, dict(keys), keep, cooperative), is_cooperative=True)


@portable("key-by")
@dataclass(eq=False)
class RenamedKeysSupplier(ProcessorSupplier):
    """The supplier of :func:`key_by` when no key is computed: plain data."""

    init_is_cooperative = True
    close_is_cooperative = True

    keys: Mapping[str, str]
    keep: bool

    def get(self, count: int) -> Sequence[Processor]:
        return [_KeyBy(self.keys, self.keep, cooperative=True) for _ in range(count)]


class _KeyBy(Processor):
    def __init__(self, keys: Mapping[str, str | KeyFunction], keep: bool, cooperative: bool) -> None:
        self.cooperative = cooperative
        self._keys = keys
        self._dropped = (
            frozenset(keys)
            if keep
            else frozenset(keys) | {source for source in keys.values() if isinstance(source, str)}
        )
        self._made: pa.RecordBatch | None = None

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if self._made is None:
            self._made = self._keyed(batch)
        if not self.outbox.offer(self._made):
            return False
        self._made = None
        return True

    def _keyed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = {name: _values(name, source, batch) for name, source in self._keys.items()}
        others = [index for index, name in enumerate(batch.schema.names) if name not in self._dropped]
        return pa.RecordBatch.from_arrays(
            [*columns.values(), *(batch.column(i) for i in others)],
            names=[*columns, *(batch.schema.names[i] for i in others)],
        )


def _values(name: str, source: str | KeyFunction, batch: pa.RecordBatch) -> pa.Array:
    if isinstance(source, str):
        return batch.column(column_of(batch.schema, source))
    made = source(batch)
    values = made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
    if not isinstance(values, pa.Array) or len(values) != batch.num_rows:
        what = f"{len(values)} values" if isinstance(values, pa.Array) else f"a {type(made).__name__}"
        raise DagError(
            f"the function of key {name!r} returned {what} for {batch.num_rows} rows; return a pyarrow.Array with one"
            " value for each row"
        )
    return values
