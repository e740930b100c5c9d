"""Requests and replies of snapshots: rows of a table at one moment, which many tasks of a client read in parts.

A statement that answers row by row (columns and conditions of one table) is opened at every member that owns a required
partition. The member keeps the rows as they are; tasks in other processes then read pieces of them, in any order, as
often as they like. A snapshot ends when it was not read for as long as its lease, or when it is closed. Whoever finds
that it has ended, or that its member has, opens the same partitions again where they are now, with the *versions* that
it expects.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from secateur.protocol.message import Acknowledged, Message
from secateur.protocol.query import Execute


class PinnedPartition(NamedTuple):
    """A partition of a snapshot that has rows which the statement has to look at.

    Attributes:
        partition: Its number.
        published: The number of the last load of the table that is in the rows.
        version: The number of the last change of the partition; together, both name its rows, on whichever member they
            are.
        rows: Rows to look at; a search of the primary key has left out others.
        bytes: About as many bytes do the columns take that the statement reads of them.
    """

    partition: int
    published: int
    version: int
    rows: int
    bytes: int


class SnapshotOpened(msgspec.Struct, frozen=True):
    """A snapshot at one member.

    Attributes:
        is_row_by_row: Whether the statement can be answered piece by piece; if it cannot, nothing was opened.
        is_answered: Whether the payload is the answer of the statement, over all rows; then nothing was opened either.
        published: The number of the last load that was published in the table, as the request was answered.
        partitions: The partitions that have rows, in the order of the request.
    """

    is_row_by_row: bool
    published: int = 0
    partitions: list[PinnedPartition] = []
    is_answered: bool = False


class OpenSnapshot(Message[SnapshotOpened], frozen=True):
    """Keep the rows that a statement reads in some partitions as they are now.

    Partitions that the snapshot has at this member already stay as they are.

    Attributes:
        snapshot: A name that no other snapshot has.
        run: The statement.
        partitions: Partitions that this member owns.
        lease_s: Seconds without a read after which it ends.
        answer_bytes: A snapshot whose columns take no more bytes than this is answered at once, and not kept; 0 keeps
            every one.
    """

    snapshot: str
    run: Execute
    partitions: list[int]
    lease_s: float
    answer_bytes: int = 0


class SnapshotPiece(NamedTuple):
    """Rows of a pinned partition: ``rows`` of them from ``offset`` on, in the order of the primary key."""

    partition: int
    offset: int
    rows: int


class SnapshotRows(msgspec.Struct, frozen=True):
    """The answer of a statement over pieces of a snapshot, which is the payload.

    Attributes:
        is_open: Whether the member has the snapshot, with all of the partitions; if not, there are no rows.
        rows: Rows of the answer.
    """

    is_open: bool
    rows: int = 0


class ReadSnapshot(Message[SnapshotRows], frozen=True):
    """Answer the statement of a snapshot over some of its pieces, and let its lease begin again."""

    snapshot: str
    pieces: list[SnapshotPiece]


class CloseSnapshot(Message[Acknowledged], frozen=True):
    """End a snapshot at this member; nothing happens when it has ended already."""

    snapshot: str
