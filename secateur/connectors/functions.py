"""Functions and data of the caller as the source of a DAG: generators, iterables and Arrow batches; and as its sink.

Each processor makes its own stream, which need not end. Rows that Python makes one by one are combined into batches. A
source that pulls from an iterator does so in a thread of its own, so that the member never waits for it. The log and
the result of the job are sinks as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.processor import Emitter, Processor, ProcessorContext
from secateur.dag.supplier import FactorySupplier, ProcessorMetaSupplier, ProcessorSupplier, ReplicatedMetaSupplier
from secateur.engine.exchange.batches import batches_of, row_dicts
from secateur.engine.runtime.result import ResultSink
from secateur.errors import DagError, DataError
from secateur.partitioning.types.arrow_form import array_of, inferred_array
from secateur.partitioning.types.held_values import check_texts

BATCH_ROWS_OF_PYTHON = 8_192
"""The default number of rows in a batch: few enough for a start without delay, many enough to make the cost of a
batch negligible."""

_LOGGED_ROWS_MAX: Final = 20

_log = logging.getLogger("secateur.job")


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


GeneratorFunction = Callable[[ProcessorContext], Iterable[Any]]


def generator_source(
    function: GeneratorFunction,
    *,
    everywhere: bool = True,
    schema: pa.Schema | None = None,
    batch_rows: int = BATCH_ROWS_OF_PYTHON,
) -> ProcessorMetaSupplier:
    """A source whose processors each call a function and iterate over its result.

    Each processor has a thread, so the function may compute or wait. It may go on for ever: when the job is cancelled,
    the function is closed after the batch that it is making (one that never makes another keeps its thread, but not the
    job), and its ``finally`` runs.

    Args:
        function: Called once for each processor with its :class:`~secateur.dag.processor.ProcessorContext`;
            ``context.global_index`` and ``context.total_parallelism`` identify its share. Returns an iterable,
            mostly by ``yield``, of dicts (one for each row), RecordBatches or Tables.
        everywhere: True: processors on every member, which makes every member take part, and is refused in a job that
            is restricted to some partitions. False: one processor in the whole job, on a member that takes part anyway.
        schema: The schema of the dicts; None: taken from the first ``batch_rows`` of them.
        batch_rows: Dicts that are combined into one batch. Use 1 for a slow stream: each row is then sent at once.

    Raises:
        DagError: ``function`` cannot be called, or ``batch_rows`` is not positive.
    """
    if not callable(function):
        raise DagError(
            f"generator_source() was given a {type(function).__name__}; pass a function of the processor's context, not"
            " what it returned"
        )
    size = checked_batch_rows(batch_rows, "generator_source()")
    supplier = FactorySupplier(lambda: Pull(lambda context: rows_to_batches(function(context), schema, size)))
    return ReplicatedMetaSupplier(supplier, one_in_job=not everywhere)


def iterable_source(
    items: Iterable[Any], *, schema: pa.Schema | None = None, batch_rows: int = BATCH_ROWS_OF_PYTHON
) -> ProcessorMetaSupplier:
    """A source that iterates over Python objects, with one processor in the whole job.

    It runs on the coordinator when that takes part, so that no member is added.

    The iterable is sent with the DAG by cloudpickle; it is iterated when the job runs, anew in each run, in a thread.
    An object that reads its items lazily (its ``__iter__`` opens a file or a connection on the member's machine)
    therefore costs only its own size. For rows that are in Arrow already see
    :func:`~secateur.connectors.functions.batch_source`.

    Args:
        items: Dicts, one for each row, or RecordBatches or Tables.
        schema: The schema of the dicts; None: taken from the first ``batch_rows`` of them.
        batch_rows: Dicts that are combined into one batch.

    Raises:
        DagError: ``items`` is a generator, which cannot be pickled, is a string or mapping, or cannot be iterated.
    """
    if isinstance(items, Generator):
        raise DagError(
            "iterable_source() was given a generator, which cannot travel; pass its function to generator_source(), or"
            " a list of what it makes"
        )
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise DagError(
            f"iterable_source() was given a {type(items).__name__}; pass an iterable of dicts, one for each row, or of"
            " RecordBatches"
        )
    size = checked_batch_rows(batch_rows, "iterable_source()")
    supplier = FactorySupplier(lambda: Pull(lambda _: rows_to_batches(items, schema, size)))
    return ReplicatedMetaSupplier(supplier, one_in_job=True)


OpenBatches = Callable[[ProcessorContext], Iterator[pa.RecordBatch]]
"""Begins to read; called once, in the processor's thread."""


class Pull(Processor):
    """Offers one batch a call, so that an endless source can be stopped between any two.

    Args:
        open_batches: Begins to read. A generator is closed whenever the job ends, so its ``finally`` always runs.
    """

    cooperative = False

    def __init__(self, open_batches: OpenBatches) -> None:
        self._open = open_batches
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._refused: pa.RecordBatch | None = None

    def complete(self) -> bool:
        if self._batches is None:
            self._batches = self._open(self.context)
        batch = next(self._batches, None) if self._refused is None else self._refused
        if batch is None:
            return True
        self._refused = None if self.outbox.offer(batch) else batch
        return False

    def close(self) -> None:
        if isinstance(self._batches, Generator):
            self._batches.close()


def batch_source(rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> ProcessorMetaSupplier:
    """A source of rows that are sent with the DAG: one processor in the job, on a member that takes part anyway.

    Args:
        rows: A table, or batches of one schema; at least one batch, so that the schema is known.

    Raises:
        DagError: There is no batch, or their schemas differ.
        DataError: A text is not UTF-8.
    """
    if isinstance(rows, pa.Table):
        table = rows
    else:
        batches = [rows] if isinstance(rows, pa.RecordBatch) else list(rows)
        if not batches:
            raise DagError("batch_source() was given no batch; pass an empty table of the right schema instead")
        try:
            table = pa.Table.from_batches(batches)
        except pa.ArrowInvalid as error:
            raise DagError(f"batch_source() was given batches of different schemas: {error}") from error
    check_texts(table)
    return ReplicatedMetaSupplier(_TableSupplier(table), one_in_job=True)


@portable("batch-source")
@dataclass(eq=False)
class _TableSupplier(ProcessorSupplier):
    init_is_cooperative = True
    close_is_cooperative = True

    table: pa.Table

    def get(self, count: int) -> Sequence[Processor]:
        return [EmitTable(lambda: self.table) for _ in range(count)]


class EmitTable(Processor):
    """Passes the rows of a table on, which it reads with its first turn."""

    def __init__(self, read: Callable[[], pa.Table]) -> None:
        self._read = read
        self._emitter: Emitter | None = None

    def complete(self) -> bool:
        if self._emitter is None:
            self._emitter = Emitter(self.outbox, batches_of(self._read()))
        return self._emitter.emit()


def function_sink(function: Callable[[pa.RecordBatch], object], *, cooperative: bool = False) -> ProcessorSupplier:
    """A sink that calls a function with each batch, on the member where the batch is.

    A batch is passed to exactly one processor, and each processor calls from one thread at a time; several processors
    call concurrently. A failing job does not undo the function's effects: a function that writes somewhere should be
    safe to repeat.

    Args:
        function: Called with each batch that has rows; its return value is ignored.
        cooperative: True for a function that returns within about a millisecond and waits for nothing: it then needs no
            thread.

    Raises:
        DagError: ``function`` cannot be called.
    """
    if not callable(function):
        raise DagError(f"function_sink() was given a {type(function).__name__}; pass a function of a RecordBatch")
    return FactorySupplier(lambda: _Call(lambda batch, _: function(batch), cooperative), is_cooperative=True)


def logger_sink(level: int = logging.INFO, *, rows_max: int = _LOGGED_ROWS_MAX) -> ProcessorSupplier:
    """A sink that writes rows to the log ``secateur.job`` of the member's process, with vertex and member.

    Args:
        level: Of :mod:`logging`. Where it is not enabled, nothing is formatted.
        rows_max: Rows of each batch that are written; of the others only their number.
    """
    write = partial(_log_rows, level=level, rows_max=rows_max)
    return FactorySupplier(lambda: _Call(write, True), is_cooperative=True)


def _log_rows(batch: pa.RecordBatch, context: ProcessorContext, *, level: int, rows_max: int) -> None:
    if not _log.isEnabledFor(level):
        return
    for row in row_dicts(batch.slice(0, rows_max)):
        _log.log(level, "%s on %s: %s", context.vertex, context.member, row)
    if batch.num_rows > rows_max:
        _log.log(level, "%s on %s: and %d more rows", context.vertex, context.member, batch.num_rows - rows_max)


class _Call(Processor):
    def __init__(self, function: Callable[[pa.RecordBatch, ProcessorContext], object], cooperative: bool) -> None:
        self._function = function
        self.cooperative = cooperative

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if batch.num_rows:
            self._function(batch, self.context)
        return True


def collect() -> ResultSink:
    """A sink that keeps its rows at the coordinator; ``JobResult.tables`` has them under the vertex's name.

    Feed it through a distributed edge. ``JobConfig.result_bytes_max`` bounds the rows that it may keep.
    """
    return ResultSink()
