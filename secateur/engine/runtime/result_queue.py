"""The queue of a job's result rows, bounded so that a slow consumer slows the job."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import pyarrow as pa

from secateur.engine.runtime.result import ResultCollector


class ResultQueue(ResultCollector):
    """A bounded queue that stands in for the collector of a job with one result sink. Used on the event loop.

    Args:
        bytes_max: Bytes from which on the sink has to wait; a batch more may be held.
    """

    def __init__(self, bytes_max: int) -> None:
        super().__init__(bytes_max)
        self.bytes = 0
        """Bytes held."""
        self.rows = 0
        """Rows held."""
        self.schema: pa.Schema | None = None
        """The schema of the rows; None before the first batch."""
        self._bytes_queued_max = bytes_max
        self._batches: deque[pa.RecordBatch] = deque()
        self._wanted = 0
        self._changed = asyncio.Event()
        self._is_closed = False

    def add(self, sink: str, batch: pa.RecordBatch) -> bool:
        """Keep a batch, unless the queue is full."""
        if self._is_closed:
            return True
        if self.bytes >= self._bytes_queued_max:
            return False
        self.schema = self.schema or batch.schema
        if batch.num_rows:
            self._batches.append(batch)
            self.rows += batch.num_rows
            self.bytes += batch.nbytes
            if self.bytes >= self._wanted:
                self._changed.set()
        return True

    def tables(self) -> dict[str, pa.Table]:
        """Return nothing: the rows are taken from the queue."""
        return {}

    async def wait(self, bytes_wanted: int, is_over: Callable[[], bool]) -> None:
        """Until so many bytes are held, or the queue is full, or it is over."""
        self._wanted = min(bytes_wanted, self._bytes_queued_max)
        while self.bytes < self._wanted and not is_over():
            self._changed.clear()
            await self._changed.wait()

    def wake(self) -> None:
        """Have :meth:`wait` look again."""
        self._changed.set()

    def take(self, bytes_wanted: int) -> list[pa.RecordBatch]:
        """Return the held batches in the order of arrival, up to as many bytes as wanted.

        It returns at least one batch, if there is one.
        """
        taken: list[pa.RecordBatch] = []
        taken_bytes = 0
        while self._batches and taken_bytes < bytes_wanted:
            batch = self._batches.popleft()
            taken.append(batch)
            taken_bytes += batch.nbytes
            self.rows -= batch.num_rows
        self.bytes -= taken_bytes
        return taken

    def close(self) -> None:
        """Drop the held rows and all later ones."""
        self._is_closed = True
        self._batches.clear()
        self.rows = self.bytes = 0
        self._changed.set()
