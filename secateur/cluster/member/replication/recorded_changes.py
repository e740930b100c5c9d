"""Records the changes of copies in the log of the member, and in the change feeds of its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from secateur.cluster.member.changes.change_registry import ChangeKey, ChangeRegistry, RecordedChange
from secateur.cluster.member.persistence.member_log import MemberLog
from secateur.cluster.member.replication.replica import Replica, ReplicatedChange
from secateur.cluster.member.replication.replicas import CopyKey
from secateur.storage.hosted_tables import HostedTable
from secateur.storage.log.records import LoggedChange, LoggedCopy, MakeBody, body_of
from secateur.storage.member_store import MemberStore


class RecordedChanges:
    """Writes the records. Lives on the member's event loop.

    Args:
        store: Has the change feeds.
        change_registry: The recent changes.
        log: The log; None for a member without a data directory.
    """

    def __init__(self, store: MemberStore, change_registry: ChangeRegistry, log: MemberLog | None) -> None:
        self._store = store
        self._change_registry = change_registry
        self._log = log

    def record(self, key: CopyKey, table: HostedTable, replica: Replica, change: ReplicatedChange, rows: int) -> None:
        """Record a change of some rows that was made here, to a partition of a table."""
        feed = table.partitions[key[1]].feed
        if feed is not None:
            feed.changed(table.published, change.sequence)
        if self._log is not None:
            record = LoggedChange(
                *key, replica.term, change.sequence, replica.settled, change.change_id, change.operation, rows
            )
            self._log.append(partial(body_of, record, (change.rows,)))

    def begin_feed(self, key: tuple[int, int], sequence: int) -> None:
        """Have the change feed of a partition go on behind this change, which was on disk."""
        feed = self._store.feed(*key)
        if feed is not None:
            feed.begin(self._store.data_version(key[0]).published, sequence)

    def copy_begun(self, key: CopyKey, replica: Replica, known: Iterable[tuple[str, RecordedChange]]) -> None:
        """Record a copy that is built here from the rows of its primary, which contain these changes, by their ids."""
        if self._log is None:
            return
        for change_id, change in known:
            self._log.append(_known_body(key, change_id, change))
        for made in self._records_of(key, replica):
            self._log.append(made)

    def records(self, replicas: Mapping[CopyKey, Replica]) -> list[MakeBody]:
        """The records of these copies and of the recent changes, for a checkpoint."""
        made = [
            _known_body((table_id, partition), change_id, change)
            for (table_id, partition, change_id), change in self._change_registry.all_made()
        ]
        for key, replica in replicas.items():
            made += self._records_of(key, replica)
        return made

    def _records_of(self, key: CopyKey, replica: Replica) -> Iterator[MakeBody]:
        """The state of a copy, and the changes that it keeps for others."""
        yield partial(body_of, LoggedCopy(*key, replica.term, replica.last, replica.settled))
        for kept in replica.kept:
            record = LoggedChange(
                *key,
                replica.term,
                kept.sequence,
                replica.settled,
                kept.change_id,
                kept.operation,
                self._rows_of((*key, kept.change_id)),
                True,
            )
            yield partial(body_of, record, (kept.rows,))

    def _rows_of(self, key: ChangeKey) -> int:
        made = self._change_registry.made(key)
        return 0 if made is None else made.rows


def _known_body(key: CopyKey, change_id: str, change: RecordedChange) -> MakeBody:
    """The fact that a change was made, for clients that ask again."""
    return partial(body_of, LoggedChange(*key, 0, change.sequence, 0, change_id, "", change.rows, True))
