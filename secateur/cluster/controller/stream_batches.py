"""The last batch of each stream, which says of every batch whether it is in the table: a value.

A stream sends its rows in batches with growing numbers. Whoever sends a batch may die before it has noted that the
batch was published, and then sends it again. So the controller's record has the last batch of each stream for each
table, with the id of the load that brings it. The record is with all members *before* that load is published, and the
members know of every load whether it was: together, this says of each batch whether it is in the table, whatever has
died in between. :mod:`secateur.cluster.controller.publications` acts by it.

The price is one delivery of the record for each batch. Numbers of batches in the messages of the two phases would need
none, but every load would have to carry something of streams.

**Invariant**: a batch is never published under two loads. Before a batch is tried under another load, every member has
given up the one before (`tests/system/test_stream_batches.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from secateur.protocol.recovery import PublishedBatch

_STREAMS_MAX: Final = 1_000
"""Streams of one table whose last batch is kept. The one that has published nothing for longest goes first."""


@dataclass(frozen=True, slots=True)
class StreamBatches:
    """The last batch of each stream for each table: a value.

    Attributes:
        entries: Those that were tried last come last.
    """

    entries: tuple[PublishedBatch, ...] = ()

    def find(self, origin: int, stream: str) -> PublishedBatch | None:
        """The last batch of a stream for a table, given by the id with which it was created."""
        return next((entry for entry in self.entries if entry.origin == origin and entry.batch.stream == stream), None)

    def begun(self, entry: PublishedBatch, tables: Collection[int]) -> StreamBatches:
        """A batch is about to be published: it takes the place of the one before.

        Args:
            entry: The batch.
            tables: The origins of the tables that there are; batches of others are forgotten.
        """
        kept = [
            other
            for other in self.entries
            if other.origin in tables and (other.origin, other.batch.stream) != (entry.origin, entry.batch.stream)
        ]
        of_table = [other for other in kept if other.origin == entry.origin]
        if len(of_table) >= _STREAMS_MAX:
            kept.remove(of_table[0])
        return StreamBatches((*kept, entry))

    def published(self, load_id: str) -> StreamBatches:
        """A load that brought a batch is published."""
        return StreamBatches(
            tuple(replace(entry, is_published=True) if entry.load_id == load_id else entry for entry in self.entries)
        )
