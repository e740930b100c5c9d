"""The rows of a table for the one that an ALTER TABLE puts in its place: columns are shared, and not copied.

Reading a column that rows do not have as its default, at each place that reads one, would cost every reader something
for ever. One array of the default, as long as the largest partition, is made once for all partitions of a member
instead: each has a slice of it. A later merge makes values of their own, as of any column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from secateur.errors import LimitExceededError
from secateur.partitioning.types.python_column import canonical_column
from secateur.storage.block import TEXT_BYTES_MAX
from secateur.storage.layout import TableLayout
from secateur.storage.snapshot import PartitionSnapshot
from secateur.storage.sorted_rows import SortedRows
from secateur.wire import ShortTable, decode_rows


@dataclass(frozen=True, slots=True)
class VersionedRows:
    """The rows of a partition with the columns that it is about to have, and the version that was made into them."""

    rows: SortedRows
    version: int


class AlteredRows:
    """Makes rows of a table of those that it had before. Safe to use in any thread.

    Args:
        layout: The table as it is now.
        rows_max: No rows that are given are more.
    """

    def __init__(self, layout: TableLayout, rows_max: int) -> None:
        succession = layout.tdef.succession
        assert succession is not None
        self._layout = layout
        self._sources = succession.sources
        self._rows_max = rows_max
        self._new_names = [
            name for name, source in zip(layout.schema.names, self._sources, strict=True) if source is None
        ]
        self._row = decode_rows(succession.fill) if self._new_names else ShortTable([], 1)
        self._new: dict[str, pa.Array] = {}

    def table(self, rows: pa.Table) -> pa.Table:
        """The same rows with the columns of now.

        Raises:
            LimitExceededError: A new column would have too many bytes of text.
        """
        columns: list[Any] = []
        for field, source in zip(self._layout.schema, self._sources, strict=True):
            if source is None:
                columns.append(self._new_column(field.name).slice(0, rows.num_rows))
            else:
                column = rows.column(source)
                columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.Table.from_arrays(columns, schema=self._layout.schema)

    def _new_column(self, name: str) -> pa.Array:
        found = self._new.get(name)
        if found is None:
            # Two threads may both get here; they make equal columns and either may stay.
            found = self._new[name] = self._repeated(name)
        return found

    def _repeated(self, name: str) -> pa.Array:
        column, row, at, count = self._layout.tdef.column(name), self._row, self._new_names.index(name), self._rows_max
        if not isinstance(row, ShortTable):
            value = row.column(at).chunk(0)
        elif row.columns[at][0] is None:
            return pa.nulls(count, column.type.arrow)
        else:
            value = canonical_column(row.columns[at], column.type)
        if value.nbytes * count > TEXT_BYTES_MAX:
            raise LimitExceededError(
                f"table {self._layout.tdef.name}: column {name} would have {value.nbytes * count} bytes in a partition"
                f" of {count} rows, and {TEXT_BYTES_MAX} at most are possible: add it without a DEFAULT, or with a"
                " shorter one",
                table=self._layout.tdef.name,
            )
        first = pa.Array.from_buffers(pa.uint8(), count, [None, pa.py_buffer(bytes(count))])
        return value.take(first)

    def sorted(self, snapshot: PartitionSnapshot) -> SortedRows:
        """The rows of a partition, in the order in which they are.

        Costs a merge of its recent changes, if there are any.

        Raises:
            NullKeyError: A column that is NOT NULL now has NULLs.
            LimitExceededError: As :meth:`table`.
        """
        before = snapshot.fold()
        rows = self.table(before.table)
        for at, field in enumerate(self._layout.schema):
            if not field.nullable and (nulls := rows.column(at).null_count):
                raise self._layout.null_in(field.name, nulls, rows.num_rows)
        after = SortedRows(rows, self._layout.order)
        after.ready_as(before)
        return after
