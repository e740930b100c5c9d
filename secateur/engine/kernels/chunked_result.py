"""The answer of a kernel call that is taken a part at a time, so that nobody has to hold all of it.

DuckDB works a query off as its rows are fetched: behind sorts, groups and the build sides of joins it keeps about a
megabyte of rows ready, and rests when nobody takes them. What the arrow kernel answers is there at once, and taken in
slices.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Protocol

import pyarrow as pa

from secateur.partitioning.types.empty_rows import empty_table

__all__ = ["ChunkedResult", "CompleteResult", "StreamedResult", "slice_of_bytes"]


class ChunkedResult(Protocol):
    """Rows that are taken from any thread, by one consumer at a time."""

    @property
    def is_done(self) -> bool:
        """Whether everything has been taken. False may mean that nobody knows yet: the next part is empty then."""

    @property
    def held_bytes(self) -> int:
        """Bytes of rows that are there and were not taken."""

    def take(self, bytes_wanted: int) -> pa.Table:
        """The next rows: about as many bytes as wanted, or what is left; without rows when nothing is. May take long.

        Raises:
            Error: Why there are no more; see :func:`secateur.engine.kernels.fragment.run`.
        """

    def close(self) -> None:
        """Make no more rows, and let go of what was read.

        Waits for a ``take`` that is under way; may be called twice.
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
        parts: Makes it; the first part says the types, were it without rows. Closed, it gives back what it took.
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
            # A closed answer of which nothing was taken has no columns: nobody looks at it.
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
