"""Pruning at the member: the key ranges that each partition is searched for.

A statement's partitions are found for all its keys together. At the member, a range that names every partitioning
column is searched for only in the one partition that can hold it: with ten keys in ten partitions, each partition is
searched for one.

Source: Apache Kudu, "Scan Optimization & Partition Pruning", where the tablet server prunes once more with the bounds
of the tablet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from secateur.errors import Error
from secateur.partitioning.pruning.key_range import KeyRange, KeyRanges
from secateur.storage.key_order import CellRange
from secateur.storage.layout import TableLayout


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
