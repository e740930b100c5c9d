"""A snapshot: the rows of one partition at a point in time, which no later write changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from secateur.partitioning.pruning.key_range import KeyRange
from secateur.storage.key_order import CellRange, Cells, KeyOrder
from secateur.storage.layout import TableLayout
from secateur.storage.overlay import Overlay
from secateur.storage.sorted_rows import SortedRows

_ROWS_PER_FOUND: Final = 8
"""Rows that a kernel filters in the time in which one that was found by an index is copied."""

_BYTES_PER_CELL: Final = 16
"""A guess, for rows that were all written since the last merge."""


class PartitionSnapshot:
    """The rows of a partition at one moment, sorted by primary key.

    Immutable, and safe to read from any thread. Recent writes lie beside the sorted rows: a search reads both and
    merges only the rows that it returns; the first reader of the whole table merges everything once, for all later
    readers.

    Args:
        layout: The table's.
        base: Sorted rows.
        overlay: Changes to them, or None.
        rows: Number of rows with the changes.
    """

    __slots__ = ("_layout", "_state", "rows")

    def __init__(self, layout: TableLayout, base: SortedRows, overlay: Overlay | None, rows: int) -> None:
        self._layout = layout
        # One attribute, so that a thread reads either the old pair or the folded one.
        self._state: tuple[SortedRows, Overlay | None] = (base, overlay)
        self.rows = rows

    @property
    def table(self) -> pa.Table:
        """All rows, one chunk a column, with exactly the table's Arrow schema."""
        return self.fold().table

    def fold(self) -> SortedRows:
        """All rows with the changes merged in.

        The first call after a write costs a copy of the partition, later ones nothing.
        """
        base, overlay = self._state
        if overlay is not None:
            base = overlay.fold(base, self._layout)
            self._state = (base, None)
        return base

    def settle(self) -> None:
        """:meth:`fold`, with the secondary indexes that the sorted rows had before, so that no reader has to sort."""
        base, overlay = self._state
        if overlay is None:
            return
        folded = overlay.fold(base, self._layout)
        for columns in base.indexed:
            folded.index(self._layout.index_order(columns))
        self._state = (folded, None)

    @property
    def folded(self) -> SortedRows | None:
        """The result of :meth:`fold` if it is available without work, else None."""
        base, overlay = self._state
        return base if overlay is None else None

    def bytes_of(self, columns: Sequence[int]) -> int:
        """About as many bytes as some columns of all rows take: those of the sorted rows, and of as many changes."""
        base, _ = self._state
        if not base.rows:
            return self.rows * _BYTES_PER_CELL * len(columns)
        return int(base.table.select(columns).nbytes * self.rows / base.rows)

    def bytes_beside(self, current: SortedRows | None) -> list[tuple[object, int]]:
        """The objects that this snapshot keeps in memory, with their bytes, if its partition has other sorted rows now.

        Args:
            current: The sorted rows of the partition now, None if it is gone.
        """
        base, overlay = self._state
        if base is current:
            return []  # and the recent changes are the partition's as well
        changes: list[tuple[object, int]] = [] if overlay is None else [(overlay, overlay.rows.get_total_buffer_size())]
        return [(base, base.nbytes), *changes]

    def has_memory_of(self, found: pa.Table) -> bool:
        """Whether rows that were read from it lie in its sorted rows, and are not a copy of them."""
        base, _ = self._state
        name = found.column_names[0]
        return not _addresses(found.column(name)).isdisjoint(_addresses(base.table.column(name)))

    def lookup(self, prefix: Sequence[Any]) -> pa.Table:
        """The rows whose key begins with the values given.

        Args:
            prefix: Canonical Python values of the leading key columns; all of them name at most one row. A NULL equals
                nothing.

        Returns:
            A slice without copying where no recent write touches it; with the table's schema also when it is empty.

        Raises:
            DataError: A value of another type than its column.
            ParameterError: More values than key columns.
        """
        return self.read(None, self._layout.order.cells(prefix))

    def slice(self, keys: KeyRange) -> pa.Table:
        """The rows between two cuts of the key order.

        Returns:
            A slice without copying where no recent write touches it; with the table's schema also when it is empty.

        Raises:
            DataError: A value of another type than its column, or a NULL.
            ParameterError: More values than key columns.
        """
        found = self.read_windows(None, [self._layout.order.window(keys)])
        return found[0] if found else self._layout.no_rows

    def read(self, columns: Sequence[int] | None, prefix: Cells | None = ()) -> pa.Table:
        """Return some columns of the rows whose key begins with a prefix of cells.

        It is the form of :meth:`lookup` for callers that ask many partitions the same.

        Args:
            columns: Positions of the columns wanted, at least one; None for all.
            prefix: From ``KeyOrder.cells``; empty for all rows, None for no row.
        """
        if not prefix:
            table = self.table if prefix is not None else self._layout.no_rows
            return table if columns is None else table.select(columns)
        base, overlay = self._state
        start, stop = base.equal_range(prefix)
        first, last = (0, 0) if overlay is None else overlay.equal_range(prefix)
        return _window(base, overlay, start, stop, first, last, columns)

    def values(self, columns: Sequence[int], prefix: Cells, rows_max: int) -> tuple[list[list[Any]], int] | None:
        """The rows whose key begins with a prefix of cells, as Python values by column, and their number.

        Args:
            columns: Positions of the columns wanted.
            prefix: From ``KeyOrder.cells``.
            rows_max: More rows than these are left to :meth:`read`.

        Returns:
            None if there are more rows.

        Raises:
            ValueError, OverflowError: Python has no object for a value.
        """
        base, overlay = self._state
        start, stop = base.equal_range(prefix)
        if overlay is not None:
            first, last = overlay.equal_range(prefix)
            if first < last:
                if stop - start - (last - first) > rows_max:  # whatever the changes remove; nothing is merged for it
                    return None
                merged = overlay.over(base.table, start, stop, first, last, columns)
                if merged.num_rows > rows_max:
                    return None
                return [column.to_pylist() for column in merged.columns], merged.num_rows
        return None if stop - start > rows_max else (base.columns.run(columns, start, stop), stop - start)

    def read_windows(self, columns: Sequence[int] | None, windows: Sequence[CellRange]) -> list[pa.Table]:
        """The rows between cuts of the key order, cut to some columns, for callers that ask many partitions the same.

        The partition's own bounds narrow the search by themselves: keys before its first or after its last row are an
        empty slice, found in microseconds.

        Args:
            columns: Positions of the columns wanted, at least one; None for all.
            windows: From ``KeyOrder.window``: ascending, none overlapping another. Where there are so many that a
                search for each would cost more than it spares, the rows between the first and the last come as well.

        Returns:
            Tables with rows, in key order; possibly none.
        """
        if len(windows) > 1 and len(windows) * self._layout.limits.rows_per_search > self.rows:
            windows = [CellRange(windows[0].lower, windows[0].after_lower, windows[-1].upper, windows[-1].after_upper)]
        base, overlay = self._state
        found = []
        for window in windows:
            if window.is_prefix:
                start, stop = base.equal_range(window.lower)
            else:
                start = base.bound(window.lower, after=window.after_lower)
                stop = max(start, base.bound(window.upper, after=window.after_upper))
            first = 0 if overlay is None else overlay.bound(window.lower, after=window.after_lower)
            last = 0 if overlay is None else overlay.bound(window.upper, after=window.after_upper)
            if start < stop or first < last:
                found.append(_window(base, overlay, start, stop, first, last, columns))
        return found

    def read_index(self, columns: Sequence[int] | None, order: KeyOrder, windows: Sequence[CellRange]) -> pa.Table:
        """Return some columns of the rows that an index finds in some windows, and of all recently written rows.

        Args:
            columns: Positions of the columns wanted, at least one; None for all.
            order: The columns of the index; rows with a NULL in one are not found.
            windows: From ``KeyOrder.window`` of ``order``, none overlapping another.

        Returns:
            New memory, in primary-key order. All rows without copying if the index finds so many that it saves nothing.
        """
        base, overlay = self._state
        positions = base.index(order).find(windows)
        if len(positions) * _ROWS_PER_FOUND > base.rows:
            return self.read(columns)
        table = base.table if columns is None else base.table.select(columns)
        if overlay is None:
            return table.take(pa.array(positions))
        return overlay.among(table, positions, columns)


def _addresses(column: pa.ChunkedArray) -> set[int]:
    return {
        buffer.address for chunk in column.chunks for buffer in chunk.buffers() if buffer is not None and buffer.size
    }


def _window(
    base: SortedRows,
    overlay: Overlay | None,
    start: int,
    stop: int,
    first: int,
    last: int,
    columns: Sequence[int] | None,
) -> pa.Table:
    if overlay is not None and first < last:
        return overlay.over(base.table, start, stop, first, last, columns)
    table = base.table if columns is None else base.table.select(columns)
    return table.slice(start, stop - start)
