"""LIMIT and OFFSET of ordered or unordered rows: which rows are the answer, and when there are enough."""

from __future__ import annotations

import msgspec
import pyarrow as pa


class RowLimit(msgspec.Struct, frozen=True, array_like=True):
    """The rows of the last stage that a statement wants.

    Attributes:
        skipped: Rows that are left out first.
        taken: Rows that are wanted then; None for all.
    """

    skipped: int
    taken: int | None


class LimitedRows:
    """Cuts batches to the rows within a limit.

    Args:
        limit: The limit.
    """

    __slots__ = ("_skip", "_take")

    def __init__(self, limit: RowLimit) -> None:
        self._skip = limit.skipped
        self._take = limit.taken

    @property
    def is_full(self) -> bool:
        """Whether no further row is wanted."""
        return self._take == 0

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the wanted rows of the next batch; none of its rows is counted before :meth:`count`."""
        kept = batch.slice(min(self._skip, batch.num_rows))
        return kept if self._take is None else kept.slice(0, self._take)

    def count(self, batch: pa.RecordBatch) -> None:
        """A batch has been dealt with."""
        if self._take is not None:
            self._take -= self.of(batch).num_rows
        self._skip -= min(self._skip, batch.num_rows)
