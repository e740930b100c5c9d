"""Pruning at the member: the key ranges that each partition is searched for.

Rows are found as tables (:func:`row_finder`), and few of them as Python values (:func:`few_finder`).

A statement's partitions are found for all its keys together. At the member, a range that names every partitioning
column is searched for only in the one partition that can hold it: with ten keys in ten partitions, each partition is
searched for one.

Source: Apache Kudu, "Scan Optimization & Partition Pruning", where the tablet server prunes once more with the bounds
of the tablet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from secateur.errors import Error
from secateur.partitioning.pruning.key_range import IndexSlice, KeyRange, KeyRanges, KeySlice
from secateur.storage.hosted_tables import HostedTable, HostedTables
from secateur.storage.key_order import CellRange
from secateur.storage.layout import TableLayout
from secateur.storage.read_lease import ReadLease
from secateur.storage.snapshot import PartitionSnapshot
from secateur.wire import ShortTable


@dataclass(frozen=True, slots=True)
class KeyWindows:
    """Ranges of keys as cells, ascending, assigned to partitions.

    Attributes:
        windows: For a partition that nothing is assigned to.
        assigned: For the others.
    """

    windows: Sequence[CellRange]
    assigned: Mapping[int, Sequence[CellRange]]

    @classmethod
    def of(cls, layout: TableLayout, keys: KeyRanges) -> KeyWindows:
        """Assign ranges to partitions.

        Raises:
            DataError: A value that its column cannot be compared with.
            ParameterError: More values than key columns.
        """
        windows = [layout.order.window(span) for span in keys.ranges]
        if len(windows) < 2:
            return cls(windows, {})
        partitions = [_partition(layout, span) for span in keys.ranges]
        anywhere = [window for window, partition in zip(windows, partitions, strict=True) if partition is None]
        assigned: dict[int, list[CellRange]] = {}
        for number in dict.fromkeys(partition for partition in partitions if partition is not None):
            assigned[number] = [
                window for window, partition in zip(windows, partitions, strict=True) if partition in (None, number)
            ]
        return cls(anywhere, assigned)

    def of_partition(self, number: int) -> Sequence[CellRange]:
        """The ranges that a partition can hold keys of."""
        return self.assigned.get(number, self.windows)


def _partition(layout: TableLayout, span: KeyRange) -> int | None:
    """The one partition that can hold the keys of a range; None when there may be several, or none that is known."""
    shared = []
    for low, high in zip(span.lower.values, span.upper.values, strict=False):
        if low != high:
            break
        shared.append(low)
    return partition_of_prefix(layout, shared)


def partition_of_prefix(layout: TableLayout, prefix: Sequence[Any]) -> int | None:
    """The one partition that can hold the keys that begin with some values.

    None when there may be several, or none that is known.
    """
    partition_of = layout.partition_of_prefix[len(prefix)]
    if partition_of is None:
        return None
    try:
        return partition_of(prefix)
    except Error:
        # A value that no range holds, or that the column cannot have: no partition has such keys, and searching all
        # partitions for it is not wrong.
        return None


def row_finder(
    layout: TableLayout, positions: Sequence[int] | None, keys: KeySlice | None
) -> Callable[[PartitionSnapshot, int], Sequence[pa.Table]]:
    """Make a function that finds the wanted rows of a partition, in its snapshot and by its number.

    Args:
        layout: The table's.
        positions: Those of the columns wanted, at least one; None for all.
        keys: The part of each partition that is wanted, None for all of it. A NULL in a prefix matches nothing.

    Raises:
        UnknownColumnError: An index has a column that the table has not.
        DataError: A key value of another type than its column.
    """
    if isinstance(keys, IndexSlice):
        order, part = layout.index_order(keys.columns), keys.part
        if isinstance(part, KeyRanges):
            spans = [order.window(span) for span in part.ranges]
        else:
            prefix = order.cells(part.values)
            spans = [] if prefix is None else [CellRange(prefix, False, prefix, True)]
        return lambda snapshot, _: [snapshot.read_index(positions, order, spans)]
    if isinstance(keys, KeyRanges):
        windows = KeyWindows.of(layout, keys)
        return lambda snapshot, number: snapshot.read_windows(positions, windows.of_partition(number))
    cells = () if keys is None else layout.order.cells(keys.values)
    return lambda snapshot, _: [snapshot.read(positions, cells)]


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

    It gives the columns in the order wanted, and only as long as the lease lasts.

    Most serving statements read a row or some tens of them. As Python values these rows cost a fraction of what slices
    of Arrow tables do that are made, put together and turned into Python values afterwards.

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
