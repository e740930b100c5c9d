"""Rows in primary-key order, and what was derived from them.

A secondary index has row positions in the order of some other columns. It belongs to sorted rows, which never change,
so it never needs maintenance: the first search that needs it makes it, all later ones share it, and it is freed with
the rows when a merge replaces them. Later writes lie beside the rows (:mod:`~secateur.storage.overlay`) and are
searched separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.storage.gather import single_array
from secateur.storage.key_order import CellRange, KeyOrder
from secateur.storage.scan_run import ScanRun
from secateur.storage.sorted_table import SortedTable


class SortedIndex:
    """The rows of a partition in the order of its columns.

    Rows with a NULL in one of them are left out, because no comparison finds them.

    Safe to read from any thread.

    Args:
        table: The rows, in the order of their positions.
        order: The columns, most significant first.
    """

    __slots__ = ("_positions", "_sorted", "nbytes")

    def __init__(self, table: pa.Table, order: KeyOrder) -> None:
        known = pc.indices_nonzero(reduce(pc.and_, (single_array(table, name).is_valid() for name in order.names)))
        table = table.select(order.names)
        if len(known) < table.num_rows:
            table = table.take(known)
        names = [str(position) for position in range(len(order.names))]
        arranged = pc.sort_indices(
            pa.RecordBatch.from_arrays(order.sortable(table), names=names),
            sort_keys=[(name, "ascending") for name in names],
        )
        self._positions: npt.NDArray[np.int64] = known.take(arranged).to_numpy().astype(np.int64)
        self._sorted = SortedTable(table.take(arranged).combine_chunks(), order)
        self.nbytes: int = self._positions.nbytes + self._sorted.own_bytes

    def find(self, windows: Sequence[CellRange]) -> npt.NDArray[np.int64]:
        """Return the positions of the rows in some windows, ascending.

        Cost: two binary searches for each window, and a sort of the positions found.
        """
        found = []
        for window in windows:
            start = self._sorted.bound(window.lower, after=window.after_lower)
            stop = self._sorted.bound(window.upper, after=window.after_upper)
            if start < stop:
                found.append(self._positions[start:stop])
        return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


class SortedRows(SortedTable):
    """A table sorted by primary key, every key once."""

    __slots__ = ("_indexes", "scan_run")

    def __init__(self, table: pa.Table, order: KeyOrder) -> None:
        super().__init__(table, order)
        self._indexes: dict[tuple[str, ...], SortedIndex] = {}
        self.scan_run: ScanRun | None = None
        """The columns that were made for scans of these rows, and of those of other partitions that are scanned
        together with them.
        """

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and of everything derived from them."""
        if self.scan_run is None and not self._indexes:
            return self.own_bytes
        scanned = 0 if self.scan_run is None else self.scan_run.nbytes
        return self.own_bytes + scanned + sum(index.nbytes for index in self._indexes.values())

    @property
    def indexed(self) -> list[tuple[str, ...]]:
        """The columns of each secondary index that was made of them."""
        return list(self._indexes)

    def index(self, order: KeyOrder) -> SortedIndex:
        """The secondary index by some columns. The first call sorts the rows, for all after it."""
        names = tuple(order.names)
        index = self._indexes.get(names)
        if index is None:
            # Two threads may both get here; they make equal indexes and either may stay.
            index = self._indexes[names] = SortedIndex(self.table, order)
        return index
