"""Divides a snapshot into tasks, and a task into requests: by bytes.

A large partition is split between tasks and small ones are joined, so that tasks take about as long as each other. A
task reads from one member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import ceil
from typing import Final

from secateur.client.execution.snapshot import SnapshotPart
from secateur.protocol.snapshots import SnapshotPiece

TASK_BYTES: Final = 64 << 20
"""Half of what Spark reads of a file in a task (``spark.sql.files.maxPartitionBytes``), which is compressed."""
REQUEST_BYTES: Final = 8 << 20
"""Bytes that a member is asked to look at with one request: enough that a round trip costs little beside them."""


def tasks_of(
    parts: Iterable[SnapshotPart], task_bytes: int
) -> Iterator[tuple[tuple[SnapshotPart, ...], tuple[SnapshotPiece, ...]]]:
    """Divide a snapshot into tasks.

    Args:
        parts: Its partitions.
        task_bytes: About as many bytes does each task look at.

    Yields:
        The partitions of a task, and its pieces of them. Each row is in one piece.
    """
    by_member: dict[str, list[SnapshotPart]] = {}
    for part in parts:
        by_member.setdefault(part.member, []).append(part)
    for owned in by_member.values():
        joined: list[SnapshotPart] = []
        joined_bytes = 0
        for part in owned:
            if part.nbytes > task_bytes:
                for piece in _split(part, task_bytes):
                    yield (part,), (piece,)
                continue
            if joined and joined_bytes + part.nbytes > task_bytes:
                yield _task(joined)
                joined, joined_bytes = [], 0
            joined.append(part)
            joined_bytes += part.nbytes
        if joined:
            yield _task(joined)


def pieces_of(
    parts: Sequence[SnapshotPart], pieces: Iterable[SnapshotPiece], request_bytes: int = REQUEST_BYTES
) -> Iterator[list[SnapshotPiece]]:
    """Divide the pieces of a task into requests: large ones are split, small ones joined.

    Args:
        parts: The partitions of the task.
        pieces: Its pieces.
        request_bytes: About as many bytes does each request look at.
    """
    row_bytes = {part.partition: part.nbytes / part.rows for part in parts}
    joined: list[SnapshotPiece] = []
    joined_bytes = 0.0
    for piece in pieces:
        rows_max = max(1, int(request_bytes / max(row_bytes[piece.partition], 1)))
        for offset in range(piece.offset, piece.offset + piece.rows, rows_max):
            some = SnapshotPiece(piece.partition, offset, min(rows_max, piece.offset + piece.rows - offset))
            nbytes = some.rows * row_bytes[piece.partition]
            if joined and joined_bytes + nbytes > request_bytes:
                yield joined
                joined, joined_bytes = [], 0.0
            joined.append(some)
            joined_bytes += nbytes
    if joined:
        yield joined


def _split(part: SnapshotPart, task_bytes: int) -> Iterator[SnapshotPiece]:
    """Divide a partition into pieces of equal size."""
    count = min(ceil(part.nbytes / task_bytes), part.rows)
    bounds = [part.rows * index // count for index in range(count + 1)]
    for start, stop in pairwise(bounds):
        yield SnapshotPiece(part.partition, start, stop - start)


def _task(parts: Sequence[SnapshotPart]) -> tuple[tuple[SnapshotPart, ...], tuple[SnapshotPiece, ...]]:
    return tuple(parts), tuple(SnapshotPiece(part.partition, 0, part.rows) for part in parts)
