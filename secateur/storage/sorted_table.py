"""A table in the order of some columns, and the binary search on it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from secateur.storage.key_order import Cells, KeyOrder
from secateur.storage.key_view import Cell, CellView
from secateur.storage.native_rows import native_rows
from secateur.storage.stored_columns import StoredColumns

_FENCED_ROWS: Final = 16
"""Of so many rows, the first one's leading cell is kept as an object where a view has to make each that it is asked
for: most of a search then compares without a call. That is 4 bytes a row for short texts.
"""

_UNKNOWN: Final = object()
"""Stands for what has not been made yet."""


class SortedTable:
    """An immutable table that owns its memory: one chunk a column, sorted by a key.

    Safe to read from any thread. The views on the key columns are made at the first search, so that partitions that are
    only scanned never pay for them.

    Args:
        table: In that form already; this is not checked.
        order: The key order of the table.
    """

    __slots__ = ("__weakref__", "_columns", "_fences", "_native", "_order", "_views", "own_bytes", "rows", "table")

    def __init__(self, table: pa.Table, order: KeyOrder) -> None:
        self.table = table
        self.rows: int = table.num_rows
        self.own_bytes: int = table.get_total_buffer_size()
        self._order = order
        self._views: tuple[CellView, ...] | None = None
        self._fences: list[Cell] | None = None
        self._columns: StoredColumns | None = None
        self._native: Any = _UNKNOWN

    @property
    def columns(self) -> StoredColumns:
        """The columns of the table; asking Arrow for them would cost as much as reading a row."""
        columns = self._columns
        if columns is None:
            columns = self._columns = StoredColumns(self.table.columns)
        return columns

    @property
    def native(self) -> Any | None:
        """The rows for the native executor, made at the first call; None without it."""
        rows = self._native
        if rows is _UNKNOWN:
            rows = self._native = native_rows(self.table, self._order.names)
        return rows

    @property
    def is_searched(self) -> bool:
        """Whether keys were searched, so that the next search costs less."""
        return self._views is not None or self._native not in (_UNKNOWN, None)

    @property
    def is_read(self) -> bool:
        """Whether values of few rows were read, so that the next ones cost less."""
        return self._columns is not None and self._columns.is_read

    def ready_as(self, before: SortedTable) -> None:
        """Make now what searches and readers need, if they did in the rows that this table takes the place of.

        Otherwise the next read of each partition would make it, which takes a look-up by key a third longer.

        Cost: some ten microseconds.
        """
        if before.is_searched and self.native is None:
            self._key_views()
        if before.is_read:
            self.columns.be_read()

    def equal_range(self, prefix: Cells) -> tuple[int, int]:
        """Return the positions ``[start, stop)`` of the rows whose key begins with a prefix.

        Without such rows both are the position where it would be inserted.

        Costs up to two binary searches per column of the prefix, each inside the range that the columns before it left:
        2 to 3 us for 4,000 rows, and a quarter of that with the native executor.
        """
        native = self._native
        if native is _UNKNOWN:
            native = self.native
        if native is not None:
            found: tuple[int, int] | None = native.equal_range(prefix)
            if found is not None:
                return found
        views = self._views or self._key_views()
        fences, start, stop = self._fences, 0, self.rows
        for view, cell in zip(views, prefix, strict=False):
            if fences is None:
                start = bisect_left(view, cell, start, stop)
                stop = _run_end(view, cell, start, stop)
            else:
                start, stop = _fenced_run(view, fences, cell, stop)
                fences = None
        return start, stop

    def position(self, key: Cells) -> int | None:
        """The position of the first row with a whole key; None without one.

        Costs a binary search per column of the key: 1 us for one column of 4,000 rows.
        """
        start, stop = self.equal_range(key)
        return start if start < stop else None

    def bound(self, prefix: Cells, *, after: bool) -> int:
        """Return the position of the first row whose key, cut to the prefix's length, is not less than the prefix.

        With ``after`` it is the first row whose cut key is greater.

        Args:
            prefix: Leading cells of a key; without any, the answer is the start or the end.
            after: Which of the two.
        """
        if not prefix:
            return self.rows if after else 0
        *leading, last = prefix
        start, stop = self.equal_range(tuple(leading))
        return (bisect_right if after else bisect_left)(self._key_views()[len(leading)], last, start, stop)

    def _key_views(self) -> tuple[CellView, ...]:
        views = self._views
        if views is None:
            # Two threads may both get here; they make equal views and either may stay.
            views = self._order.views(self.table)
            leading = views[0]
            if self.rows > _FENCED_ROWS and not isinstance(leading, memoryview):
                self._fences = [leading[row] for row in range(0, self.rows, _FENCED_ROWS)]
            self._views = views
        return views


def _fenced_run(view: CellView, fences: Sequence[Cell], cell: Cell, rows: int) -> tuple[int, int]:
    """The run of cells equal to ``cell`` among all rows; empty, at the position where it would be, if there is none."""
    fence = bisect_left(fences, cell)
    start = bisect_left(view, cell, max(_FENCED_ROWS * (fence - 1) + 1, 0), min(_FENCED_ROWS * fence, rows))
    if start == rows or view[start] != cell:
        return start, start
    if start + 1 == rows or view[start + 1] != cell:
        return start, start + 1
    fence = bisect_right(fences, cell, fence)
    return start, bisect_right(
        view, cell, max(_FENCED_ROWS * (fence - 1) + 1, start + 2), min(_FENCED_ROWS * fence, rows)
    )


def _run_end(view: CellView, cell: Cell, start: int, stop: int) -> int:
    """End of the run of cells equal to ``cell`` that begins at ``start``, which equals ``start`` when there is none."""
    if start == stop or view[start] != cell:
        return start
    # Complete keys, the usual search, have runs of one: two comparisons instead of a second search.
    if start + 1 == stop or view[start + 1] != cell:
        return start + 1
    return bisect_right(view, cell, start + 2, stop)
