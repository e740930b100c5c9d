"""The bytes of a log file: frames with a checksum, and what is left of them after a crash.

A frame has a head (a mark, the length of its body, how much of the file was on disk when it was written, a checksum of
all this, of the body and of the place where it stands) and a body. A crash may leave any of the bytes that were written
since the last sync, and none of the others is changed: the end of a file may be missing, garbled, or have holes. Such
a *torn tail* is cut off: nobody was told that its frames are safe. A garbled frame that was on disk before a later one
was written is no torn tail, but *damage*: the head of that later frame shows it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import xxhash

_MARK: Final = b"\xf1SLG"
_HEAD: Final = struct.Struct("<4sIQ")
_CHECKSUM: Final = struct.Struct("<Q")
_PLACE: Final = struct.Struct("<QQ")

HEAD_BYTES: Final = _HEAD.size + _CHECKSUM.size


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
    """Read a file as a crash may have left it.

    Args:
        number: The number of the file.
        data: Its bytes.
    """
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
