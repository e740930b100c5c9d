"""Rows of a partition that are kept for later readers as they were when they were pinned."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from secateur.partitioning.pruning.key_range import KeyPrefix, KeySlice
from secateur.storage.key_windows import row_finder
from secateur.storage.layout import TableLayout
from secateur.storage.partition import Partition
from secateur.storage.snapshot import PartitionSnapshot


@dataclass(frozen=True, slots=True)
class PinnedRows:
    """Rows of one partition at one moment. Immutable; safe to read from any thread.

    Attributes:
        partition: The partition.
        rows: How many.
        nbytes: About as many bytes as their wanted columns take.
        read: Returns them, always in the same order. The first call may have to merge recent changes, which costs a
            copy of the partition.
        kept: What stays in memory for them: the rows of the partition at that moment, or a copy of those that were
            found.
        source: The partition, for as long as it is here.
    """

    partition: int
    rows: int
    nbytes: int
    read: Callable[[], pa.Table]
    kept: PartitionSnapshot | pa.Table
    source: weakref.ref[Partition]


def bytes_kept(pins: Iterable[PinnedRows]) -> int:
    """Bytes that are in memory for these pins alone: rows that their partitions have replaced since, and copies.

    What several pins keep counts once. On the member's loop thread. Cost: about two microseconds per pin.
    """
    kept: dict[int, int] = {}
    for pin in pins:
        if isinstance(pin.kept, PartitionSnapshot):
            partition = pin.source()
            for rows, nbytes in pin.kept.bytes_beside(None if partition is None else partition.base):
                kept[id(rows)] = nbytes
        else:
            kept[id(pin.kept)] = pin.kept.get_total_buffer_size()
    return sum(kept.values())


def pinned(
    layout: TableLayout, partitions: Iterable[Partition], columns: Sequence[str], keys: KeySlice | None
) -> Iterator[PinnedRows]:
    """Pin the rows of some partitions, leaving out partitions without any. On the member's loop thread.

    ``columns`` are those wanted, at least one; ``keys`` is the part of each partition that is wanted, None for all of
    it; as in ``MemberStore.relation``.

    Cost: for whole partitions microseconds each, since recent changes are merged by the reader. With keys, a search in
    each.

    Raises:
        UnknownColumnError: No such column.
        DataError: A key value of another type than its column.
    """
    positions = layout.column_positions(columns)
    is_all = keys in (None, KeyPrefix(()))
    find = row_finder(layout, positions, keys)
    for partition in partitions:
        snapshot = partition.snapshot()
        if is_all:
            if snapshot.rows:
                read = partial(snapshot.read, positions)
                size = snapshot.bytes_of(positions)
                yield PinnedRows(partition.number, snapshot.rows, size, read, snapshot, weakref.ref(partition))
            continue
        pieces = [piece for piece in find(snapshot, partition.number) if piece.num_rows]
        if pieces:
            found = pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces)
            kept = snapshot if snapshot.has_memory_of(found) else found
            read = partial(_itself, found)
            yield PinnedRows(partition.number, found.num_rows, found.nbytes, read, kept, weakref.ref(partition))


def _itself(table: pa.Table) -> pa.Table:
    return table
