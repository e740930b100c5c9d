"""A few rows that are written, as the plain values in which they came: kept so until a reader wants them in Arrow.

Making an Arrow table of one row takes longer than all else that a write does, and nobody may read it before the next
row replaces it. With Arrow at the client, at each copy and in the log, 60 % of the processor time of a write went into
making, writing, reading and checking such tables. Whoever stores the rows first brings each value into the canonical
form of its column, so that they can always become Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from secateur.errors import DataError
from secateur.partitioning.types.coerce import coerce
from secateur.storage.key_order import Cells
from secateur.storage.layout import TableLayout
from secateur.wire import ShortTable


class FewRows:
    """Rows of one table, or keys of rows to delete, as canonical values: checked, so that they can become Arrow.

    Attributes:
        columns: The values by column: all columns of the table, or those of its key in key order.
        num_rows: The length of each.
    """

    __slots__ = ("_layout", "are_keys", "columns", "nbytes", "num_rows")

    def __init__(self, layout: TableLayout, columns: Sequence[list[Any]], num_rows: int, *, are_keys: bool) -> None:
        self._layout = layout
        self.columns = columns
        self.num_rows = num_rows
        self.are_keys = are_keys
        self.nbytes = ShortTable(columns, num_rows).nbytes
        """The bytes that the rows take, about."""

    @classmethod
    def admit(cls, layout: TableLayout, given: ShortTable, *, are_keys: bool = False) -> FewRows:
        """Check rows that come from outside: the values of all columns, or of the key's columns in key order.

        Raises:
            DataError: Another number of columns, a column whose values do not travel so, or a value that its column
                cannot hold.
            NullKeyError: A NULL in a NOT NULL column.

        Cost: a microsecond for each value that is not canonical yet, and a tenth of that for every other.
        """
        table, columns = layout.tdef, layout.key_columns if are_keys else layout.tdef.columns
        if len(given.columns) != len(columns) or not layout.takes_values:
            raise DataError(
                f"{table.name}: rows of {len(given.columns)} plain values were sent for the columns"
                f" {', '.join(f'{column.name} {column.type}' for column in columns)}: send them in Arrow",
                table=table.name,
            )
        tests = layout.are_canonical_keys if are_keys else layout.are_canonical
        admitted = []
        for column, values, are_canonical in zip(columns, given.columns, tests, strict=True):
            name = column.name
            if not column.nullable and None in values:
                raise layout.null_in(name, values.count(None), given.num_rows)
            admitted.append(
                values if are_canonical(values) else [coerce(value, column.type, column=name) for value in values]
            )
        return cls(layout, admitted, given.num_rows, are_keys=are_keys)

    def keys(self) -> list[Cells]:
        """The key of every row."""
        columns = self.columns if self.are_keys else [self.columns[at] for at in self._layout.key_positions]
        return [self._layout.order.cells_of_key(key) for key in zip(*columns, strict=True)]

    def only(self, rows: Sequence[int]) -> FewRows:
        """Some of the rows, by their numbers."""
        chosen = [[column[row] for row in rows] for column in self.columns]
        return FewRows(self._layout, chosen, len(rows), are_keys=self.are_keys)

    def to_table(self) -> pa.Table:
        """The same in Arrow, in the schema of the table, or of its keys. Costs some ten microseconds a column."""
        layout = self._layout
        if self.are_keys:
            return ShortTable(self.columns, self.num_rows).in_schema(
                [column.type for column in layout.key_columns], layout.key_schema
            )
        return ShortTable(self.columns, self.num_rows).in_schema(layout.types, layout.schema)

    def check_partition(self, partition: int) -> None:
        """Check every row, as :meth:`~secateur.storage.layout.TableLayout.check_partition` does some.

        Raises:
            TopologyChangedError: One belongs elsewhere.
            NoRangeError: No range holds one of them.
        """
        layout = self._layout
        partition_of = layout.partition_of_prefix[-1] if self.are_keys else layout.partition_of_row
        if partition_of is None:
            return
        for row, values in enumerate(zip(*self.columns, strict=True)):
            if partition_of(values) != partition:
                layout.check_partition(self.only([row]).to_table(), partition)  # says what is wrong
