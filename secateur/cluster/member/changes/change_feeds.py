"""Answers readers of change feeds, at the primaries of the partitions."""

from __future__ import annotations

from typing import Final

from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.replication.replication import Replication
from secateur.errors import ChangesDroppedError, ProgrammingError
from secateur.partitioning.tables.row_ids import without_row_ids
from secateur.protocol.change_feed import EARLIEST, LATEST, BoundChanges, ChangesBound, ChangesRead, ReadChanges
from secateur.storage.change_feed import FeedEntry, feed_table
from secateur.wire import Reply, Request, encode_table

_BYTES_MAX: Final = 16 << 20


class MemberChangeFeeds:
    """Answers ``read_changes`` and ``bound_changes``. Lives on the member's event loop."""

    def __init__(self, storage: MemberStorage, copies: Replication) -> None:
        self._store = storage.store
        self._places = storage.places
        self._copies = copies

    async def read(self, request: Request[ReadChanges]) -> Reply[ChangesRead]:
        """The changes of some partitions behind some versions, once they are acknowledged.

        Raises:
            TopologyChangedError: This member is not the primary of one.
            ProgrammingError: The table has no change feed.
            ChangesDroppedError: Some changes are not kept any more.
        """
        asked = request.message
        table_id = asked.table_id
        published = self._begun(asked)
        bytes_left = min(max(asked.bytes_max, 1), _BYTES_MAX)
        found: list[FeedEntry] = []
        reached: list[tuple[int, int]] = []
        has_more = False
        last = dict(asked.until)
        for partition, after in asked.after:
            entries, at, is_cut = self._changes(table_id, partition, after, last.get(partition), published, bytes_left)
            found += entries
            reached.append((partition, at))
            has_more |= is_cut
            bytes_left -= sum(entry.nbytes for entry in entries)
        await self._until_acknowledged(asked)
        if not found:
            return Reply(ChangesRead(reached, has_more, 0))
        rows = without_row_ids(feed_table(self._store.table(table_id).arrow_schema, found))
        return Reply(ChangesRead(reached, has_more, rows.num_rows), encode_table(rows))

    async def bound(self, request: Request[BoundChanges]) -> Reply[ChangesBound]:
        """Find the versions up to which about so many changes of some partitions reach, once they are acknowledged.

        Raises:
            Error: As :meth:`read`.
        """
        asked = request.message
        published = self._begun(asked)
        size_left, last = max(asked.size_max, 1), dict(asked.until)
        reached: list[tuple[int, int]] = []
        for number, (partition, after) in enumerate(asked.after):
            share = max(1, size_left // (len(asked.after) - number))
            entries, at, _ = self._changes(
                asked.table_id, partition, after, last.get(partition), published, share, in_rows=asked.in_rows
            )
            reached.append((partition, at))
            size_left -= sum(entry.rows.num_rows if asked.in_rows else entry.nbytes for entry in entries)
        await self._until_acknowledged(asked)
        return Reply(ChangesBound(reached))

    def _begun(self, asked: ReadChanges | BoundChanges) -> int:
        """Check that this member may answer; returns the number of the last published load."""
        self._store.lease.check()
        self._places.backups(asked.table_id, [partition for partition, _ in asked.after])
        return self._store.data_version(asked.table_id).published

    async def _until_acknowledged(self, asked: ReadChanges | BoundChanges) -> None:
        waiting = self._copies.acknowledgements.acknowledged(
            [(asked.table_id, partition) for partition, _ in asked.after]
        )
        if waiting is not None:
            await waiting()
            self._store.lease.check()

    def _changes(
        self,
        table_id: int,
        partition: int,
        after: int,
        until: int | None,
        published: int,
        size_left: int,
        *,
        in_rows: bool = False,
    ) -> tuple[list[FeedEntry], int, bool]:
        """The changes of a partition, the version that is reached with them, and whether there are more."""
        name = self._store.table(table_id).name
        feed = self._store.partition(table_id, partition).feed
        if feed is None:
            raise ProgrammingError(f"table {name} has no change feed: create it WITH (change_feed = true)", table=name)
        now = published + self._copies.last(table_id, partition)
        if until is not None:
            now = min(now, until)
        if after == LATEST:
            return [], now, False
        if after == EARLIEST:
            return [], feed.start, now > feed.start
        if size_left <= 0:
            return [], after, now > after
        try:
            entries, cut_at = feed.since(after, size_left, until, in_rows=in_rows)
        except ChangesDroppedError as error:
            raise ChangesDroppedError(
                f"partition {partition} of {name}: {error.message}. Read the table again, and follow it from a position"
                " that was taken before that; a larger change_feed_bytes_max of engine_limits keeps more",
                table=name,
                partition=partition,
                oldest=feed.start,
            ) from None
        return (entries, max(now, after), False) if cut_at is None else (entries, cut_at, True)
