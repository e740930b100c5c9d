"""Writes the changes of a member to its data directory, and recovers the member from there.

A member has a directory of its own below the cluster's data directory, by its id: the log and the checkpoints
(:mod:`secateur.storage.log`), and the newest :class:`~secateur.protocol.recovery.ClusterRecord`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
from collections.abc import Mapping
from typing import Final

from secateur.cluster.data_directory import RECORD, read_record, written_record
from secateur.cluster.member.changes.change_registry import RecordedChange
from secateur.cluster.member.member_log import MemberLog
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.replication.replication import Replication
from secateur.errors import DiskError
from secateur.protocol.recovery import ClusterRecord
from secateur.storage.log.checkpoint import Checkpoint, recover
from secateur.storage.log.records import CheckpointHead, WrittenSnapshot

_log = logging.getLogger(__name__)

_RESERVE: Final = "reserve"
_RESERVE_BYTES: Final = 4 << 20


class Persistence:
    """Keeps the data of a member on disk. Lives on the member's event loop.

    Args:
        storage: What the member keeps: nothing until :meth:`begin`.
        log: Takes the records of changes once :meth:`begin` has returned.

    Attributes:
        record: The newest record of the cluster on disk; None before the first.
        cut_bytes: The bytes at the end of the log that were not completely written, and were cut off.
    """

    # A full disk must not hold up the others: a copy that cannot be written there has to leave the ownership, and that
    # counts once every member has the record of it. So a file keeps room free, and is removed for the record.

    def __init__(self, cluster_id: str, storage: MemberStorage, log: MemberLog, copies: Replication) -> None:
        self._head = CheckpointHead(cluster_id, storage.member_id)
        self._disk = log.disk
        self._log = log
        self._store = storage.store
        self._change_registry = storage.change_registry
        self._copies = copies
        self._keeping = asyncio.Lock()
        self.record: ClusterRecord | None = None
        self.cut_bytes = 0

    async def begin(self) -> None:
        """Read what is on disk, and record every change from now on.

        Raises:
            DamagedDirectoryError: Files are not as they were written.
            DiskError: The directory is another member's, or the disk is full or fails.
        """
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(None, recover, self._disk, self._store)
            self.record = await loop.run_in_executor(None, read_record, self._disk)
        except OSError as error:
            raise DiskError(f"{self._disk.path} cannot be read: {error}", path=self._disk.path) from error
        if found.head is not None and found.head != self._head:
            raise DiskError(
                f"{self._disk.path} has the data of member {found.head.member} of cluster {found.head.cluster}, not of"
                f" {self._head.member} of {self._head.cluster}: files were moved between data directories",
                path=self._disk.path,
            )
        self.cut_bytes = found.cut_bytes
        if found.head is not None:
            self._copies.restore(found.copies)
        for change in found.known:
            key = change.table_id, change.partition, change.change_id
            self._change_registry.note(key, RecordedChange(change.rows, change.sequence))
        await self._log.begin(found.number + 1, found.snapshots, self._checkpoint)
        self._store.record_to(self._log)
        if found.head is not None:
            _log.info(
                "member %s has recovered %d tables from %s, with %d bytes of log",
                self._head.member,
                len(self._store.tables()),
                self._disk.path,
                found.log_bytes,
            )

    async def keep(self, record: ClusterRecord) -> None:
        """Have the newest record of the cluster on disk.

        Raises:
            DiskError: The disk is full or fails.
        """
        async with self._keeping:
            before = self.record
            if before is not None and (before.epoch, before.version) >= (record.epoch, record.version):
                return
            try:
                await asyncio.get_running_loop().run_in_executor(None, self._write, written_record(record))
            except OSError as error:
                raise DiskError(
                    f"the record of the cluster could not be written to {self._disk.path}: {error}",
                    path=self._disk.path,
                ) from error
            self.record = record

    def _write(self, record: bytes) -> None:
        try:
            self._disk.replace(RECORD, record)
        except OSError as error:
            if error.errno != errno.ENOSPC or _RESERVE not in self._disk.list():
                raise
            self._disk.remove(_RESERVE)
            self._disk.replace(RECORD, record)
            return
        if _RESERVE not in self._disk.list():
            with contextlib.suppress(OSError):
                self._disk.replace(_RESERVE, bytes(_RESERVE_BYTES))

    def _checkpoint(self, number: int, written: Mapping[tuple[int, int], WrittenSnapshot]) -> Checkpoint:
        return Checkpoint.of(number, self._head, self._store, self._copies.records(), written)
