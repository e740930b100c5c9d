"""Merge and union: one output of several inputs, in their common order, or in the order of arrival."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.placement import OnCoordinator, Placement
from secateur.dag.processor import Emitter, Offload, Outbox, Processor, ProcessorContext
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier
from secateur.engine.exchange.batches import RowBuffer, batches_of, together
from secateur.engine.processors.gathering import BYTES_MAX
from secateur.engine.processors.kernel import Kernel, KernelSupplier, column_of, numbered
from secateur.engine.processors.order_and_limit import SortKey, order_by, sort_keys
from secateur.errors import DagError, LimitExceededError
from secateur.partitioning.types.arrow_form import cast_to_arrow


def merge(*by: str | SortKey, inputs: int, bytes_max: int = BYTES_MAX) -> MergeSupplier:
    """A vertex that merges ordered inputs, and emits rows as soon as their position is known.

    Each inbound edge has to bring the rows of one ordered producer: one processor in the whole job, such as a sort on
    each of several known members. Unlike :func:`~secateur.engine.processors.sort.sort` it need not keep all rows: it
    takes a batch of those inputs of which it has none.

    Args:
        by: The order of the inputs; as for :func:`~secateur.engine.processors.sort.sort`.
        inputs: Inbound edges, with the ordinals from 0 and one priority.
        bytes_max: Bound on the rows kept.

    Raises:
        DagError: No column is named, or one twice; less than one input. Running, when an input is not in order, lacks a
            column, or has an ordinal too many.
        LimitExceededError: Running, past ``bytes_max``.
    """
    if inputs < 1:
        raise DagError(f"merge() was called with {inputs} inputs; it needs at least 1")
    return MergeSupplier(sort_keys(by, "merge()"), inputs, bytes_max)


@portable("merge")
@dataclass(eq=False)
class MergeSupplier(KernelSupplier):
    """The supplier of :func:`merge` and :class:`MergeMembers`; the attributes are those of :class:`InputMerge`."""

    keys: tuple[SortKey, ...]
    inputs: int | None
    bytes_max: int
    step_bytes: int = 0

    def get(self, count: int) -> Sequence[Processor]:
        return [InputMerge(self.kernel, self.keys, self.bytes_max, self.inputs, self.step_bytes) for _ in range(count)]


class MergeBuffer(Processor):
    """Sorts the pending rows of all inputs, and emits those before the first of the inputs' last rows.

    Later rows of that input come after it.

    The last emitted row precedes all others in each sort. A row that an input brings too late is thus detected at no
    extra cost.
    """

    def __init__(self, kernel: Kernel, keys: tuple[SortKey, ...], bytes_max: int, inputs: int) -> None:
        self._kernel = kernel
        self._keys = keys
        self._bytes_max = bytes_max
        self._pending: list[RowBuffer] = []
        self._open: set[int] = set()
        self.expect(inputs)
        self._last: pa.Table | None = None
        self._work: Offload[tuple[pa.Table, list[pa.Table]]] | None = None
        self._emitter: Emitter | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, so that rows may be added."""
        return self._work is None and self._emitter is None

    @property
    def can_go_on(self) -> bool:
        """Whether rows of every open input are pending, so that some positions are known."""
        return any(buffer.rows for buffer in self._pending) and all(self._pending[index].rows for index in self._open)

    def expect(self, inputs: int) -> None:
        """There will be so many inputs; only more than before change anything."""
        known = len(self._pending)
        self._pending += [RowBuffer() for _ in range(known, inputs)]
        self._open.update(range(known, inputs))

    def add(self, index: int, rows: pa.RecordBatch) -> None:
        """Rows of an input; only while :attr:`is_idle`."""
        self._pending[index].add(rows)
        size = sum(buffer.bytes for buffer in self._pending)
        if size > self._bytes_max:
            raise LimitExceededError(
                f"merging keeps {size:,} bytes of inputs that are ahead of the slowest one, its bound is"
                f" {self._bytes_max:,}; raise bytes_max"
            )

    def end(self, index: int) -> None:
        """An input has ended."""
        self._open.discard(index)

    def complete(self) -> bool:
        self._open.clear()
        if self.is_idle and all(buffer.schema is None for buffer in self._pending):
            return True
        return self.step()

    def close(self) -> None:
        self._work = self._emitter = self._last = None
        self._pending = []

    def step(self) -> bool:
        """Merge the pending rows and emit those whose position is known; call it again until True."""
        if self._emitter is None:
            if self._work is None:
                tables = [buffer.take() for buffer in self._pending]
                last, open_ = self._last, frozenset(self._open)
                self._work = self.context.offload(lambda: self._merged(last, tables, open_))
            if not self._work.done():
                return False
            (merged, rest), self._work = self._work.result(), None
            for buffer, table in zip(self._pending, rest, strict=True):
                for batch in table.to_batches():
                    buffer.add(batch)
            self._last = merged.slice(merged.num_rows - 1) if merged.num_rows else self._last
            self._emitter = Emitter(self.outbox, batches_of(merged))
        if not self._emitter.emit():
            return False
        self._emitter = None
        return True

    def _merged(
        self, last: pa.Table | None, tables: Sequence[pa.Table | None], open_: frozenset[int]
    ) -> tuple[pa.Table, list[pa.Table]]:
        """Return the rows whose position is known, in order, and the rest of each input. In a thread."""
        rows = last
        bounds = [0 if last is None else 1]
        for table in tables:
            rows = rows if table is None else together(rows, table)
            bounds.append(0 if rows is None else rows.num_rows)
        assert rows is not None
        sql = f"SELECT row FROM rows ORDER BY {order_by(self._keys)}"
        order = self._kernel.rows(sql, {"rows": numbered(rows, [key.column for key in self._keys])}).to_numpy()
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        spans = list(pairwise(bounds))
        for index, (start, end) in enumerate(spans):
            ordered = place[start:end]
            if (np.diff(ordered) < 0).any() or (last is not None and end > start and ordered[0] < place[0]):
                keys = ", ".join(key.column for key in self._keys)
                raise DagError(
                    f"input {index} of the merge is not in order of {keys}; sort it, and let one processor alone feed"
                    " the edge"
                )
        done = min(
            (int(place[spans[index][1] - 1]) + 1 for index in open_ if spans[index][1] > spans[index][0]),
            default=len(order),
        )
        if any(spans[index][1] == spans[index][0] for index in open_):
            done = 0 if last is None else 1  # an open input of which nothing is pending: any row may still come
        taken = order[bounds[0] : done]
        rest = [rows.take(pa.array(np.arange(start, end)[place[start:end] >= done])) for start, end in spans]
        return rows.take(pa.array(taken)), rest


class InputMerge(MergeBuffer):
    """Merges the inputs of a processor.

    It takes nothing from an input that is ahead, so that input's producer waits.

    Args:
        kernel: Compares.
        keys: The sort keys of the inputs.
        bytes_max: Bound on the rows kept.
        inputs: How many there are; None for all that the processor has.
        step_bytes: The bytes that each input that has not ended must have before rows are emitted. More bytes mean
            fewer calls of the kernel, fewer bytes mean fewer waiting rows.
    """

    def __init__(
        self, kernel: Kernel, keys: tuple[SortKey, ...], bytes_max: int, inputs: int | None = None, step_bytes: int = 0
    ) -> None:
        super().__init__(kernel, keys, bytes_max, inputs or 0)
        self._takes_all = inputs is None
        self._step_bytes = step_bytes

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        super().init(outbox, context)
        if self._takes_all:
            self.expect(context.input_count)

    @property
    def wanted(self) -> Collection[int]:  # type: ignore[override]
        """The inputs of which too few rows are pending."""
        return [
            index
            for index in self._open
            if not self._pending[index].rows or self._pending[index].bytes < self._step_bytes
        ]

    @property
    def can_go_on(self) -> bool:
        return not self.wanted and any(buffer.rows for buffer in self._pending)

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if self.is_idle:
            if ordinal >= len(self._pending):
                raise DagError(
                    f"merge(inputs={len(self._pending)}) received a batch on input {ordinal}; say how many inbound"
                    " edges it has"
                )
            if self._open == {ordinal} and batch.num_rows and not any(buffer.rows for buffer in self._pending):
                return self.outbox.offer(batch)  # nothing is left that could come between its rows
            self.add(ordinal, batch)
        return self._proceed()

    def complete_edge(self, ordinal: int) -> bool:
        self.end(ordinal)
        return self._proceed()

    def _proceed(self) -> bool:
        """Emit the rows whose position is known; True once more rows are needed."""
        while not self.is_idle or self.can_go_on:
            if not self.step():
                return False
        return True


_STEP_BYTES: Final = 4 << 20
"""Merged at a time, of each member: sorting three times as much takes twice as long as sorting three times a quarter of
it.
"""
_BYTES_MAX: Final = 1 << 30
"""A bound for thousands of members, of each of which about one step is kept."""


class MergeMembers(ProcessorMetaSupplier):
    """The vertex that merges: put an edge that keeps members apart before it.

    It holds a few megabytes of each member, and its edge as much.

    Args:
        keys: The order of the rows of each member; at least one.
    """

    works_without_input = True
    init_is_cooperative = True
    close_is_cooperative = True

    def __init__(self, keys: Sequence[SortKey]) -> None:
        self._keys = tuple(keys)

    def placement(self) -> Placement:
        return OnCoordinator()

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {member: MergeSupplier(self._keys, None, _BYTES_MAX, _STEP_BYTES) for member in members}


def union(schema: pa.Schema | None = None) -> UnionSupplier:
    """A vertex that passes on the rows of all its inputs, including duplicates (UNION ALL by name).

    Put :func:`distinct` after it for UNION.

    Args:
        schema: The columns to pass on, by name and in this order; values are converted exactly. None: those of the
            first batch that arrives, with exactly their types.

    Raises:
        DagError: Running, when a batch lacks a column, has one too many, or has another type and there is no
            ``schema``.
        DataError: Running, when a value is none of the type wanted.
    """
    return UnionSupplier(schema)


@portable("union")
@dataclass(eq=False)
class UnionSupplier(ProcessorSupplier):
    """The supplier of :func:`union`."""

    init_is_cooperative = True
    close_is_cooperative = True

    schema: pa.Schema | None

    def get(self, count: int) -> Sequence[Processor]:
        return [_Union(self.schema) for _ in range(count)]


class _Union(Processor):
    def __init__(self, schema: pa.Schema | None) -> None:
        self._schema = schema
        self._casts = schema is not None

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if self._schema is None:
            self._schema = batch.schema
        return self.outbox.offer(
            batch if batch.schema.equals(self._schema) else self._conformed(ordinal, batch, self._schema)
        )

    def _conformed(self, ordinal: int, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        if sorted(batch.schema.names) != sorted(schema.names):
            raise DagError(
                f"input {ordinal} has the columns {', '.join(batch.schema.names)}, wanted are"
                f" {', '.join(schema.names)}; select and rename upstream"
            )
        columns = [self._cast(ordinal, batch.column(column_of(batch.schema, field.name)), field) for field in schema]
        return pa.RecordBatch.from_arrays(columns, names=schema.names)

    def _cast(self, ordinal: int, column: pa.Array, field: pa.Field) -> pa.Array:
        if column.type.equals(field.type):
            return column
        if not self._casts:
            raise DagError(
                f"column {field.name!r} of input {ordinal} is {column.type}, but {field.type} came first; pass the"
                " schema wanted to union()"
            )
        return cast_to_arrow(column, field.type, name=field.name)
