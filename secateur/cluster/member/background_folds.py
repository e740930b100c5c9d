"""Merges recent changes into the sorted rows of their partitions in the background, so that readers need not.

A few partitions after the other in a thread, with pauses, for at most a fifth of a processor. The event loop only takes
the snapshots; readers and leased snapshots keep the rows that they have.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Final

from secateur.cluster.member.table_directory import TableDirectory
from secateur.engine.threads import in_thread
from secateur.storage.fold_queue import FoldQueue
from secateur.storage.partition import Partition
from secateur.storage.snapshot import PartitionSnapshot

_log = logging.getLogger(__name__)

_EVERY_S: Final = 0.1
"""The least time in seconds for which a partition has to be quiet before it is merged."""
_PARTITIONS_MAX: Final = 8
"""The event loop takes the snapshots of so many at once, in some hundred microseconds."""
_ROWS_MAX: Final = 1 << 16
_PAUSE_TIMES: Final = 4
"""A pause after each merge, as a multiple of the time that it took."""


class BackgroundFolds:
    """The merges of one member.

    Args:
        queue: The partitions.
        places: Knows which of them are read here.
        threads: The threads in which they are merged.
    """

    def __init__(self, queue: FoldQueue, places: TableDirectory, threads: Executor) -> None:
        self._queue = queue
        self._places = places
        self._threads = threads

    async def run(self) -> None:
        """Merge, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_EVERY_S)
            for partitions in _together(self._queue.due(self._places.is_read, self._places.topology_version)):
                began_s, snapshots = loop.time(), [partition.snapshot() for partition in partitions]
                try:
                    await in_thread(self._threads, partial(_settle, snapshots))
                except Exception:  # the rows are there all the same: readers merge what they need
                    numbers = ", ".join(str(partition.number) for partition in partitions)
                    _log.exception("partitions %s could not be merged with their recent changes", numbers)
                await asyncio.sleep(_PAUSE_TIMES * (loop.time() - began_s))


def _together(partitions: Iterable[Partition]) -> Iterator[list[Partition]]:
    """Groups of partitions that are merged in one go: it costs as much to wake a thread as to merge a small one."""
    group: list[Partition] = []
    rows = 0
    for partition in partitions:
        if group and (len(group) == _PARTITIONS_MAX or rows + partition.rows > _ROWS_MAX):
            yield group
            group, rows = [], 0
        group.append(partition)
        rows += partition.rows
    if group:
        yield group


def _settle(snapshots: Sequence[PartitionSnapshot], _: object) -> None:
    for snapshot in snapshots:
        snapshot.settle()
