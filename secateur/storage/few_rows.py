"""A few rows that are written, as the plain values in which they came: kept so until a reader wants them in Arrow.

Making an Arrow table of one row takes longer than all else that a write does, and nobody may read it before the next
row replaces it. With Arrow at the client, at each copy and in the log, 60 % of the processor time of a write went into
making, writing, reading and checking such tables. Whoever stores the rows first brings each value into the canonical
form of its column, so that they can always become Arrow, and makes their keys: both once at each copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from secateur.errors import DataError
from secateur.partitioning.types.coerce import coerce
from secateur.storage.key_order import Cells
from secateur.storage.layout import PlainForm, TableLayout
from secateur.wire import ShortTable
from secateur.wire.short_table import VALUE_BYTES


class FewRows(msgspec.Struct, frozen=True):
    """Rows of one table, or keys of rows to delete, as canonical values: checked, so that they can become Arrow.

    Attributes:
        form: Which values they have.
        columns: The values by column.
        num_rows: The length of each.
        keys: The key of every row.
        nbytes: The bytes that the rows take, about.
    """

    form: PlainForm
    columns: Sequence[list[Any]]
    num_rows: int
    keys: list[Cells]
    nbytes: int

    @classmethod
    def admit(
        cls,
        layout: TableLayout,
        given: Sequence[list[Any]],
        *,
        are_keys: bool = False,
        convert: Callable[..., Any] = coerce,
    ) -> FewRows:
        """Check rows that come from outside.

        Args:
            layout: The table's.
            given: The values of all columns, or of the key's columns in key order; as many of each.
            are_keys: Which of the two.
            convert: Brings a value into the canonical form of a type, as :func:`~.coerce.coerce` does, or refuses it.

        Raises:
            DataError: Another number of columns, a column whose values do not travel so, or a value that its column
                cannot hold.
            NullKeyError: A NULL in a NOT NULL column.

        Cost: a microsecond for each value that is not canonical yet, and a tenth of that for every other.
        """
        form = layout.plain_keys if are_keys else layout.plain_rows
        columns, count = form.columns, len(form.columns)
        if len(given) != count or not layout.takes_values:
            table = layout.tdef.name
            raise DataError(
                f"{table}: rows of {len(given)} plain values were sent for the columns"
                f" {', '.join(f'{column.name} {column.type}' for column in columns)}: send them in Arrow",
                table=table,
            )
        num_rows, at = len(given[0]), form.uncertain(given, 0)
        while at < count:
            column, values = columns[at], given[at]
            if not column.nullable and None in values:
                raise layout.null_in(column.name, values.count(None), num_rows)
            canonical = [convert(value, column.type, column=column.name) for value in values]
            given = [*given[:at], canonical, *given[at + 1 :]]
            at = form.uncertain(given, at + 1)
        nbytes = VALUE_BYTES * num_rows * count
        for at in form.texts:
            for value in given[at]:
                if value is not None:
                    nbytes += len(value)
        keys = layout.order.cells_of_keys(given, form.key_positions)
        return cls(form, given, num_rows, keys, nbytes)

    def only(self, rows: Sequence[int]) -> FewRows:
        """Some of the rows, by their numbers."""
        chosen = [[column[row] for row in rows] for column in self.columns]
        nbytes = ShortTable(chosen, len(rows)).nbytes
        return FewRows(self.form, chosen, len(rows), [self.keys[row] for row in rows], nbytes)

    def to_table(self) -> pa.Table:
        """The same in Arrow, in the schema of the table, or of its keys. Costs some ten microseconds a column."""
        return in_arrow(self.form, self.columns)

    def check_partition(self, layout: TableLayout, partition: int) -> None:
        """Check every row, as :meth:`~secateur.storage.layout.TableLayout.check_partition` does some.

        Raises:
            TopologyChangedError: One belongs elsewhere.
            NoRangeError: No range holds one of them.
        """
        partition_of = self.form.partition_of
        if partition_of is None:
            return
        for row, values in enumerate(zip(*self.columns, strict=True)):
            if partition_of(values) != partition:
                layout.check_partition(self.only([row]).to_table(), partition)  # says what is wrong


def in_arrow(form: PlainForm, columns: Sequence[list[Any]]) -> pa.Table:
    """Canonical values of this form, by column, in Arrow."""
    types = [column.type for column in form.columns]
    return ShortTable(columns, len(columns[0])).in_schema(types, form.schema)
