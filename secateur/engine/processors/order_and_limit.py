"""The order of rows, and LIMIT and OFFSET: which rows are the answer, and when there are enough."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from secateur.errors import DagError


class SortKey(msgspec.Struct, frozen=True, array_like=True):
    """One column of an order. NaN is greater than every number, text is compared by code points, as in SQL.

    Attributes:
        column: Its name.
        descending: Largest first.
        nulls_first: NULL before all values; otherwise after them, whichever the direction.
    """

    column: str
    descending: bool = False
    nulls_first: bool = False


def desc(column: str, *, nulls_first: bool = False) -> SortKey:
    """A column with its largest values first."""
    return SortKey(column, descending=True, nulls_first=nulls_first)


def sort_keys(by: Sequence[str | SortKey], what: str) -> tuple[SortKey, ...]:
    """Names and keys as keys.

    Raises:
        DagError: There is none, or a column comes twice.
    """
    keys = tuple(SortKey(key) if isinstance(key, str) else key for key in by)
    if not keys or len({key.column for key in keys}) < len(keys):
        raise DagError(f"{what} is ordered by {[key.column for key in keys]}; name at least one column, each once")
    return keys


def order_by(keys: Sequence[SortKey]) -> str:
    """The ORDER BY list over the columns ``k0``, ``k1``, ... and ``row``: a stable order."""
    items = [
        f"k{i} {'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for i, key in enumerate(keys)
    ]
    return ", ".join([*items, "row"])


class RowLimit(msgspec.Struct, frozen=True, array_like=True):
    """The rows of the last stage that a statement wants.

    Attributes:
        skipped: Rows that are left out first.
        taken: Rows that are wanted then; None for all.
    """

    skipped: int
    taken: int | None


class LimitedRows:
    """Cuts batches to the rows within a limit."""

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
