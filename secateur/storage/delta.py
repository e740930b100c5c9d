"""The delta of one partition: recent small changes, indexed by key, so that a write costs only the rows written."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from secateur.storage.gather import gather
from secateur.storage.key_order import Cells
from secateur.storage.layout import TableLayout
from secateur.storage.overlay import Overlay
from secateur.storage.sorted_rows import SortedRows

__all__ = ["Delta"]

_BATCHES_MAX: Final = 16
"""Batches that a reader takes as they are; beyond, putting them into one copy pays."""


@dataclass(slots=True)
class _Entry:
    """One changed key. ``source`` is its new row among those written, None when it is deleted."""

    position: int
    replaces: bool
    source: int | None


class Delta:
    """Changes on top of sorted rows, mutable, used on the member's loop thread only.

    Args:
        layout: The table's.
        base: The rows beneath; fixed as long as this delta lives.
    """

    __slots__ = ("_batches", "_entries", "_keys", "_layout", "_written", "base", "rows")

    def __init__(self, layout: TableLayout, base: SortedRows) -> None:
        self._layout = layout
        self._entries: dict[Cells, _Entry] = {}
        self._keys: list[Cells] = []
        self._batches: list[pa.Table] = []
        self._written = 0
        self.base = base
        self.rows = base.rows
        """Rows that a reader sees: those beneath, with the changes."""

    @property
    def size(self) -> int:
        """Work that a reader has with this delta: rows written plus keys changed."""
        return self._written + len(self._keys)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows written.

        The index beside them is a few hundred bytes per changed key, and bounded by the partition.
        """
        return sum(batch.get_total_buffer_size() for batch in self._batches)

    def holds(self, key: Cells) -> bool:
        """Whether a reader would find a row with this key.

        Costs one dictionary look-up, and a binary search for a key not changed yet.
        """
        return self._locate(key)[1]

    def put(self, keys: list[Cells], rows: pa.Table) -> None:
        """Add rows, or replace those with the same key; ``keys`` are theirs, in the same order."""
        # A copy, since the rows may be a slice that keeps a whole received frame alive.
        self._batches.append(gather([rows]))
        for source, key in enumerate(keys, self._written):
            entry, live = self._locate(key)
            entry.source = source
            self._keep(key, entry)
            self.rows += not live
        self._written += rows.num_rows

    def remove(self, keys: list[Cells]) -> int:
        """Delete keys that are there, ignore those that are not.

        Returns:
            How many rows are gone.
        """
        removed = 0
        for key in keys:
            entry, live = self._locate(key)
            if live:
                entry.source = None
                self._keep(key, entry)
                removed += 1
        self.rows -= removed
        return removed

    def freeze(self) -> Overlay | None:
        """The changes so far as a value that stays as it is; None when there are none."""
        if not self._keys:
            return None
        if len(self._batches) > _BATCHES_MAX:
            self._batches = [gather(self._batches)]
        entries = [self._entries[key] for key in self._keys]
        return Overlay(
            keys=tuple(self._keys),
            positions=np.array([entry.position for entry in entries], dtype=np.int64),
            replaces=np.array([entry.replaces for entry in entries], dtype=np.bool_),
            sources=np.array([-1 if entry.source is None else entry.source for entry in entries], dtype=np.int64),
            live=np.array([entry.source is not None for entry in entries], dtype=np.bool_),
            rows=pa.concat_tables(self._batches) if self._batches else self._layout.no_rows,
        )

    def _locate(self, key: Cells) -> tuple[_Entry, bool]:
        """The entry of a key, a new one if it has not changed yet, and whether a reader sees a row with it."""
        entry = self._entries.get(key)
        if entry is not None:
            return entry, entry.source is not None
        start, stop = self.base.equal_range(key)
        return _Entry(start, start < stop, None), start < stop

    def _keep(self, key: Cells, entry: _Entry) -> None:
        if key not in self._entries:
            self._entries[key] = entry
            insort(self._keys, key)
