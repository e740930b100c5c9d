"""Replication: performs what ``Replica`` decides, here and on other members.

This is where the parts meet: who waits for changes (:mod:`~secateur.cluster.member.replication.acknowledgements`), what
is sent to other copies (:mod:`~secateur.cluster.member.replication.sent_changes`) and received from them
(:mod:`~secateur.cluster.member.replication.received_changes`), how a copy takes over as the primary
(:mod:`~secateur.cluster.member.replication.takeovers`) and how further copies join
(:mod:`~secateur.cluster.member.replication.sent_changes`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import pyarrow as pa

from secateur.cluster.loop_thread import BackgroundTasks
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.replication.acknowledgements import Acknowledgements, UnconfirmedPublications
from secateur.cluster.member.replication.received_changes import ReceivedChanges
from secateur.cluster.member.replication.replica import Replica, ReplicaPhase, ReplicatedChange
from secateur.cluster.member.replication.replicas import CopyKey, RecordedChanges, Replicas
from secateur.cluster.member.replication.sent_changes import Learners, SentChanges
from secateur.cluster.member.replication.takeovers import Takeovers
from secateur.cluster.peers import Peers
from secateur.errors import Error, LoadFailedError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.storage.change import ChangeOperation
from secateur.storage.delta import FewRows
from secateur.storage.hosted_tables import HostedTable
from secateur.storage.log.checkpoint import RecoveredCopy
from secateur.storage.log.records import MakeBody
from secateur.storage.read_lease import lease_clock_s
from secateur.wire import ShortTable, encode_rows

_LEVEL_S: Final = 5.0
_LEVEL_PAUSE_S: Final = 0.002
_UNSETTLED_MAX: Final = 4096
"""Changes of one partition that some copy has not confirmed; each is kept in memory for it."""


class Replication:
    """Keeps copies equal. Lives on the member's event loop.

    Args:
        out_of_sync: Has the cluster count a member out as a holder of a partition, by table, partition and member.

    Attributes:
        publications: The publications of replicated tables that other members may not have made yet.
        acknowledgements: Has writers and readers wait until all copies have a change.
        received: Answers what primaries ask of the copies here.
        together: Changes that are made in it go to each of the other copies in one message; nothing may wait in it.
        takeovers: How copies here become primaries.
        learners: The copies that other members build of partitions of this one.
        is_settling: Whether this member has just been started with what it had before, and loads are still in doubt:
            until these are decided it makes no changes of other copies, which came behind them.
    """

    def __init__(
        self, storage: MemberStorage, peers: Peers, out_of_sync: Callable[[int, int, str], Awaitable[object]]
    ) -> None:
        member_id, places = storage.member_id, storage.places
        self.is_settling = False
        self._log = storage.log
        self._store = storage.store
        self._places = places
        self._background = BackgroundTasks()
        self._recorded = RecordedChanges(storage)
        self._replicas = Replicas(storage)
        self.publications = UnconfirmedPublications(
            peers,
            lambda: [member for member in places.member_ids() if member != member_id],
            self._background.start,
            storage.limits.confirm_wait_s,
        )
        storage.store.loads.on_replicated = self.publications.made
        self.acknowledgements = Acknowledgements(storage, self._replicas, self.publications)
        self._sent = SentChanges(storage, self._replicas, peers, self.acknowledgements, self._background, out_of_sync)
        self.together = self._sent.together
        self.received = ReceivedChanges(storage, self._replicas, self._sent, self._recorded, self._check_settled)
        self.takeovers = Takeovers(
            self._replicas, peers, self.acknowledgements, self._sent, self.received, self._background
        )
        self.learners = Learners(self._replicas, self._sent)

    # -- writes at the primary

    def is_ready(self, table_id: int, partition: int) -> bool:
        """Whether this member, which owns a partition, can write to it in this turn of the loop.

        Raises:
            TopologyChangedError: The partition is of a range that was dropped; nothing was written.
        """
        key = (table_id, partition)
        replica = self._replicas.get(key)
        if replica is None:  # its first write
            replica = self._first_primary(key)
        return (
            replica.takes_writes
            and replica.last - replica.settled < _UNSETTLED_MAX
            and not self._places.latch(table_id).is_closed
        )

    async def primary(self, table_id: int, partition: int) -> None:
        """Return once this member can write to a partition as its primary. Costs a microsecond when it can.

        The caller has just found that this member owns the partition; this is checked again after every wait.

        Raises:
            TopologyChangedError: It is not the primary, or cannot find out what the other copies have; nothing was
                written.
            LoadFailedError: A load or change has kept writes waiting for too long, or copies do not confirm theirs;
                nothing was written.
        """
        if self.is_ready(table_id, partition):
            return
        key, latch = (table_id, partition), self._places.latch(table_id)
        while True:
            self._places.check_primary(table_id, partition)
            replica = self._replicas.get(key) or self._first_primary(key)
            if latch.is_closed:
                await latch.wait_open()
            elif replica.phase is ReplicaPhase.TAKING_OVER:
                await self.takeovers.wait(key)
            elif not replica.takes_writes:
                raise self._replicas.superseded(key, replica, "nothing was written")
            elif replica.unsettled >= _UNSETTLED_MAX:
                raise LoadFailedError(
                    f"{self._replicas.name(key)}: {replica.unsettled} changes are not confirmed by all of"
                    f" {', '.join(replica.others)}; nothing was written, try again",
                    table_id=table_id,
                )
            else:
                return

    def _first_primary(self, key: CopyKey) -> Replica:
        """The copy of a partition that this member owns and that nobody has written to yet."""
        self._store.partition(*key)  # that of a dropped range has an owner still
        replica = self._replicas[key] = Replica.first_primary(self._places.backups(key[0], (key[1],)))
        return replica

    def check_primary(self, table_id: int, partition: int) -> None:
        """Refuse to change a partition that is not this member's any more.

        Raises:
            TopologyChangedError: It is not; nothing was written.
        """
        key = (table_id, partition)
        replica = self._replicas.get(key)
        if replica is None or not replica.is_open:
            raise self._replicas.superseded(key, replica or Replica(), "nothing was written")

    def made(
        self,
        key: CopyKey,
        table: HostedTable,
        operation: ChangeOperation,
        change_id: str,
        rows: FewRows | pa.Table,
        payload: bytes | memoryview | None,
        written: int,
    ) -> tuple[int, int]:
        """The primary has made a change in this turn of the loop: record it, and send it to the others.

        Its rows, of which so many were written or removed, may come as bytes as well.

        Returns:
            Its sequence number, and the bytes that are sent to other copies.
        """
        replica = self._replicas[key]
        if payload is None:
            few = ShortTable(rows.columns, rows.num_rows) if isinstance(rows, FewRows) else rows
            payload = encode_rows(few) if replica.receivers or self._log is not None else b""
        sends = replica.append(change_id, operation, payload, table.published)
        change = sends[0].change if sends else ReplicatedChange(replica.last, change_id, operation, payload)
        self._recorded.record(key, table, replica, change, written)
        for send in sends:
            self._sent.send(key, replica, send)
        self.acknowledgements.made(key, replica)
        return replica.last, len(sends) * len(payload)

    @property
    def topology(self) -> Topology:
        """The newest topology."""
        return self._replicas.topology

    def last(self, table_id: int, partition: int) -> int:
        """The number of the last change of a partition here."""
        replica = self._replicas.get((table_id, partition))
        return 0 if replica is None else replica.last

    # -- copies that are built while others write

    async def learn(self, table_id: int, partition: int, member: str) -> Replica:
        """A member copies a partition: it is sent every change from now on. Ends in the turn in which it returns.

        Raises:
            TopologyChangedError: This member is not the primary, or cannot find out what the other copies have.
        """
        await self.primary(table_id, partition)
        replica = self._replicas[table_id, partition]
        replica.learn(member)
        return replica

    def report_lacking(self, table_id: int, partition: int) -> None:
        """The rows of a partition are not here: as its primary, this member is counted out, if others have a copy."""
        key = (table_id, partition)
        if self._replicas.is_primary(key) and self._replicas.others(key):
            reason = "its rows are not there"
            self._background.start(self._sent.count_out(key, self._replicas.member_id, reason), "count itself out")

    def drop_copy(self, table_id: int, partition: int) -> bool:
        """Forget the state of a copy; False, and nothing happens, if this member is one of its owners.

        A member that has left the cluster is only where it was the last one.
        """
        key = (table_id, partition)
        holders = self._replicas.holders(key)
        if self._replicas.member_id in (
            holders if self._replicas.topology.has_member(self._replicas.member_id) else holders[:1]
        ):
            return False
        replica = self._replicas.pop(key, None)
        if replica is not None:
            self._sent.stepped_down(key, replica)
        self.received.forget(key)
        return True

    # -- a member that is started with what it had before

    def restore(self, copies: Mapping[CopyKey, RecoveredCopy]) -> None:
        """Go on from the state of copies that was on disk. The next topology says of which this member is primary."""
        self.is_settling = True
        live = {table.table_id: frozenset(table.scheme.live_ids()) for table in self._store.tables()}
        for key, copy in copies.items():
            if key[1] not in live.get(key[0], ()):
                continue  # of a table or a range that was dropped
            kept = [
                ReplicatedChange(change.sequence, change.change_id, change.operation, rows, published)
                for change, rows, published in copy.kept
            ]
            self._replicas[key] = Replica.built(copy.term, copy.settled, copy.last, kept)
        for table in self._store.tables():
            for partition in self._store.hosted(table.table_id):  # also those that have had loads only
                key = table.table_id, partition
                self._recorded.begin_feed(key, copies[key].last if key in copies else 0)

    def records(self) -> list[MakeBody]:
        """The records of all copies and of the recent changes, for a checkpoint."""
        return self._recorded.records(self._replicas)

    def _check_settled(self) -> None:
        if self.is_settling:
            raise TopologyChangedError(
                f"{self._replicas.member_id} has just been started, and settles loads that were under way when it ended"
            )

    # -- members and tables come and go

    def update(self, topology: Topology) -> None:
        """Take over a newer topology: stop waiting for copies of lost members, and take over new primaries."""
        before, self._replicas.topology = self._replicas.topology, topology
        is_recovered, self.is_settling = self.is_settling, False
        changed = {
            group
            for group, owners in topology.owners.items()
            if group in before.owners and before.owners[group] != owners
        }
        if (
            set(before.member_ids) <= set(topology.member_ids)
            and not changed
            and not is_recovered
            and topology.version == before.version + 1
        ):
            return
        for key, replica in list(self._replicas.items()):
            if replica.phase is ReplicaPhase.BACKUP:
                continue
            if not self._replicas.is_primary(key):
                replica.step_down()
                self._sent.stepped_down(key, replica)
            elif replica.receivers:
                self._follow(key, replica)
        for table in self._places.tables():
            if not table.replicated:
                group = table.scheme.affinity_group()
                me = self._replicas.member_id
                taken = owned_by(me, topology, group) if is_recovered else taken_by(me, before, topology, group)
                self.takeovers.begin(table, taken)

    def take_over_again(self, table: TableDef) -> None:
        """The owners of a table of which this member did not know the affinity group are those of the topology."""
        self.takeovers.begin(
            table, owned_by(self._replicas.member_id, self._replicas.topology, table.scheme.affinity_group())
        )

    def _follow(self, key: CopyKey, replica: Replica) -> None:
        """Go on without the copies that do not count any more."""
        living = self._replicas.others(key)
        for member in replica.receivers:
            if member in living:
                self._replicas.counted.discard((key, member))
            elif not self._replicas.topology.has_member(member) or not (
                replica.is_learner(member) or (key, member) in self._replicas.counted
            ):
                self._replicas.counted.discard((key, member))
                replica.left(member)
        self._sent.opened(key, replica)

    async def level(self, table_id: int) -> None:
        """Return once every copy has all changes of the partitions of a table of which this member is the primary.

        To be called while no write of the table is on its way here.

        Raises:
            TopologyChangedError: A copy does not get what it lacks.
        """
        await self.takeovers.wait_all(table_id)
        deadline_s = lease_clock_s() + _LEVEL_S
        while behind := [
            key
            for key, replica in self._replicas.items()
            if key[0] == table_id and replica.phase is not ReplicaPhase.BACKUP and replica.unsettled
        ]:
            if lease_clock_s() > deadline_s:
                raise TopologyChangedError(
                    f"{self._replicas.name(behind[0])}: some of {', '.join(self._replicas.others(behind[0]))} lack"
                    f" changes that {self._replicas.member_id} has",
                    table_id=table_id,
                )
            await asyncio.sleep(_LEVEL_PAUSE_S)

    def succeed(self, before: int, table: TableDef) -> None:
        """A table has other columns, and therefore another id, from now on.

        All copies had every change of the one before. Those that take it over later than this one are asked for that
        before this member changes anything, as if it had just become the primary.
        """
        me, topology = self._replicas.member_id, self._replicas.topology
        written = []
        for (table_id, partition), replica in list(self._replicas.items()):
            if table_id == before:
                last = replica.last
                self._replicas[table.table_id, partition] = Replica.built(replica.term, last, last, ())
                written.append(partition)
        self.forget(before)
        if not table.replicated:
            owned = set(owned_by(me, topology, table.scheme.affinity_group())).intersection(written)
            self.takeovers.begin(table, sorted(owned))

    def forget(self, table_id: int) -> None:
        """A table was dropped, or has another id."""
        dropped = TopologyChangedError(
            f"table {table_id} was dropped while a write to it waited for its copies", table_id=table_id
        )
        self._forget({key for key in (*self._replicas, *self.received.arriving) if key[0] == table_id}, dropped)

    def forget_dropped_ranges(self, table: TableDef) -> None:
        """A table has these ranges now: nothing is kept of the partitions of others, whose ids nobody uses again."""
        if table.scheme.live_partition_count < table.partition_count:
            table_id, live = table.table_id, frozenset(table.scheme.live_ids())
            dropped = TopologyChangedError(
                f"a range of {table.name} was dropped while a write to it waited for its copies", table_id=table_id
            )
            known = (*self._replicas, *self.received.arriving)
            self._forget({key for key in known if key[0] == table_id and key[1] not in live}, dropped)

    def _forget(self, keys: set[CopyKey], why: Error) -> None:
        for key in keys:
            self._replicas.pop(key, None)
            self.received.forget(key)
            self._sent.forget(key, why)
            if event := self._replicas.opening.pop(key, None):
                event.set()
        self._replicas.counted = {(key, member) for key, member in self._replicas.counted if key not in keys}

    async def close(self) -> None:
        """End everything that is under way."""
        self._sent.close()
        await self._background.close()


def owned_by(member: str, topology: Topology, group: str) -> list[int]:
    """The partitions of an affinity group of which a member is the primary, ascending; those of dropped ranges too."""
    owners = topology.owners.get(group)
    return [] if owners is None else owners.partitions_of(member)


def taken_by(member: str, before: Topology, topology: Topology, group: str) -> list[int]:
    """The partitions of :func:`owned_by` of which it was not the primary before; none of a new group."""
    if not before.version or (group not in before.owners and topology.version == before.version + 1):
        return []  # the group is new, and its partitions are empty
    known = frozenset(owned_by(member, before, group))
    return [partition for partition in owned_by(member, topology, group) if partition not in known]
