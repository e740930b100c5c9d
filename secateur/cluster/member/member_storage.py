"""What a member keeps, in memory and on disk, and the limit of its memory."""

from __future__ import annotations

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
from secateur.storage.log.disk import Disk
from secateur.storage.member_store import MemberStore


class MemberStorage:
    """The rows of a member, what it knows of them, and what readers still hold. Lives on the member's event loop.

    Args:
        member_id: The member.
        settings: The settings of the cluster.
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
            lambda: STAGED_FACTOR * store.loads.staged_bytes + results.held_bytes,
        )
        self.log = None if disk is None else MemberLog(disk, settings.fsync)
