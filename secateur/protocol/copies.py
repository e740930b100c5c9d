"""Requests and replies by which further copies of partitions are built on other members, and old ones dropped.

The controller has a member build copies of some partitions (``BuildCopies``); that member copies the rows from the
primary, table by table (``OpenCopies``, ``FetchCopy``), while the primary sends it every later change. Then the
controller has the primary count the new copies (``CountCopies``), and makes the member an owner.
"""

from __future__ import annotations

import msgspec

from secateur.protocol.changes import RowCount
from secateur.protocol.message import Acknowledged, Message


class BuildCopies(Message[Acknowledged], frozen=True):
    """Build copies of partitions of some tables, all of one affinity group, from their primary.

    Attributes:
        tables: The ids of the tables.
        partitions: The partitions, of each of them.
        source: The member that is their primary.
        attempt: The number of the attempt; grows, so that what is left of an earlier one is told apart.
    """

    tables: list[int]
    partitions: list[int]
    source: str
    attempt: int


class OpenedCopy(msgspec.Struct, frozen=True):
    """The state of a partition at the moment whose rows can be fetched.

    Attributes:
        partition: The partition.
        term: The primary's term.
        settled: The number of the last change that all copies have.
        last: The number of the last change in the rows.
        kept: Number, id, operation and rows of the changes that some copy may lack.
        changes: Id, rows changed and number of recent changes, so that none is made again when it is repeated.
        rows: How many rows there are.
        feed_start: The version behind which the change feed of the partition has every change; None without a feed.
    """

    partition: int
    term: int
    settled: int
    last: int
    kept: list[tuple[int, str, str, bytes]]
    changes: list[tuple[str, int, int]]
    rows: int
    feed_start: int | None = None


class StagedPiece(msgspec.Struct, frozen=True):
    """Rows of a load that wait for its publication.

    Attributes:
        load_id: The load.
        partition: The partition.
        attempt: The number of the attempt that brought them.
        are_keys: Whether they are keys, for a deletion.
        rows: How many rows there are.
    """

    load_id: str
    partition: int
    attempt: int
    are_keys: bool
    rows: int


class OpenedCopies(msgspec.Struct, frozen=True):
    """The copies that can be fetched; partitions of dropped ranges are left out, and no others.

    Attributes:
        published: The number of the last publication of the table.
        copies: The partitions.
        staged: Rows of loads that are not published yet.
    """

    published: int
    copies: list[OpenedCopy]
    staged: list[StagedPiece]


class OpenCopies(Message[OpenedCopies], frozen=True):
    """Fix the rows of partitions at this moment, and send the member that asks every later change to them."""

    table_id: int
    partitions: list[int]
    member: str
    attempt: int


class FetchCopy(Message[RowCount], frozen=True):
    """Rows that :class:`OpenCopies` has fixed, from one on; they are the payload, and none come after the last.

    Attributes:
        table_id: The table.
        partition: The partition.
        member: The member that asks.
        start: The first row wanted.
        load_id: The load whose staged rows are wanted; None for the rows of the partition.
        attempt: The attempt of the load.
        is_feed: Whether the changes of the partition are wanted, that its change feed has.
    """

    table_id: int
    partition: int
    member: str
    start: int
    load_id: str | None = None
    attempt: int = 0
    is_feed: bool = False


class CountCopies(Message[Acknowledged], frozen=True):
    """From now on acknowledge no change that the new copies of a member do not have; it will be an owner."""

    tables: list[int]
    partitions: list[int]
    member: str
    attempt: int


class ForgetCopies(Message[Acknowledged], frozen=True):
    """A member will not be an owner of these partitions: send it no more changes."""

    tables: list[int]
    partitions: list[int]
    member: str
    attempt: int


class DropCopies(Message[Acknowledged], frozen=True):
    """Forget the rows of partitions that this member is no owner of any more.

    Attributes:
        tables: The ids of the tables.
        partitions: The partitions, of each of them.
        attempt: Copies that a later attempt builds stay.
    """

    tables: list[int]
    partitions: list[int]
    attempt: int


class Rebalancing(msgspec.Struct, frozen=True):
    """The state of the rebalancing.

    Attributes:
        moves: Copies that are still to be built, moved or dropped; None while that is not known yet.
        error: Why the last attempt failed; None when it did not.
        draining: The members that are to own nothing, and still own something.
        drained: The members that own nothing and never will: their processes are to be ended.
    """

    moves: int | None
    error: str | None = None
    draining: tuple[str, ...] = ()
    drained: tuple[str, ...] = ()


class GetRebalancing(Message[Rebalancing], frozen=True):
    """Ask how far the rebalancing has come."""


class DrainMembers(Message[Acknowledged], frozen=True):
    """Move everything away from these members and no others, and assign nothing to them; none ends all draining.

    A controller that starts anew goes on with it; one of a cluster that was started anew as a whole does not. Members
    that were drained before stay so.
    """

    members: list[str]
