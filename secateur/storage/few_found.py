"""Few rows that are found by leading values of their keys, as Python values.

What most serving statements read is a row or some tens of them. As Python values they cost a fraction of what slices of
Arrow tables do that are made, put together and turned into Python values afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from secateur.storage.hosted_tables import HostedTable
from secateur.storage.key_order import KeyOrder
from secateur.storage.key_windows import partition_of_prefix
from secateur.storage.partition import Partition
from secateur.storage.stored_columns import StoredColumns
from secateur.wire import ShortTable


def find_few(
    table: HostedTable,
    partitions: Sequence[int],
    columns: Sequence[str],
    prefixes: Sequence[tuple[Any, ...]],
    rows_max: int,
) -> ShortTable | None:
    """The rows in some partitions whose keys begin with some values.

    Args:
        table: The table.
        partitions: Partitions hosted here, each once.
        columns: Columns wanted, in that order.
        prefixes: Canonical values of leading key columns, at least one, and of equally many each; no two are equal.
        rows_max: The most rows.

    Returns:
        The rows, in no order; HUGEINTs as Decimals. None if there are more, or if Python has no object for a value.

    Raises:
        TopologyChangedError: A partition is not here.
        DataError: A value of another type than its column.
    """
    layout = table.layout
    positions = layout.column_positions(columns)
    if len(prefixes) == 1 == len(partitions):  # most statements
        try:
            only = _found(table.partition(partitions[0]), layout.order, positions, prefixes[0], rows_max)
        except (ValueError, OverflowError):
            return None
        return None if only is None else ShortTable(*only)
    found: list[list[Any]] = [[] for _ in positions]
    count = 0
    for prefix in prefixes:
        for number in _searched(table, partitions, prefix):
            try:
                rows = _found(table.partition(number), layout.order, positions, prefix, rows_max - count)
            except (ValueError, OverflowError):
                return None
            if rows is None:
                return None
            values, rows_found = rows
            count += rows_found
            for column, more in zip(found, values, strict=True):
                column += more
    return ShortTable(found, count)


def _found(
    partition: Partition, order: KeyOrder, positions: Sequence[int], prefix: Sequence[Any], rows_max: int
) -> tuple[Sequence[list[Any]], int] | None:
    """The rows of one partition with a prefix, by column, and their number; None if there are too many."""
    if len(prefix) < len(order.columns):
        cells = order.cells(prefix)
        return (_nothing(positions), 0) if cells is None else partition.values(positions, cells, rows_max)
    row = partition.find_values(prefix)
    if row is None:
        return _nothing(positions), 0
    if rows_max < 1:
        return None
    if isinstance(row, list):
        return [[row[position]] for position in positions], 1
    columns, at = row
    if isinstance(columns, StoredColumns):
        return columns.run(positions, at, at + 1), 1
    return [[columns[position][at].as_py()] for position in positions], 1


def _nothing(positions: Sequence[int]) -> list[list[Any]]:
    return [[] for _ in positions]


def _searched(table: HostedTable, partitions: Sequence[int], prefix: Sequence[Any]) -> Iterable[int]:
    """Those of the partitions that can hold keys with a prefix."""
    if len(partitions) == 1:
        return partitions
    only = partition_of_prefix(table.layout, prefix)
    if only is None:
        return partitions
    return (only,) if only in partitions else ()
