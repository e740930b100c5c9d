"""Rows in primary-key order, and what was derived from them."""

from __future__ import annotations

import pyarrow as pa

from secateur.storage.key_order import KeyOrder
from secateur.storage.scan_run import ScanRun
from secateur.storage.sorted_index import SortedIndex
from secateur.storage.sorted_table import SortedTable


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
