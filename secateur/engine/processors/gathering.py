"""The base of processors that answer after all rows: gather, sometimes reduce in a thread, answer at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from secateur.dag.processor import Emitter, Offload, Processor
from secateur.engine.exchange.batches import RowBuffer, batches_of
from secateur.engine_limits import EngineLimits
from secateur.errors import LimitExceededError

BYTES_MAX: Final = 1 << 30
"""Default bound on what one processor keeps."""


class GatheringProcessor(Processor):
    """Keeps the results of :meth:`reduce`, and emits the :meth:`answer` from them.

    A reduction happens when as many new rows have come as are kept, and at least a block of them, so that each row is
    reduced a bounded number of times on average. Meanwhile further rows are accepted, until they are as many again.

    Args:
        bytes_max: Bound on what is kept.
        remedy: The advice in the message when the limit is passed.
        limits: From how many new rows on they are reduced.
    """

    def __init__(self, bytes_max: int, remedy: str, limits: EngineLimits) -> None:
        self._block_rows, self._block_bytes = limits.block_rows, limits.block_bytes
        self._bytes_max = bytes_max
        self._remedy = remedy
        self._new = RowBuffer()
        self._kept: pa.Table | None = None
        self._kept_bytes = 0
        self._work: Offload[pa.Table | None] | None = None
        self._emitter: Emitter | None = None
        self._is_answering = False

    def reduce(self, kept: pa.Table | None, new: pa.Table) -> pa.Table:
        """Reduce new rows and the result of earlier reductions. Runs in a thread."""
        raise NotImplementedError(f"{type(self).__name__} has no reduce()")

    def answer(self, kept: pa.Table | None) -> pa.Table | None:
        """Return the output, from the result of the last reduction (None: no batch has come).

        None emits nothing. Runs in a thread.
        """
        return kept

    def is_full(self) -> bool:
        """Whether to reduce now."""
        kept_rows = 0 if self._kept is None else self._kept.num_rows
        is_long = self._new.rows >= max(self._block_rows, kept_rows)
        return is_long or self._new.bytes >= max(self._block_bytes, self._kept_bytes)

    def passes_on(self, kept: pa.Table) -> bool:
        """Whether to send the kept rows downstream at once, because keeping more of them is of no use."""
        return False

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if not self._settled(waits=self.is_full()):
            return False
        self._new.add(batch)
        self._check(self._new.bytes)
        if self._work is None and self.is_full():
            self._begin(self._reduction())
        return True

    def complete(self) -> bool:
        if not self._is_answering:
            if not self._settled(waits=True):
                return False
            reduction = self._reduction()
            self._is_answering = True
            self._begin(lambda: self.answer(reduction()))
        if self._emitter is None:
            if not self._is_over():
                return False
            if self._kept is None:
                return True
            self._pass_on(self._kept)
        return self._emit()

    def close(self) -> None:
        self._kept = self._emitter = self._work = None
        self._new = RowBuffer()

    def _reduction(self) -> Callable[[], pa.Table | None]:
        """The next reduction as a call; it touches nothing that the event loop changes."""
        kept, new = self._kept, self._new.take()
        if new is None:
            return lambda: kept
        if kept is not None and not new.num_rows:
            return lambda: kept
        return lambda: self.reduce(kept, new)

    def _begin(self, call: Callable[[], pa.Table | None]) -> None:
        self._work = self.context.offload(call)

    def _settled(self, *, waits: bool) -> bool:
        """Handle a reduction that has ended.

        Returns False while its result has no room downstream, or while it still runs and has to be waited for.
        """
        if self._work is not None:
            if not self._is_over():
                return not waits
            assert self._kept is not None
            if self.passes_on(self._kept):
                self._pass_on(self._kept)
            else:
                self._check(self._kept_bytes)
        return self._emitter is None or self._emit()

    def _is_over(self) -> bool:
        assert self._work is not None
        if not self._work.done():
            return False
        self._kept, self._work = self._work.result(), None
        self._kept_bytes = 0 if self._kept is None else self._kept.nbytes
        return True

    def _pass_on(self, kept: pa.Table) -> None:
        self._emitter = Emitter(self.outbox, batches_of(kept))
        self._kept, self._kept_bytes = None, 0

    def _emit(self) -> bool:
        assert self._emitter is not None
        if not self._emitter.emit():
            return False
        self._emitter = None
        return True

    def _check(self, size: int) -> None:
        if size > self._bytes_max:
            raise LimitExceededError(
                f"the processor would keep {size:,} bytes, its bound is {self._bytes_max:,}; {self._remedy}"
            )
