"""Key-by: adds the key columns of a partitioned edge, a join or an aggregate to rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.processor import Processor
from secateur.dag.supplier import ProcessorSupplier
from secateur.engine.processors.kernel import column_of
from secateur.errors import DagError

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
    return _ComputedKeysSupplier(dict(keys), keep, cooperative)


@dataclass(eq=False)
class _ComputedKeysSupplier(ProcessorSupplier):
    init_is_cooperative = True
    close_is_cooperative = True

    keys: Mapping[str, str | KeyFunction]
    keep: bool
    cooperative: bool = True

    def get(self, count: int) -> Sequence[Processor]:
        return [_KeyBy(self.keys, self.keep, self.cooperative) for _ in range(count)]


@portable("key-by")
@dataclass(eq=False)
class RenamedKeysSupplier(_ComputedKeysSupplier):
    """The supplier of :func:`key_by` when no key is computed: plain data."""

    keys: Mapping[str, str]


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
