"""A Python function, the log, and the result of the job as the sink of a DAG."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

import pyarrow as pa

from secateur.dag.processor import Processor, ProcessorContext
from secateur.dag.supplier import FactorySupplier, ProcessorSupplier
from secateur.engine.exchange.batches import row_dicts
from secateur.engine.runtime.result import ResultSink
from secateur.errors import DagError

_LOGGED_ROWS_MAX: Final = 20

_log = logging.getLogger("secateur.job")


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
