"""The answer of a kernel call, taken in parts so that it need not be held as a whole.

DuckDB executes a query as its rows are fetched: after sorts, groups and the build sides of joins it keeps about a
megabyte of rows ready, and pauses until they are taken. The answer of the arrow kernel is complete at once, and taken
in slices.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Protocol

import pyarrow as pa

from secateur.partitioning.types.empty_rows import empty_table


class ChunkedResult(Protocol):
    """Rows that are taken from any thread, by one consumer at a time."""

    @property
    def is_done(self) -> bool:
        """Whether all rows have been taken. False may mean that it is not known yet: the next part is then empty."""

    @property
    def held_bytes(self) -> int:
        """Bytes of rows that are there and were not taken."""

    def take(self, bytes_wanted: int) -> pa.Table:
        """Return the next rows: about as many bytes as wanted, or the rest. May take long.

        The table is without rows when none remain.

        Raises:
            Error: Why there are no more; see :func:`secateur.engine.kernels.fragment.run`.
        """

    def close(self) -> None:
        """Stop the statement and free its input.

        Waits for a running ``take``; may be called twice.
        """


class CompleteResult:
    """An answer that is there.

    Args:
        table: All of it.
    """

    def __init__(self, table: pa.Table) -> None:
        self._rest = table
        self.held_bytes = table.nbytes

    @property
    def is_done(self) -> bool:
        return not self._rest.num_rows

    def take(self, bytes_wanted: int) -> pa.Table:
        taken = slice_of_bytes(self._rest, bytes_wanted, self.held_bytes)
        # In proportion: counting the bytes of many slices costs more than sending one.
        self.held_bytes -= self.held_bytes * taken.num_rows // max(self._rest.num_rows, 1)
        self._rest = self._rest.slice(taken.num_rows)
        return taken

    def close(self) -> None:
        self._rest = self._rest.slice(0, 0)
        self.held_bytes = 0


class StreamedResult:
    """An answer that a kernel makes as it is taken.

    Args:
        parts: Makes it; the first part has the types, even without rows. Closing it frees its resources.
    """

    held_bytes = 0

    def __init__(self, parts: Generator[pa.Table, None, None]) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._schema: pa.Schema | None = None
        self.is_done = False

    def take(self, bytes_wanted: int) -> pa.Table:
        with self._lock:
            taken: list[pa.Table] = []
            taken_bytes = 0
            try:
                while not self.is_done and taken_bytes < bytes_wanted:
                    part = next(self._parts, None)
                    if part is None:
                        self.is_done = True
                    else:
                        taken.append(part)
                        taken_bytes += part.nbytes
            except BaseException:
                self.is_done = True
                raise
            if taken:
                self._schema = taken[0].schema
            # A closed answer of which nothing was taken has no columns, which are not needed.
            return pa.concat_tables(taken) if taken else empty_table(self._schema or pa.schema([]))

    def close(self) -> None:
        with self._lock:
            self.is_done = True
            self._parts.close()


def slice_of_bytes(table: pa.Table, bytes_wanted: int, table_bytes: int) -> pa.Table:
    """The first rows of a table of that many bytes: about as many as are wanted, and at least one."""
    return (
        table if table_bytes <= bytes_wanted else table.slice(0, max(1, table.num_rows * bytes_wanted // table_bytes))
    )
