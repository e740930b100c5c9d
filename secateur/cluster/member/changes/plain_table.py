"""What a change has to know of a table to write one of its rows as plain values; worked out once for many rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from secateur.partitioning.tables.table import TableDef
from secateur.wire import is_short, travels_short


class PlainTable:
    """One definition of a table.

    Args:
        table: The table.

    Attributes:
        table: The table.
        table_id: Its id.
        key_positions: The columns of the primary key among all, in key order.
        partition_of: The partition of a row by its key; only where it has plain rows.
        has_plain_rows: Whether the key of a row says its partition, and plain values represent the row completely.
    """

    __slots__ = ("_needed", "_types", "has_plain_rows", "key_positions", "partition_of", "table", "table_id")

    def __init__(self, table: TableDef) -> None:
        self.table = table
        self.table_id = table.table_id
        positions = {column.name: at for at, column in enumerate(table.columns)}
        self.key_positions = tuple(positions[name] for name in table.primary_key)
        self._types = [column.type for column in table.columns]
        self._needed = tuple(at for at, column in enumerate(table.columns) if not column.nullable)
        self.has_plain_rows = table.is_placed_by_key and travels_short(self._types)
        if self.has_plain_rows:
            self.partition_of: Callable[[Sequence[Any]], int] = table.scheme.partition_function(table.primary_key)

    def is_plain(self, row: Sequence[Any]) -> bool:
        """Whether a row can be written as plain values; one with a NULL too many is left to what says so."""
        for at in self._needed:
            if row[at] is None:
                return False
        return is_short([[value] for value in row], self._types)
