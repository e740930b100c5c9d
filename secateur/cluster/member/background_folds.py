"""Merges recent changes into the sorted rows of their partitions in the background, so that readers need not.

One partition after the other in a thread, with pauses, for at most a fifth of a processor. The event loop only takes
the snapshots; readers and leased snapshots keep the rows that they have.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Executor
from typing import Final

from secateur.cluster.member.table_directory import TableDirectory
from secateur.engine.sql.kernel_call import in_thread
from secateur.storage.fold_queue import FoldQueue

__all__ = ["BackgroundFolds"]

_log = logging.getLogger(__name__)

_EVERY_S: Final = 0.1
"""How long a partition has to be quiet, at least."""
_PAUSE_TIMES: Final = 4
"""A pause after each merge, as a multiple of the time that it took."""


class BackgroundFolds:
    """The merges of one member.

    Args:
        queue: The partitions.
        places: Knows which of them are read here.
        threads: Where they are merged.
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
            for partition in self._queue.due(self._places.is_read, self._places.topology_version):
                began_s, snapshot = loop.time(), partition.snapshot()
                try:
                    await in_thread(self._threads, lambda _, snapshot=snapshot: snapshot.settle())  # type: ignore[misc]
                except Exception:  # the rows are there all the same: readers merge what they need
                    _log.exception("partition %s could not be merged with its recent changes", partition.number)
                await asyncio.sleep(_PAUSE_TIMES * (loop.time() - began_s))
