"""The copies of partitions that a member has, and what is known of who else has them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from secateur.cluster.member.changes.change_registry import ChangeKey, RecordedChange
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.replication.replica import Replica, ReplicatedChange
from secateur.errors import Error, MemberLostError, TopologyChangedError
from secateur.partitioning.topology.topology import Topology
from secateur.storage.hosted_tables import HostedTable
from secateur.storage.log.records import LoggedChange, LoggedCopy, MakeBody, body_of

CopyKey: TypeAlias = tuple[int, int]
"""Table and partition."""


class Replicas(dict[CopyKey, Replica]):
    """The state of each copy, by table and partition. Lives on the member's event loop.

    Attributes:
        topology: The newest one that the copies follow.
        counted: Copies that writes wait for ahead of the topology, with their members.
        opening: What is set when a copy that takes over as the primary is open, or is none any more.
    """

    def __init__(self, storage: MemberStorage) -> None:
        super().__init__()
        self.member_id = storage.member_id
        self.topology = Topology(0, (), {})
        self.counted: set[tuple[CopyKey, str]] = set()
        self.opening: dict[CopyKey, asyncio.Event] = {}
        self._tables = storage.store.hosted_tables
        self._places = storage.places

    def here(self, key: CopyKey) -> Replica:
        """Return the copy here; a new one if this member is the first primary of the partition."""
        replica = self.get(key)
        if replica is None:
            replica = self[key] = Replica.first_primary(self.others(key)) if self.is_primary(key) else Replica()
        return replica

    def holders(self, key: CopyKey) -> tuple[str, ...]:
        """The members of all copies of a partition, its primary first, as the topology has them."""
        owners = self.topology.owners.get(self._places.table(key[0]).scheme.affinity_group())
        return owners.holders(key[1]) if owners is not None and key[1] < owners.partitions else ()

    def is_primary(self, key: CopyKey) -> bool:
        """Whether the topology makes this member the primary of a partition."""
        return self.holders(key)[:1] == (self.member_id,)

    def others(self, key: CopyKey) -> list[str]:
        """The members of the other copies, of those that the cluster counts on."""
        alive = self.topology.member_ids
        return [member for member in self.holders(key) if member != self.member_id and member in alive]

    def published(self, table_id: int) -> int:
        """The number of the last load of a table that was published here."""
        return self._tables.table(table_id).published

    def superseded(self, key: CopyKey, replica: Replica, outcome: str) -> Error:
        """The error for a write to a copy that is not the primary any more."""
        message = f"{self.name(key)}: {outcome}: its copies follow another primary than {self.member_id}"
        if outcome == "nothing was written":
            return TopologyChangedError(message, topology_version=self.topology.version)
        return MemberLostError(message, member=self.member_id)

    def name(self, key: CopyKey) -> str:
        """A partition in a message."""
        return f"partition {key[1]} of {self._places.table(key[0]).name}"


class RecordedChanges:
    """Writes the records. Lives on the member's event loop.

    Changes of copies go to the log of the member, and to the change feeds of its partitions.
    """

    def __init__(self, storage: MemberStorage) -> None:
        self._store = storage.store
        self._change_registry = storage.change_registry
        self._log = storage.log

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
