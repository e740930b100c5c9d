"""Recent changes in an immutable form, which a snapshot lays over the sorted rows of its partition."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.storage.gather import gather
from secateur.storage.key_order import Cells, prefix_range
from secateur.storage.layout import TableLayout
from secateur.storage.sorted_rows import SortedRows


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
