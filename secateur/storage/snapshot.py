"""A snapshot: the rows of one partition at a point in time, which no later write changes.

It lays recent changes over the sorted rows of the partition, in an immutable form (:class:`Overlay`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.storage.block import gather
from secateur.storage.change import DuplicateKeys
from secateur.storage.key_order import CellRange, Cells, KeyOrder, prefix_range
from secateur.storage.layout import TableLayout
from secateur.storage.merge import new_rows, sort_rows
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

    def new_among(self, rows: pa.Table) -> pa.Table:
        """The rows of a table whose keys are not here, of those with one key the first, in the order of the keys."""
        return new_rows(self._layout, self.fold(), sort_rows(self._layout, [rows], DuplicateKeys.FIRST_WINS)).table

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

    def read(self, columns: Sequence[int] | None, prefix: Cells | None = ()) -> pa.Table:
        """Return some columns of the rows whose key begins with a prefix of cells.

        Args:
            columns: Positions of the columns wanted, at least one; None for all.
            prefix: From ``KeyOrder.cells``; empty for all rows, None for no row.

        Returns:
            A slice without copying where no recent write touches it; with the table's schema also when it is empty.
        """
        if not prefix:
            table = self.table if prefix is not None else self._layout.no_rows
            return table if columns is None else table.select(columns)
        base, overlay = self._state
        start, stop = base.equal_range(prefix)
        first, last = (0, 0) if overlay is None else overlay.equal_range(prefix)
        return _window(base, overlay, start, stop, first, last, columns)

    def read_windows(self, columns: Sequence[int] | None, windows: Sequence[CellRange]) -> list[pa.Table]:
        """The rows between cuts of the key order, cut to some columns.

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


@dataclass(frozen=True, slots=True)
class Overlay:
    """Changed keys in key order, each with its new row or marked as deleted.

    Attributes:
        keys: The changed keys, ascending.
        positions: int64 per key, its position in the sorted rows, or where it would be inserted.
        replaces: bool per key, whether the sorted rows hold it, so that their row at ``positions`` is outdated.
        sources: int64 per key, the row of ``rows`` that is its new row; undefined where it is deleted.
        live: bool per key, False where it is deleted.
        rows: New rows in a few chunks, in the order of writing; may hold rows that later ones replaced.
    """

    keys: tuple[Cells, ...]
    positions: npt.NDArray[np.int64]
    replaces: npt.NDArray[np.bool_]
    sources: npt.NDArray[np.int64]
    live: npt.NDArray[np.bool_]
    rows: pa.Table

    def equal_range(self, prefix: Cells) -> tuple[int, int]:
        """Positions ``[first, last)`` in :attr:`keys` of the keys that begin with a prefix."""
        return prefix_range(self.keys, prefix)

    def bound(self, prefix: Cells, *, after: bool) -> int:
        """Return the position of the first key whose prefix of the same length is not less than ``prefix``.

        With ``after`` it is the first key whose prefix is greater.
        """
        width = len(prefix)
        if not width:
            return len(self.keys) if after else 0
        find = bisect_right if after else bisect_left
        return find(self.keys, prefix, key=lambda key: key[:width])

    def over(
        self, base: pa.Table, start: int, stop: int, first: int, last: int, columns: Sequence[int] | None
    ) -> pa.Table:
        """Return the rows of ``base[start:stop]`` with the changed keys ``[first, last)`` applied, in key order.

        Args:
            base: The sorted rows.
            start: First position of the range in ``base``.
            stop: End of the range in ``base``.
            first: First changed key inside the key range of ``[start, stop)``.
            last: End of the changed keys inside it.
            columns: Positions of the columns wanted, at least one; None for all.

        Returns:
            New memory, but for a single row. Costs a copy of the range: a vectorised merge, since every changed key
            knows its position.
        """
        rows = self.rows if columns is None else self.rows.select(columns)
        if last == first + 1 and self.replaces.item(first) == (stop - start):
            # One key, which is all of the range: its new row, as it lies there.
            return rows.slice(self.sources.item(first), 1) if self.live.item(first) else rows.slice(0, 0)
        window = base.slice(start, stop - start)
        if columns is not None:
            window = window.select(columns)
        positions = self.positions[first:last] - start
        live = self.live[first:last]
        fresh = rows.take(pa.array(self.sources[first:last][live]))
        outdated = positions[self.replaces[first:last]]
        if len(outdated) == window.num_rows:
            return fresh.combine_chunks()
        kept = np.arange(window.num_rows)
        kept[outdated] = -1
        merged = np.insert(kept, positions[live], np.arange(fresh.num_rows) + window.num_rows)
        return gather([window, fresh], pa.array(merged[merged >= 0]))

    def among(self, base: pa.Table, positions: npt.NDArray[np.int64], columns: Sequence[int] | None) -> pa.Table:
        """Some of the sorted rows, without those that are outdated, and all new ones, in key order.

        Args:
            base: The sorted rows, cut to ``columns``.
            positions: Those wanted of them, ascending.
            columns: Positions of the columns wanted, at least one; None for all.
        """
        rows = self.rows if columns is None else self.rows.select(columns)
        fresh = rows.take(pa.array(self.sources[self.live]))
        kept = positions[~np.isin(positions, self.positions[self.replaces])]
        # A changed key stands before the row at its position.
        order = np.argsort(np.concatenate([kept * 2 + 1, self.positions[self.live] * 2]), kind="stable")
        return gather([base.take(pa.array(kept)), fresh], pa.array(order))

    def fold(self, base: SortedRows, layout: TableLayout) -> SortedRows:
        """All sorted rows with all changes."""
        folded = SortedRows(self.over(base.table, 0, base.rows, 0, len(self.keys), None), layout.order)
        folded.ready_as(base)
        return folded
