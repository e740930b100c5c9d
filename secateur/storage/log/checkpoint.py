"""A member's data directory: written as a checkpoint of all that it has at one moment, read with the log behind that.

The log before a checkpoint is not needed any more.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, assert_never

import msgspec
import pyarrow as pa
import xxhash

from secateur.errors import DamagedDirectoryError, Error
from secateur.partitioning.tables.table import TableDef, TableDefinition
from secateur.protocol.codec import decode
from secateur.storage.change import ChangeOperation
from secateur.storage.load_registry import LoadOutcome
from secateur.storage.log import records
from secateur.storage.log.disk import Disk
from secateur.storage.log.records import (
    CheckpointHead,
    FrameWriter,
    LoggedBuild,
    LoggedOutcome,
    LoggedSnapshot,
    MakeBody,
    WrittenSnapshot,
    body_of,
    read_frames,
    read_snapshot,
    write_snapshot,
)
from secateur.storage.member_store import MemberStore, table_body
from secateur.storage.partition import Partition
from secateur.storage.snapshot import PartitionSnapshot
from secateur.storage.store_loads import load_body
from secateur.wire import decode_rows, decode_table

_log = logging.getLogger(__name__)

CHECKPOINT: Final = "checkpoint-"
SEGMENT: Final = "log-"
_KNOWN_MAX: Final = 50_000

Key = tuple[int, int]

_SNAPSHOT_END = ".arrow"


@dataclass(slots=True)
class RecoveredCopy:
    """The state of a copy: its newest term, its last change, what all copies have, and the changes that are kept.

    Each of these is with its rows, and the number of the last load before it; -1 for one that a snapshot contains.
    """

    term: int = 0
    last: int = 0
    settled: int = 0
    kept: deque[tuple[records.LoggedChange, bytes, int]] = field(default_factory=deque)


@dataclass(slots=True)
class RecoveredData:
    """The contents of a data directory besides rows.

    Attributes:
        head: The cluster and the member that it belongs to; None for a directory that was never used.
        copies: The state of each copy that has had changes.
        known: The changes that were made, the latest ones.
        snapshots: The snapshots that partitions were read from.
        number: The highest number of a file.
        log_bytes: The bytes of the log that were replayed.
        cut_bytes: The bytes of a torn tail that were cut off.
    """

    head: records.CheckpointHead | None = None
    copies: dict[Key, RecoveredCopy] = field(default_factory=dict)
    known: list[records.LoggedChange] = field(default_factory=list)
    snapshots: dict[Key, WrittenSnapshot] = field(default_factory=dict)
    number: int = 0
    log_bytes: int = 0
    cut_bytes: int = 0


def file_number(name: str, prefix: str) -> int | None:
    """The number of a checkpoint or of a file of the log; None for other files."""
    number = name.removeprefix(prefix)
    return int(number) if name.startswith(prefix) and number.isascii() and number.isdecimal() else None


def recover(disk: Disk, store: MemberStore) -> RecoveredData:
    """Read what a member's disk has into a store that is empty, and cut off a torn tail of the log.

    Costs the time of reading and sorting all rows. Blocks: to be called in a thread, while nobody uses the store.

    Raises:
        DamagedDirectoryError: A file is garbled where it was whole before, or missing. Nothing was changed on disk.
        OSError: The disk cannot be read.
    """
    names = disk.list()
    found = RecoveredData(number=max((_number(name) for name in names), default=0))
    checkpoints = sorted(number for name in names if (number := file_number(name, CHECKPOINT)) is not None)
    segments = sorted(number for name in names if (number := file_number(name, SEGMENT)) is not None)
    if not checkpoints:
        if any(disk.read(f"{SEGMENT}{number}") for number in segments):
            raise DamagedDirectoryError(
                f"{disk.path} has a log and no checkpoint before it: files are missing; restore the directory from a"
                " copy, or remove it as a whole where other members have copies of its partitions",
                path=disk.path,
            )
        return found
    newest = checkpoints[-1]
    replay = _Replay(disk, store, found)
    name = f"{CHECKPOINT}{newest}"
    frames = read_frames(newest, disk.read(name))
    if frames.end != frames.size or not frames.bodies:
        raise _damaged(disk, name, frames.end)
    for body in frames.bodies:
        replay.take(name, body)
    behind = [number for number in segments if number >= newest]
    if behind != list(range(newest, newest + len(behind))):
        raise DamagedDirectoryError(f"{disk.path}: of the log after {name} only {behind} are there", path=disk.path)
    for number in behind:
        name = f"{SEGMENT}{number}"
        frames = read_frames(number, disk.read(name))
        if frames.is_damaged or (frames.end != frames.size and number != behind[-1]):
            raise _damaged(disk, name, frames.end)
        for body in frames.bodies:
            replay.take(name, body)
        found.log_bytes += frames.end
        if frames.end != frames.size:
            found.cut_bytes = frames.size - frames.end
            _log.warning(
                "%s: the last %d bytes of %s were not completely written when the process ended, and are cut off; no"
                " write among them was acknowledged as being on disk",
                disk.path,
                found.cut_bytes,
                name,
            )
            disk.truncate(name, frames.end)
    return found


def _number(name: str) -> int:
    return file_number(name, CHECKPOINT) or file_number(name, SEGMENT) or 0


def _damaged(disk: Disk, name: str, place: int) -> DamagedDirectoryError:
    return DamagedDirectoryError(
        f"{disk.path}: {name} is damaged at byte {place}: what follows had been written completely, and cannot be read",
        path=disk.path,
        file=name,
        byte=place,
    )


class _Replay:
    """Makes recorded changes again."""

    def __init__(self, disk: Disk, store: MemberStore, found: RecoveredData) -> None:
        self._disk = disk
        self._store = store
        self._found = found

    def take(self, name: str, body: memoryview) -> None:
        """Make the change of one record.

        Raises:
            DamagedDirectoryError: It cannot be made.
        """
        try:
            record, payload = records.read_body(body)
        except msgspec.ValidationError as error:
            raise DamagedDirectoryError(
                f"{self._disk.path}: {name} has a record that this version of secateur does not know ({error}): start"
                " the version that has written it",
                path=self._disk.path,
                file=name,
            ) from error
        try:
            self._make(record, payload)
        except (Error, pa.ArrowException, OSError, KeyError) as error:
            if isinstance(error, DamagedDirectoryError):
                raise
            raise DamagedDirectoryError(
                f"{self._disk.path}: a record of {name} ({type(record).__name__}) cannot be replayed: {error}",
                path=self._disk.path,
                file=name,
            ) from error

    def _make(self, record: records.LogRecord, payload: memoryview) -> None:
        store, found = self._store, self._found
        match record:
            case records.CheckpointHead():
                found.head = record
            case records.LoggedTable(table_id, partitions, published):
                store.create_table(_table(payload), partitions)
                store.set_published(table_id, published)
            case records.LoggedAlter(_, partitions):
                table = _table(payload)
                store.alter_table(table, partitions)
                if table.succession is not None:
                    self._succeed(table.succession.before, table.table_id)
            case records.LoggedBuild(table_id, partition):
                store.begin_copy(table_id, partition)
            case records.LoggedBuilt(table_id, partition):
                store.restore_copy(table_id, partition, decode_table(payload))
            case records.LoggedDrop(table_id):
                store.drop_table(table_id)
                for key in [key for key in found.copies if key[0] == table_id]:
                    del found.copies[key]
            case records.LoggedSnapshot(table_id, partition):
                self._install(record)
            case records.LoggedCopy(table_id, partition, term, last, settled):
                found.copies[table_id, partition] = RecoveredCopy(term, last, settled)
            case records.LoggedChange():
                self._change(record, payload)
            case records.LoggedLoad():
                self._prepare(record, payload)
            case records.LoggedOutcome(load_id, published, rows, number):
                if published and store.loads.is_prepared(load_id):
                    store.loads.publish(load_id, number, rows)
                else:
                    store.loads.remember(load_id, LoadOutcome(published, rows, number))
            case _:
                assert_never(record)

    def _succeed(self, before: int, after: int) -> None:
        """What was known of the copies of a table is known of those of the table that has come in its place.

        All copies had every change then.
        """
        found = self._found
        for key in [key for key in found.copies if key[0] == before]:
            copy = found.copies.pop(key)
            found.copies[after, key[1]] = RecoveredCopy(copy.term, copy.last, copy.last)
        found.known = [
            msgspec.structs.replace(made, table_id=after) if made.table_id == before else made for made in found.known
        ]

    def _install(self, record: records.LoggedSnapshot) -> None:
        data = self._disk.read(record.file)
        if xxhash.xxh3_64_intdigest(data) != record.checksum:
            raise DamagedDirectoryError(
                f"{self._disk.path}: {record.file}, the rows of partition {record.partition} of"
                f" {self._store.table(record.table_id).name}, is damaged",
                path=self._disk.path,
                file=record.file,
            )
        rows = read_snapshot(data)
        self._store.apply(record.table_id, record.partition, ChangeOperation.OVERWRITE, rows, is_copy=True)
        partition = self._store.partition(record.table_id, record.partition)
        self._found.snapshots[record.table_id, record.partition] = WrittenSnapshot(partition, partition.version, record)

    def _change(self, record: records.LoggedChange, payload: memoryview) -> None:
        key = record.table_id, record.partition
        if not record.is_contained:
            rows = decode_rows(payload)
            self._store.apply(*key, ChangeOperation(record.operation), rows, is_copy=True)
        copy = self._found.copies.setdefault(key, RecoveredCopy())
        copy.term = max(copy.term, record.term)
        copy.settled = max(copy.settled, record.settled)
        if record.sequence > copy.last or record.is_contained:
            copy.last = max(copy.last, record.sequence)
            if len(payload):
                published = -1 if record.is_contained else self._store.data_version(record.table_id).published
                copy.kept.append((record, bytes(payload), published))
        while copy.kept and copy.kept[0][0].sequence <= copy.settled:
            copy.kept.popleft()
        self._found.known.append(record)
        if len(self._found.known) > 2 * _KNOWN_MAX:
            del self._found.known[:_KNOWN_MAX]

    def _prepare(self, record: records.LoggedLoad, payload: memoryview) -> None:
        def tables() -> Iterator[tuple[int, pa.Table, pa.Table | None]]:
            place = 0
            for partition, rows_bytes, removed_bytes in record.parts:
                rows = decode_table(payload[place : place + rows_bytes])
                place += rows_bytes
                removed = decode_table(payload[place : place + removed_bytes]) if removed_bytes else None
                place += removed_bytes
                yield partition, rows, removed

        self._store.loads.restore_prepared(
            record.load_id, record.table_id, ChangeOperation(record.operation), list(tables())
        )


def _table(payload: memoryview) -> TableDef:
    return decode(bytes(payload), TableDefinition).table


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
            for load_id, outcome in store.loads.registry.outcomes()
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
