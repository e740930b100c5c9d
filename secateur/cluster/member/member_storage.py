"""What a member keeps, in memory and on disk, the limit of its memory, and the merges of recent changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Final

from secateur.cluster.member.admission.memory_admission import (
    STAGED_FACTOR,
    MemoryAdmission,
    kernel_memory_of,
    memory_limit_of,
)
from secateur.cluster.member.changes.change_registry import ChangeRegistry
from secateur.cluster.member.member_log import MemberLog
from secateur.cluster.member.monitoring.hot_keys import HotKeySampler
from secateur.cluster.member.statements.open_results import OpenResults
from secateur.cluster.member.statements.open_snapshots import OpenSnapshots
from secateur.cluster.member.table_directory import TableDirectory
from secateur.cluster.settings import ClusterSettings
from secateur.engine.threads import in_thread
from secateur.storage.log.disk import Disk
from secateur.storage.member_store import MemberStore
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


class MemberStorage:
    """The rows of a member, what it knows of them, and what readers still hold. Lives on the member's event loop.

    Args:
        disk: Its disk; None for a member without a data directory.

    Attributes:
        member_id: The member.
        limits: Bounds of its engine.
        store: Its partitions.
        places: The definitions of its tables, the members with copies of them, and the latches of their writes.
        change_registry: The recent changes.
        hot_keys: Samples the keys that are read and written.
        results: The results that clients are reading.
        snapshots: The rows that clients read as they were.
        memory_limit: Bytes that the member may take.
        memory: Refuses rows for which there is no memory.
        log: Records every change on the disk; None for a member without a data directory.
    """

    def __init__(self, member_id: str, settings: ClusterSettings, disk: Disk | None = None) -> None:
        self.member_id = member_id
        self.limits = settings.engine_limits
        store = self.store = MemberStore(limits=self.limits)
        self.places = TableDirectory(member_id, store.lease, self.limits)
        self.change_registry = ChangeRegistry()
        self.hot_keys = HotKeySampler(store.find, settings.hot_key_sampling, member_id)
        results = self.results = OpenResults(settings.result_bytes_max)
        snapshots = self.snapshots = OpenSnapshots()
        self.memory_limit = memory_limit_of(settings)
        self.memory = MemoryAdmission(
            self.memory_limit - (kernel_memory_of(settings) or 0),
            lambda: store.table_bytes + snapshots.kept_bytes,
            lambda: STAGED_FACTOR * store.loads.registry.staged_bytes + results.held_bytes,
        )
        self.log = None if disk is None else MemberLog(disk, settings.fsync)


async def merge_changes(storage: MemberStorage, threads: Executor) -> None:
    """Merge recent changes into the sorted rows of their partitions until cancelled, so that readers need not.

    A few partitions after the other in a thread, with pauses, for at most a fifth of a processor. The event loop only
    takes the snapshots; readers and leased snapshots keep the rows that they have.
    """
    loop, queue, places = asyncio.get_running_loop(), storage.store.folds, storage.places
    while True:
        await asyncio.sleep(_EVERY_S)
        for partitions in _together(queue.due(places.is_read, places.topology_version)):
            began_s, snapshots = loop.time(), [partition.snapshot() for partition in partitions]
            try:
                await in_thread(threads, partial(_settle, snapshots))
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
