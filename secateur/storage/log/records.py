"""The records of a log, one for each change of a member's data in their order, and the frames that hold them as bytes.

Also the rows of a partition as a file that other programs can read: Arrow IPC, as pyarrow, DuckDB and Spark know it.

A frame has a head (a mark, the length of its body, how much of the file was on disk when it was written, a checksum of
all this, of the body and of the place where it stands) and a body. A crash may leave any of the bytes that were written
since the last sync, and none of the others is changed: the end of a file may be missing, garbled, or have holes. Such
a *torn tail* is cut off: nobody was told that its frames are safe. A garbled frame that was on disk before a later one
was written is no torn tail, but *damage*: the head of that later frame shows it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import msgspec
import pyarrow as pa
import xxhash

from secateur.protocol.codec import msgpack_decoder
from secateur.storage.partition import Partition

_LENGTH: Final = struct.Struct("<I")

_MARK: Final = b"\xf1SLG"
_HEAD: Final = struct.Struct("<4sIQ")
_CHECKSUM: Final = struct.Struct("<Q")
_PLACE: Final = struct.Struct("<QQ")

HEAD_BYTES: Final = _HEAD.size + _CHECKSUM.size


class _Record(msgspec.Struct, frozen=True, array_like=True, tag=True):
    pass


class CheckpointHead(_Record, frozen=True):
    """The first record of a checkpoint: the cluster and the member that it belongs to."""

    cluster: str
    member: str


class LoggedTable(_Record, frozen=True):
    """The member hosts partitions of a table from now on; the payload is its encoded definition.

    ``published`` is the number of the last load that was published before; 0 for none.
    """

    table_id: int
    partitions: tuple[int, ...]
    published: int = 0


class LoggedAlter(_Record, frozen=True):
    """A table has other ranges, or other columns and therefore another id; the payload is its encoded definition.

    Attributes:
        table_id: The table, by its id of now.
        partitions: All partitions that are hosted from now on. Those that are there keep their rows.
    """

    table_id: int
    partitions: tuple[int, ...]


class LoggedBuild(_Record, frozen=True):
    """The member begins to build a copy of a partition: until :class:`LoggedBuilt` its rows are missing."""

    table_id: int
    partition: int


class LoggedBuilt(_Record, frozen=True):
    """A copy of a partition is complete; the payload has its rows as they travel."""

    table_id: int
    partition: int


class LoggedDrop(_Record, frozen=True):
    """A table was dropped."""

    table_id: int


class LoggedChange(_Record, frozen=True):
    """A change of one partition; the payload has its rows or keys as they travel.

    Attributes:
        table_id: The table.
        partition: The partition.
        term: The newest term that the copy knew of.
        sequence: Its number among those of the partition; 0 for one that has none, as the rows of a replicated table.
        settled: All copies had the changes up to this one.
        change_id: The id of the client's request.
        operation: The operation.
        rows: The number of rows that it changed.
        is_contained: Whether a snapshot before it contains it: only the fact is recorded, for other copies that lack
            it, and for clients that ask again.
    """

    table_id: int
    partition: int
    term: int
    sequence: int
    settled: int
    change_id: str
    operation: str
    rows: int
    is_contained: bool = False


class LoggedLoad(_Record, frozen=True):
    """A load is prepared; the payload has its rows as they travel, then the keys that it removes.

    ``parts`` has for each partition its number, and how many bytes of the payload are its rows, and its removed keys; 0
    for none.
    """

    load_id: str
    table_id: int
    operation: str
    parts: tuple[tuple[int, int, int], ...]


class LoggedOutcome(_Record, frozen=True):
    """A load has ended.

    ``rows`` are those that it has changed on all members, for clients that ask again; -1 where that is not known.
    ``number`` is that of the publication.
    """

    load_id: str
    published: bool
    rows: int
    number: int


class LoggedSnapshot(_Record, frozen=True):
    """A file in the Arrow IPC format has all rows of a partition; ``checksum`` is the xxh3 of its bytes."""

    table_id: int
    partition: int
    file: str
    checksum: int


class LoggedCopy(_Record, frozen=True):
    """The state of a copy of a partition; see :class:`~secateur.cluster.member.replication.replica.Replica`."""

    table_id: int
    partition: int
    term: int
    last: int
    settled: int


LogRecord: TypeAlias = (
    CheckpointHead
    | LoggedTable
    | LoggedAlter
    | LoggedBuild
    | LoggedBuilt
    | LoggedDrop
    | LoggedChange
    | LoggedLoad
    | LoggedOutcome
    | LoggedSnapshot
    | LoggedCopy
)

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgpack_decoder(LogRecord)


def body_of(record: LogRecord, payload: Sequence[bytes | memoryview] = ()) -> tuple[bytes | memoryview, ...]:
    """A record as the body of a frame, in parts."""
    head = _encoder.encode(record)
    return (_LENGTH.pack(len(head)) + head, *payload)


def read_body(body: memoryview) -> tuple[LogRecord, memoryview]:
    """A record and its payload.

    Raises:
        msgspec.ValidationError: It is none of these: a newer version has written it.
    """
    (length,) = _LENGTH.unpack_from(body)
    start = _LENGTH.size + length
    return _decoder.decode(body[_LENGTH.size : start]), body[start:]


MakeBody: TypeAlias = Callable[[], Sequence[bytes | memoryview]]
"""Encodes a record, in the log's thread: it uses nothing that changes."""


class Journal(Protocol):
    """Takes the records of changes, in the order in which they are made. Lives on the member's event loop."""

    def append(self, body: MakeBody) -> None:
        """Record a change that was made in this turn of the loop.

        Cannot fail: whether the record is on disk is found out later.
        """


@dataclass(frozen=True, slots=True)
class WrittenSnapshot:
    """A partition that is on disk as it was at a version.

    A table that is dropped here and comes again is another object, and so are its partitions, which begin with the same
    versions.
    """

    partition: Partition
    version: int
    record: LoggedSnapshot


def write_snapshot(table: pa.Table) -> bytes:
    """The bytes of a file with these rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def read_snapshot(data: bytes) -> pa.Table:
    """The rows of a file that this member wrote: its checksum was compared, so nothing else is checked."""
    return pa.ipc.open_file(pa.py_buffer(data)).read_all()


@dataclass(frozen=True, slots=True)
class Frames:
    """The content of a log file.

    Attributes:
        bodies: The bodies of the frames, in order, up to the first one that cannot be read.
        end: Where they end.
        size: The size of the file. More than ``end``: there is a torn tail, or damage.
        is_damaged: Whether bytes behind ``end`` had been on disk for certain, so that they must not be cut off.
    """

    bodies: Sequence[memoryview]
    end: int
    size: int
    is_damaged: bool


class FrameWriter:
    """Makes the frames of one file.

    Args:
        number: The number of the file. Frames of other files are not taken for its own.

    Attributes:
        end: Bytes made so far.
        durable: How many of them are on disk for certain.
    """

    __slots__ = ("_number", "durable", "end")

    def __init__(self, number: int) -> None:
        self._number = number
        self.end = 0
        self.durable = 0

    def framed(self, bodies: Iterator[Sequence[bytes | memoryview]]) -> bytes:
        """The next bytes of the file: a frame for each body, which is given in parts."""
        made: list[bytes | memoryview] = []
        for parts in bodies:
            length = sum(len(part) for part in parts)
            head = _HEAD.pack(_MARK, length, self.durable)
            checksum = _checksum(self._number, self.end, head, parts)
            made += (head, _CHECKSUM.pack(checksum), *parts)
            self.end += HEAD_BYTES + length
        return b"".join(made)

    def synced(self) -> None:
        """Everything made so far is on disk."""
        self.durable = self.end


def read_frames(number: int, data: bytes) -> Frames:
    """Read a file as a crash may have left it."""
    view = memoryview(data)
    bodies: list[memoryview] = []
    end = 0
    while (frame := _frame_at(number, view, end)) is not None:
        bodies.append(frame[0])
        end += HEAD_BYTES + len(frame[0])
    return Frames(bodies, end, len(data), _is_damaged(number, data, view, end))


def _is_damaged(number: int, data: bytes, view: memoryview, end: int) -> bool:
    """Whether a frame further on shows that the one at ``end`` was on disk."""
    place = data.find(_MARK, end + 1)
    while place >= 0:
        frame = _frame_at(number, view, place)
        if frame is None:
            place = data.find(_MARK, place + 1)
        elif frame[1] > end:
            return True
        else:
            place = data.find(_MARK, place + HEAD_BYTES + len(frame[0]))
    return False


def _frame_at(number: int, view: memoryview, place: int) -> tuple[memoryview, int] | None:
    """The body of the frame that stands there, and how much was on disk when it was written."""
    start = place + HEAD_BYTES
    if start > len(view):
        return None
    head = view[place : place + _HEAD.size]
    mark, length, durable = _HEAD.unpack(head)
    if mark != _MARK or start + length > len(view):
        return None
    body = view[start : start + length]
    (checksum,) = _CHECKSUM.unpack(view[place + _HEAD.size : start])
    return (body, durable) if checksum == _checksum(number, place, head, (body,)) else None


def _checksum(number: int, place: int, head: bytes | memoryview, parts: Sequence[bytes | memoryview]) -> int:
    digest = xxhash.xxh3_64(_PLACE.pack(number, place))
    digest.update(head)
    for part in parts:
        digest.update(part)
    return digest.intdigest()
