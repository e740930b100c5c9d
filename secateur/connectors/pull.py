"""A source that pulls its batches from an iterator in a thread of its own, so that the member never waits for it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import pyarrow as pa

from secateur.dag.processor import Processor, ProcessorContext

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
