"""Few rows that are found by leading values of their keys, as Python values.

Most serving statements read a row or some tens of them. As Python values these rows cost a fraction of what slices of
Arrow tables do that are made, put together and turned into Python values afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from secateur.storage.hosted_tables import HostedTable, HostedTables
from secateur.storage.key_windows import partition_of_prefix
from secateur.storage.read_lease import ReadLease
from secateur.wire import ShortTable

FindFew: TypeAlias = Callable[[Sequence[int], Sequence[tuple[Any, ...]], int], ShortTable | None]
"""A function that finds the rows in some partitions whose keys begin with some values.

Its arguments are partitions hosted here, each once; canonical values of leading key columns, at least one, and of
equally many each, of which no two are equal; and the most rows. It returns the rows, in no order, with HUGEINTs as
Decimals; None if there are more, or if Python has no object for a value. Its result is not to be changed.

It raises TopologyChangedError if a partition is not here or the lease has ended, UnknownTableError if the table is not
here any more, and DataError for a value of another type than its column.
"""


def few_finder(tables: HostedTables, lease: ReadLease, table_id: int, columns: Sequence[str]) -> FindFew:
    """Make a function that finds rows of a table by leading values of their keys, once for many searches.

    Args:
        tables: The tables of this member.
        lease: The time until which it may answer.
        table_id: The table.
        columns: Columns wanted, in that order.

    Raises:
        UnknownTableError: The table is not here.
        UnknownColumnError: It has no such column.
    """
    layout = tables.table(table_id).layout
    positions = layout.column_positions(columns)
    nothing: list[list[Any]] = [[] for _ in positions]

    def find(partitions: Sequence[int], prefixes: Sequence[tuple[Any, ...]], rows_max: int) -> ShortTable | None:
        lease.check()
        table = tables.get(table_id) or tables.table(table_id)
        try:
            if len(prefixes) == 1 == len(partitions):  # most statements
                (number,), (prefix,) = partitions, prefixes
                cells = table.layout.order.cells(prefix)
                if cells is None:
                    return ShortTable(nothing, 0)
                only = (table.partitions.get(number) or table.partition(number)).values(positions, cells, rows_max)
                return None if only is None else ShortTable(*only)
            return _found(table, positions, partitions, prefixes, rows_max)
        except (ValueError, OverflowError):
            return None

    return find


def _found(
    table: HostedTable,
    positions: Sequence[int],
    partitions: Sequence[int],
    prefixes: Sequence[tuple[Any, ...]],
    rows_max: int,
) -> ShortTable | None:
    order = table.layout.order
    found: list[list[Any]] = [[] for _ in positions]
    count = 0
    for prefix in prefixes:
        searched = _searched(table, partitions, prefix)
        cells = order.cells(prefix) if searched else None
        if cells is None:
            continue
        for number in searched:
            rows = table.partition(number).values(positions, cells, rows_max - count)
            if rows is None:
                return None
            values, rows_found = rows
            count += rows_found
            for column, more in zip(found, values, strict=True):
                column += more
    return ShortTable(found, count)


def _searched(table: HostedTable, partitions: Sequence[int], prefix: Sequence[Any]) -> Sequence[int]:
    """The partitions that can hold keys with a prefix: to hash a key costs a fifth of a search in vain."""
    only = partition_of_prefix(table.layout, prefix)
    if only is None:
        return partitions
    return (only,) if only in partitions else ()
