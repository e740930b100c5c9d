"""The primary key of a table as an order of rows: key tuples, cells of a prefix, and texts for error messages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from secateur.errors import DataError, ParameterError, SchemeError
from secateur.partitioning.pruning.key_range import KeyRange
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.arrow_layout import comparable
from secateur.partitioning.types.cast import scalar_text
from secateur.storage.block import single_array
from secateur.storage.key_column import NOT_OF_TYPE, Cell, CellView, KeyColumn

Cells: TypeAlias = tuple[Cell, ...]
"""A key or a prefix of one: comparable with every other key of the same table, element by element, as Python tuples
compare.
"""


def prefix_range(keys: Sequence[Cells], prefix: Cells) -> tuple[int, int]:
    """Positions ``[first, last)`` of the keys that begin with a prefix, in keys that ascend.

    Cost: where none does, a binary search without a call for each comparison.
    """
    width, first = len(prefix), bisect_left(keys, prefix)
    if first == len(keys) or prefix < keys[first][:width]:
        return first, first
    return first, bisect_right(keys, prefix, first, key=lambda key: key[:width])


@dataclass(frozen=True, slots=True)
class CellRange:
    """A :class:`~secateur.partitioning.pruning.key_range.KeyRange` in cells.

    It extends from before or after all keys that begin with ``lower`` to before or after those that begin with
    ``upper``.
    """

    lower: Cells
    after_lower: bool
    upper: Cells
    after_upper: bool

    @property
    def is_prefix(self) -> bool:
        """Whether it contains exactly the keys that begin with ``lower``."""
        return not self.after_lower and self.after_upper and self.lower == self.upper


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The order of the rows of one table.

    Attributes:
        table: Name of the table, for messages.
        columns: The primary-key columns, most significant first.
    """

    table: str
    columns: tuple[KeyColumn, ...]

    @classmethod
    def of(cls, tdef: TableDef) -> KeyOrder:
        """The order of a table.

        Raises:
            SchemeError: The table has no primary key.
            NotSupportedError: A key column has a type without an order.
        """
        if not tdef.primary_key:
            raise SchemeError(
                f"table {tdef.name} has no primary key: rows are kept in its order, so declare PRIMARY KEY (...)"
            )
        return cls.over(tdef, tdef.primary_key)

    @classmethod
    def over(cls, tdef: TableDef, names: Sequence[str]) -> KeyOrder:
        """The order by some columns of a table.

        Raises:
            UnknownColumnError: There is no such column.
            NotSupportedError: A column has a type without an order.
        """
        columns = map(tdef.column, names)
        return cls(tdef.name, tuple(KeyColumn.of(tdef.name, c.name, c.type) for c in columns))

    @property
    def names(self) -> list[str]:
        """Names of the key columns as the table spells them."""
        return [column.name for column in self.columns]

    def cells(self, prefix: Sequence[Any]) -> Cells | None:
        """Cells of the leading key values, or None when one of them is NULL: no key equals NULL.

        Args:
            prefix: Canonical Python values, at most one per key column.

        Raises:
            DataError: A value that its column cannot be compared with.
            ParameterError: More values than key columns.
        """
        if len(prefix) > len(self.columns):
            raise ParameterError(
                f"{self.table}: {len(prefix)} key values given, the primary key has {len(self.columns)} columns"
                f" ({', '.join(self.names)})"
            )
        if None in prefix:
            return None
        try:
            return tuple([column.to_cell(value) for column, value in zip(self.columns, prefix, strict=False)])
        except NOT_OF_TYPE:  # each says so of its own value
            return tuple([column.cell(value) for column, value in zip(self.columns, prefix, strict=False)])

    def cells_of_keys(self, columns: Sequence[Sequence[Any]], positions: Sequence[int]) -> list[Cells]:
        """Cells of whole keys.

        Args:
            columns: Canonical Python values by column.
            positions: Those of the key columns, in key order; none of their values is NULL.

        Raises:
            DataError: A value that its column cannot be compared with.
        """
        keys: list[Cells] = []
        own = list(zip(self.columns, positions, strict=True))
        for row in range(len(columns[positions[0]])):
            try:
                keys += (tuple([key.to_cell(columns[at][row]) for key, at in own]),)
            except NOT_OF_TYPE:  # each says so of its own value
                keys += (tuple([key.cell(columns[at][row]) for key, at in own]),)
        return keys

    def window(self, keys: KeyRange) -> CellRange:
        """The two cuts of a range as cells.

        Raises:
            DataError: A NULL, or a value that its column cannot be compared with.
            ParameterError: More values than key columns.
        """
        return CellRange(self._cut(keys.lower.values), keys.lower.after, self._cut(keys.upper.values), keys.upper.after)

    def _cut(self, values: Sequence[Any]) -> Cells:
        cells = self.cells(values)
        if cells is None:
            columns = ", ".join(self.names[: len(values)])
            raise DataError(
                f"{self.table}: a bound on ({columns}) holds NULL; such a comparison is never true, answer it without a"
                " scan"
            )
        return cells

    def sortable(self, table: pa.Table) -> list[pa.Array]:
        """The key columns as arrays that Arrow orders as SQL does, one chunk each."""
        return [comparable(single_array(table, name)) for name in self.names]

    def views(self, table: pa.Table) -> tuple[CellView, ...]:
        """The key columns of a table of one chunk as sequences of cells."""
        return tuple(column.view(single_array(table, column.name)) for column in self.columns)

    def keys(self, table: pa.Table) -> list[Cells]:
        """The key of every row. Costs about 0.2 us a row: for small batches only."""
        views = self.views(table)
        return [tuple([view[row] for view in views]) for row in range(table.num_rows)]

    def describe(self, table: pa.Table, row: int) -> str:
        """The key of one row in words, such as ``(tailnum='N14228', day=2013-01-01)``."""
        return f"({', '.join(f'{name}={_text(table.column(name)[row])}' for name in self.names)})"

    def plain(self, table: pa.Table, row: int) -> list[Any]:
        """The key of one row as plain values that an error can carry over the wire."""
        values = [table.column(name)[row] for name in self.names]
        return [
            value.as_py() if pa.types.is_integer(value.type) or pa.types.is_string(value.type) else _text(value)
            for value in values
        ]


def _text(scalar: pa.Scalar) -> str:
    if pa.types.is_string(scalar.type) or pa.types.is_binary(scalar.type):
        return repr(scalar.as_py())
    try:
        return str(scalar.as_py())
    except (OverflowError, ValueError):
        return scalar_text(scalar)
