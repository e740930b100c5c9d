"""Functions over batches as processors: map and filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pyarrow as pa

from secateur.dag.processor import Emitter, Processor
from secateur.dag.supplier import FactorySupplier, ProcessorSupplier
from secateur.errors import DagError

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
