"""Checkpoints: everything that a member has at one moment, so that the log before it is not needed any more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import xxhash

from secateur.storage.log.disk import Disk
from secateur.storage.log.frames import FrameWriter
from secateur.storage.log.records import (
    CheckpointHead,
    LoggedBuild,
    LoggedOutcome,
    LoggedSnapshot,
    MakeBody,
    WrittenSnapshot,
    body_of,
    write_snapshot,
)
from secateur.storage.log.replay import CHECKPOINT, SEGMENT, file_number
from secateur.storage.member_store import MemberStore, table_body
from secateur.storage.partition import Partition
from secateur.storage.snapshot import PartitionSnapshot
from secateur.storage.store_loads import load_body

_SNAPSHOT_END = ".arrow"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The content of a member at one moment: made on the event loop, written in a thread.

    Attributes:
        number: Its number; the log goes on in the file of this number.
        before: The records that come before the snapshots.
        behind: The records that come after.
        unchanged: The partitions that are on disk already.
        changed: The others that have rows: file name, partition, its version, its rows.
    """

    number: int
    before: Sequence[MakeBody]
    behind: Sequence[MakeBody]
    unchanged: Sequence[WrittenSnapshot]
    changed: Sequence[tuple[LoggedSnapshot, Partition, int, PartitionSnapshot]]

    @classmethod
    def of(
        cls,
        number: int,
        head: CheckpointHead,
        store: MemberStore,
        copies: Iterable[MakeBody],
        written: Mapping[tuple[int, int], WrittenSnapshot],
    ) -> Checkpoint:
        """Take a checkpoint of a store in this turn of the event loop. Costs about a microsecond per partition.

        Args:
            number: Higher than those of all files before.
            head: The cluster and the member.
            store: The store.
            copies: The records of the state of copies, and of changes that copies or clients may ask for.
            written: The snapshots on disk, by table and partition.
        """
        before: list[MakeBody] = [partial(body_of, head)]
        unchanged, changed = [], []
        for table in store.tables():
            table_id, numbers = table.table_id, store.hosted(table.table_id)
            before.append(partial(table_body, table, tuple(numbers), store.data_version(table_id).published))
            before.extend(partial(body_of, LoggedBuild(table_id, arriving)) for arriving in store.arriving(table_id))
            for partition_number in numbers:
                partition = store.partition(table_id, partition_number)
                known = written.get((table_id, partition_number))
                if known is not None and known.partition is partition and known.version == partition.version:
                    unchanged.append(known)
                elif partition.rows:
                    file = f"t{table_id}-p{partition_number}-{number}{_SNAPSHOT_END}"
                    record = LoggedSnapshot(table_id, partition_number, file, 0)
                    changed.append((record, partition, partition.version, partition.snapshot()))
        loads: list[MakeBody] = [
            partial(load_body, load.load_id, load.table_id, load.operation, tuple(load.parts.values()))
            for load in store.loads.prepared()
            if load.operation is not None
        ]
        outcomes: list[MakeBody] = [
            partial(body_of, LoggedOutcome(load_id, outcome.published, outcome.rows, outcome.number))
            for load_id, outcome in store.loads.outcomes()
        ]
        return cls(number, before, (*copies, *loads, *outcomes), unchanged, changed)

    def write(self, disk: Disk) -> dict[tuple[int, int], WrittenSnapshot]:
        """Write it, so that a crash at any moment leaves it as a whole or not at all. Blocks.

        Returns:
            The snapshots on disk.

        Raises:
            OSError: The disk is full or fails; nothing is left of it.
        """
        made: list[str] = []
        written = {(entry.record.table_id, entry.record.partition): entry for entry in self.unchanged}
        try:
            for record, partition, version, snapshot in self.changed:
                made.append(record.file)
                data = write_snapshot(snapshot.table)
                disk.replace(record.file, data)
                record = LoggedSnapshot(record.table_id, record.partition, record.file, xxhash.xxh3_64_intdigest(data))
                written[record.table_id, record.partition] = WrittenSnapshot(partition, version, record)
            snapshots = (partial(body_of, entry.record) for entry in written.values())
            frames = FrameWriter(self.number)
            bodies = (body() for records in (self.before, snapshots, self.behind) for body in records)
            disk.replace(f"{CHECKPOINT}{self.number}", frames.framed(bodies))
        except BaseException:
            for file in made:
                with contextlib.suppress(OSError):
                    disk.remove(file)
            raise
        return written

    def remove_older(self, disk: Disk, written: Mapping[tuple[int, int], WrittenSnapshot]) -> None:
        """Delete the files that this checkpoint replaces. Blocks."""
        kept = {entry.record.file for entry in written.values()}
        for name in _replaced(disk.list(), self.number, kept):
            with contextlib.suppress(OSError):
                disk.remove(name)


def _replaced(names: Iterable[str], number: int, kept: set[str]) -> Iterator[str]:
    """The files before a checkpoint. The checkpoints go first: without its log one would not be whole."""
    older = []
    for name in names:
        checkpoint, segment = file_number(name, CHECKPOINT), file_number(name, SEGMENT)
        if checkpoint is not None and checkpoint < number:
            yield name
        elif (segment is not None and segment < number) or (name.endswith(_SNAPSHOT_END) and name not in kept):
            older.append(name)
    yield from older
