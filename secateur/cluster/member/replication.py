"""Replication: performs what :class:`~secateur.cluster.member.replica.Replica` decides, here and on other members.

A change is sent to all other copies in the turn of the event loop in which the primary makes it, and connections keep
their order, so copies usually get changes in sequence. If one does not (its connection broke, its member was
suspended), a repair sends it the missing changes until it has everything or does not count any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, assert_never

import numpy as np

from secateur.cluster.background_tasks import BackgroundTasks
from secateur.cluster.member.change_registry import ChangeRegistry, RecordedChange
from secateur.cluster.member.member_log import MemberLog
from secateur.cluster.member.owned_partitions import owned_by, taken_by
from secateur.cluster.member.recorded_changes import RecordedChanges
from secateur.cluster.member.replica import (
    CountOut,
    Effect,
    Replica,
    ReplicaPhase,
    ReplicatedChange,
    SendChange,
)
from secateur.cluster.member.settled_notices import SettledNotices
from secateur.cluster.member.table_directory import TableDirectory
from secateur.cluster.peers import Peers
from secateur.engine_limits import EngineLimits
from secateur.errors import (
    DiskError,
    Error,
    InterfaceError,
    LoadFailedError,
    MemberLostError,
    OperationalError,
    TopologyChangedError,
)
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.changes import CopyState, CopyTail, CopyTails, GetCopyTails, TellSettled, WriteCopy
from secateur.protocol.copies import OpenedCopy
from secateur.protocol.message import Acknowledged
from secateur.storage.change import ChangeOperation, load_mode
from secateur.storage.log.journal import MakeBody
from secateur.storage.log.records import LoggedCopy, body_of
from secateur.storage.log.replay import RecoveredCopy
from secateur.storage.member_store import MemberStore
from secateur.storage.read_lease import lease_clock_s
from secateur.wire import Handled, Reply, Request, decode_rows

__all__ = ["Replication"]

_log = logging.getLogger(__name__)

_TAKE_OVER_S: Final = 10.0
_LEVEL_PAUSE_S: Final = 0.002
_PAUSE_MIN_S: Final = 0.02
_PAUSE_MAX_S: Final = 0.5
_UNSETTLED_MAX: Final = 4096
"""Changes of one partition that some copy has not confirmed; each is kept in memory for it."""

Key: TypeAlias = tuple[int, int]
"""Table and partition."""


class Replication:
    """Keeps copies equal. Lives on the member's event loop.

    Args:
        member_id: This member.
        store: Its partitions.
        places: The members that keep copies of them, and the latches of their writes.
        peers: The other members.
        change_registry: Learns which changes this member has made as copies.
        out_of_sync: Has the cluster count a member out as a holder of a partition, by affinity group, partition and
            member.
        limits: How long copies are waited for; None for the defaults.
        log: Records the changes; None for a member without a data directory.

    Attributes:
        is_settling: Whether this member has just been started with what it had before, and loads are still in doubt:
            until these are decided it makes no changes of other copies, which came behind them.
    """

    def __init__(
        self,
        member_id: str,
        store: MemberStore,
        places: TableDirectory,
        peers: Peers,
        change_registry: ChangeRegistry,
        out_of_sync: Callable[[str, int, str], Awaitable[object]],
        limits: EngineLimits | None = None,
        log: MemberLog | None = None,
    ) -> None:
        self._log = log
        self.is_settling = False
        self._limits = limits or EngineLimits()
        self._member_id = member_id
        self._store = store
        self._recorded = RecordedChanges(store, change_registry, log)
        self._places = places
        self._peers = peers
        self._change_registry = change_registry
        self._out_of_sync = out_of_sync
        self._topology = Topology(0, (), {})
        self._replicas: dict[Key, Replica] = {}
        self._waiting: dict[Key, list[tuple[int, asyncio.Future[None]]]] = {}
        self._takeovers: dict[Key, asyncio.Event] = {}
        self._held: set[Key] = set()
        self._expected: set[Key] = set()  # partitions whose state at their primary is not known yet
        self._arriving: dict[Key, list[ReplicatedChange]] = {}  # changes to partitions whose rows are not here yet
        self._unacknowledged: dict[Key, int] = {}  # partitions with changes that writers wait for; the place in the log
        self._counted: set[tuple[Key, str]] = set()  # copies that writes wait for, ahead of the topology
        self._background = BackgroundTasks()
        self._is_closed = False
        self._notices = SettledNotices(self._replicas, peers, self._background, self._limits.settled_after_s)

    # -- writes at the primary

    async def primary(self, table_id: int, partition: int) -> None:
        """Return once this member can write to a partition as its primary. Costs a microsecond when it can.

        The caller has just found that this member owns the partition; this is checked again after every wait.

        Raises:
            TopologyChangedError: It is not the primary, or cannot find out what the other copies have; nothing was
                written.
            LoadFailedError: A load or change has kept writes waiting for too long, or copies do not confirm theirs;
                nothing was written.
        """
        key, latch = (table_id, partition), self._places.latch(table_id)
        replica = self._replicas.get(key)
        if replica is not None and replica.takes_writes and replica.unsettled < _UNSETTLED_MAX and not latch.is_closed:
            return
        while True:
            others = self._places.backups(table_id, (partition,))
            replica = self._replicas.get(key)
            if replica is None:
                self._store.partition(table_id, partition)  # that of a dropped range has an owner still
                replica = self._replicas[key] = Replica.first_primary(others)
            if latch.is_closed:
                await latch.wait_open()
            elif replica.phase is ReplicaPhase.TAKING_OVER:
                await self._taken_over(key)
            elif not replica.takes_writes:
                raise self._superseded(key, replica, "nothing was written")
            elif replica.unsettled >= _UNSETTLED_MAX:
                raise LoadFailedError(
                    f"{self._name(key)}: {replica.unsettled} changes are not confirmed by all of"
                    f" {', '.join(replica.others)}; nothing was written, try again",
                    table_id=table_id,
                )
            else:
                return

    def check_primary(self, table_id: int, partition: int) -> None:
        """Refuse to change a partition that is not this member's any more.

        Raises:
            TopologyChangedError: It is not; nothing was written.
        """
        key = (table_id, partition)
        replica = self._replicas.get(key)
        if replica is None or not replica.is_open:
            raise self._superseded(key, replica or Replica(), "nothing was written")

    def has_copies(self, table_id: int, partition: int) -> bool:
        """Whether other members have to be sent the changes of a partition."""
        replica = self._replicas.get((table_id, partition))
        return replica is not None and bool(replica.receivers)

    def made(
        self,
        table_id: int,
        partition: int,
        operation: ChangeOperation,
        change_id: str,
        rows: bytes | memoryview,
        written: int = 0,
    ) -> tuple[int, int]:
        """The primary has made a change in this turn of the loop, of some rows: record it, and send it to the others.

        Returns:
            Its sequence number, and the copies it was sent to.
        """
        key = (table_id, partition)
        replica = self._replicas[key]
        sends = replica.append(change_id, operation.value, rows, self._published(table_id))
        self._recorded.record(key, replica, ReplicatedChange(replica.last, change_id, operation.value, rows), written)
        for send in sends:
            self._send_now(key, replica, send)
        unsynced = 0 if self._log is None else self._log.unsynced
        if unsynced or replica.unsettled:
            self._unacknowledged[key] = unsynced
        return replica.last, len(sends)

    async def settled(self, table_id: int, partition: int, sequence: int, *, is_known: bool = False) -> None:
        """Return once all copies that the cluster counts on have a change.

        Args:
            table_id: The table.
            partition: The partition.
            sequence: The number of the change.
            is_known: Whether it was made before, perhaps by another primary.

        Raises:
            MemberLostError: The change is visible here, but a copy has not confirmed it.
            TopologyChangedError: The table was dropped.
        """
        key = (table_id, partition)
        replica = self._replicas.get(key)
        if replica is None or sequence <= replica.settled:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append((sequence, future))
        if is_known:
            self._give_up_later(key, sequence)
        await future

    def last(self, table_id: int, partition: int) -> int:
        """The number of the last change of a partition here."""
        replica = self._replicas.get((table_id, partition))
        return 0 if replica is None else replica.last

    def is_acknowledged(self, key: Key) -> bool:
        """Whether every change of a partition that readers see here is acknowledged, or may be."""
        place, replica = self._unacknowledged.get(key), self._replicas.get(key)
        if place is None:
            return True
        if (replica is not None and replica.unsettled) or not (self._log is None or self._log.is_durable(place)):
            return False
        del self._unacknowledged[key]
        return True

    def acknowledged(self, reads: Iterable[Key]) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """What waits until the changes that are visible in some partitions now are acknowledged; None if they are.

        It is a function, since whoever is to call it may be cancelled first.

        A read that has seen a change has to wait for this before it is answered: if this member were lost first, the
        next read would not see it. Costs nothing while nobody writes.

        Raises:
            TopologyChangedError: A copy does not confirm a change; to be read again.
        """
        if not self._unacknowledged:
            return None
        seen = [key for key in reads if not self.is_acknowledged(key)]
        if not seen:
            return None
        changes = [(key, self._replica(key).last, self._unacknowledged[key]) for key in seen]
        return partial(self._all_acknowledged, changes)

    async def _all_acknowledged(self, seen: Sequence[tuple[Key, int, int]]) -> None:
        for key, sequence, place in seen:
            try:
                await self.settled(*key, sequence, is_known=True)
            except MemberLostError as error:
                raise TopologyChangedError(
                    f"{self._name(key)}: the statement has read a write that is not confirmed by all copies; try again",
                    topology_version=self._topology.version,
                ) from error
            if self._log is not None and not self._log.is_durable(place):
                with contextlib.suppress(DiskError):  # reads go on; whether it survives a restart is not known
                    await self._log.durable()
            self.is_acknowledged(key)

    async def all_taken_over(self, table_id: int) -> None:
        """Return once this member knows everything about the partitions of a table of which it has become the primary.

        Raises:
            TopologyChangedError: A copy does not say what it has.
        """
        for key in [key for key in self._takeovers if key[0] == table_id]:
            await self._taken_over(key)

    # -- what other members ask

    def write_copy(self, request: Request[WriteCopy]) -> Handled:
        """Make a change that the primary has made. It is on disk before the answer, if the cluster promises that.

        It may come before a load that the primary has published: then it waits for that, since copies are equal only
        if they make both in one order.

        Returns:
            ``last`` and ``term`` of this copy: it has the change if ``last`` is not less than its number, and takes
            nothing from a primary of an earlier term.
        """
        asked = request.message
        key = (asked.table_id, asked.partition)
        self._check_settled()
        self._places.place(key[0])
        self._store.partition(*key)
        if self._waits_for_load(key[0], asked.published):
            return self._write_copy_behind(request)
        if key in self._expected:  # it does not know from which change it goes on, and is sent this one again
            return Reply(CopyState(0, asked.term))
        change = ReplicatedChange(
            asked.sequence,
            asked.change_id,
            asked.mode,
            bytes(request.payload) if len(request.payload) < 4096 else request.payload,
            asked.published,
        )
        replica = self._replica(key)
        was_open = replica.is_open
        arriving = self._arriving.get(key)
        for taken in replica.take(asked.term, asked.settled, (change,)):
            if arriving is None:
                self._make(key, replica, taken)
            else:
                arriving.append(taken)
        if was_open and not replica.is_open:
            self._stepped_down(key, replica)
        state = CopyState(replica.last, replica.term)
        return Reply(state) if self._log is None else self._durable(state, self._log)

    async def _write_copy_behind(self, request: Request[WriteCopy]) -> Any:
        await self._load_published(request.message.table_id, request.message.published)
        answer = self.write_copy(request)
        return await answer if isinstance(answer, Awaitable) else answer

    def _waits_for_load(self, table_id: int, published: int) -> bool:
        """Whether a load that another copy has published is prepared here, and about to be published."""
        return published > self._published(table_id) and self._places.latch(table_id).is_closed

    async def _load_published(self, table_id: int, published: int) -> None:
        """Return when this member has published a load that another copy has published, which is decided therefore.

        Raises:
            LoadFailedError: It has not heard so for too long.
        """
        while self._waits_for_load(table_id, published):
            await self._places.latch(table_id).wait_open()

    def _published(self, table_id: int) -> int:
        return self._store.data_version(table_id).published

    async def _durable(self, state: CopyState, log: MemberLog) -> Reply[CopyState]:
        await log.durable()
        return Reply(state)

    def tails(self, request: Request[GetCopyTails]) -> Reply[CopyTails]:
        """Return the state of some copies for a new primary: the number of the last change, and later changes."""
        asked = request.message
        table_id, term = asked.table_id, asked.term
        self._check_settled()
        self._places.place(table_id)
        tails = []
        for partition, after in asked.partitions:
            key = (table_id, partition)
            replica = self._replica(key)
            was_open = replica.is_open
            changes = replica.tail(term, after)
            if was_open and not replica.is_open:
                self._stepped_down(key, replica)
            if changes is None:
                raise TopologyChangedError(
                    f"{self._name(key)}: {self._member_id} follows the primary of topology version {replica.term}, not"
                    f" that of {term}",
                    topology_version=replica.term,
                )
            if replica.last != after:
                behind = [
                    (change.sequence, change.change_id, change.operation, bytes(change.rows)) for change in changes
                ]
                published = max((change.published for change in changes), default=0)
                tails.append(CopyTail(partition, replica.last, behind, published))
        return Reply(CopyTails(tails))

    def copies_settled(self, request: Request[TellSettled]) -> Reply[Acknowledged]:
        """A primary says up to which change all copies of its partitions have come."""
        for table_id, partition, term, settled in request.message.copies:
            replica = self._replicas.get((table_id, partition))
            if replica is not None and replica.phase is ReplicaPhase.BACKUP:
                replica.is_settled(term, settled)
        return Reply(Acknowledged())

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

    def learners(self, table_id: int, partitions: Iterable[int]) -> dict[str, list[int]]:
        """The partitions by the members that are building copies of them, also those that writes wait for already."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for partition in partitions:
            key = (table_id, partition)
            replica = self._replicas.get(key)
            if replica is not None:
                for member in replica.receivers:
                    if replica.is_learner(member) or (key, member) in self._counted:
                        found[member].append(partition)
        return found

    async def count(self, table_id: int, partitions: Iterable[int], member: str) -> None:
        """Return when every change to these partitions waits for a member that has built copies of them.

        Raises:
            TopologyChangedError: It is not building one of them here, or has not caught up.
        """
        deadline_s = lease_clock_s() + _TAKE_OVER_S
        for partition in partitions:
            key = (table_id, partition)
            while (replica := self._replicas.get(key)) is not None and replica.takes_writes:
                if replica.is_level(member):
                    replica.count(member)
                    self._counted.add((key, member))
                    break
                if (key, member) in self._counted:
                    break
                if not replica.is_learner(member) or lease_clock_s() > deadline_s:
                    raise self._not_counted(key, member)
                await asyncio.sleep(_LEVEL_PAUSE_S)
            else:
                raise self._not_counted(key, member)

    def uncount(self, table_id: int, partitions: Iterable[int], member: str) -> None:
        """A member will not be an owner of partitions that it has been building copies of."""
        for partition in partitions:
            key = (table_id, partition)
            self._counted.discard((key, member))
            replica = self._replicas.get(key)
            if replica is not None and member not in self._others(key):
                replica.left(member)
                self._wake(key, replica)

    def forget_learners(self) -> None:
        """No member that has been building copies will be an owner, unless it is one already."""
        for (table_id, partition), replica in list(self._replicas.items()):
            for member in replica.receivers:
                self.uncount(table_id, (partition,), member)

    def expect(self, table_id: int, partition: int) -> None:
        """Rows of a partition are about to come from its primary; changes to them may come sooner."""
        key = (table_id, partition)
        self._replicas.pop(key, None)
        self._unacknowledged.pop(key, None)
        self._expected.add(key)
        self._arriving[key] = []

    def begin_at(self, table_id: int, copy: OpenedCopy) -> None:
        """Go on from the state of the primary in which it has fixed the rows."""
        key = (table_id, copy.partition)
        self._expected.discard(key)
        kept = [ReplicatedChange(*change) for change in copy.kept]
        self._replicas[key] = Replica.built(copy.term, copy.settled, copy.last, kept)
        for change_id, rows, sequence in copy.changes:
            self._change_registry.note((*key, change_id), RecordedChange(rows, sequence))
        if self._log is not None:
            state = LoggedCopy(*key, copy.term, copy.last, copy.settled)
            self._log.append(partial(body_of, state))

    def arrived(self, table_id: int, partition: int) -> None:
        """The rows are here: make the changes that came meanwhile.

        Raises:
            Error: One cannot be made; the copy is no good.
        """
        key = (table_id, partition)
        arriving = self._arriving.pop(key, [])
        replica = self._replicas[key]
        feed = self._store.feed(*key)
        if feed is not None:
            feed.go_on(replica.last - len(arriving))
        for change in arriving:
            self._make(key, self._replicas[key], change)

    def drop_copy(self, table_id: int, partition: int) -> bool:
        """Forget the state of a copy; False, and nothing happens, if this member is one of its owners.

        A member that has left the cluster is only where it was the last one.
        """
        key = (table_id, partition)
        holders = self._holders(key)
        if self._member_id in (holders if self._topology.has_member(self._member_id) else holders[:1]):
            return False
        replica = self._replicas.pop(key, None)
        if replica is not None:
            self._stepped_down(key, replica)
        self._arriving.pop(key, None)
        self._expected.discard(key)
        return True

    def _not_counted(self, key: Key, member: str) -> TopologyChangedError:
        return TopologyChangedError(
            f"{self._name(key)}: {self._member_id} cannot count on a copy that {member} has built: it is behind, or"
            " follows another primary",
            topology_version=self._topology.version,
        )

    # -- a member that is started with what it had before

    def restore(self, copies: Mapping[Key, RecoveredCopy]) -> None:
        """Go on from the state of copies that was on disk. The next topology says of which this member is primary."""
        self.is_settling = True
        live = {table.table_id: frozenset(table.scheme.live_ids()) for table in self._store.tables()}
        for key, copy in copies.items():
            if key[1] not in live.get(key[0], ()):
                continue  # of a table or a range that was dropped
            kept = [
                ReplicatedChange(change.sequence, change.change_id, change.operation, rows)
                for change, rows in copy.kept
            ]
            self._replicas[key] = Replica.built(copy.term, copy.settled, copy.last, kept)
            self._recorded.begin_feed(key, copy.last)

    def records(self) -> list[MakeBody]:
        """The records of all copies and of the recent changes, for a checkpoint."""
        return self._recorded.records(self._replicas)

    def _check_settled(self) -> None:
        if self.is_settling:
            raise TopologyChangedError(
                f"{self._member_id} has just been started, and settles loads that were under way when it ended"
            )

    # -- members and tables come and go

    def update(self, topology: Topology) -> None:
        """Take over a newer topology: stop waiting for copies of lost members, and take over new primaries."""
        before, self._topology = self._topology, topology
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
            if not self._is_primary(key):
                replica.step_down()
                self._stepped_down(key, replica)
            elif replica.receivers:
                self._follow(key, replica)
        for table in self._places.tables():
            if not table.replicated:
                group = table.scheme.affinity_group()
                me = self._member_id
                taken = owned_by(me, topology, group) if is_recovered else taken_by(me, before, topology, group)
                self._take_over(table, taken)

    def take_over_again(self, table: TableDef) -> None:
        """The owners of a table of which this member did not know the affinity group are those of the topology."""
        self._take_over(table, owned_by(self._member_id, self._topology, table.scheme.affinity_group()))

    def _follow(self, key: Key, replica: Replica) -> None:
        """Go on without the copies that do not count any more."""
        living = self._others(key)
        for member in replica.receivers:
            if member in living:
                self._counted.discard((key, member))
            elif not self._topology.has_member(member) or not (
                replica.is_learner(member) or (key, member) in self._counted
            ):
                self._counted.discard((key, member))
                replica.left(member)
        self._wake(key, replica)

    def forget(self, table_id: int) -> None:
        """A table was dropped."""
        dropped = TopologyChangedError(
            f"table {table_id} was dropped while a write to it waited for its copies", table_id=table_id
        )
        self._forget({key for key in (*self._replicas, *self._arriving) if key[0] == table_id}, dropped)

    def forget_dropped_ranges(self, table: TableDef) -> None:
        """A table has these ranges now: nothing is kept of the partitions of others, whose ids nobody uses again."""
        if table.scheme.live_partition_count < table.partition_count:
            table_id, live = table.table_id, frozenset(table.scheme.live_ids())
            dropped = TopologyChangedError(
                f"a range of {table.name} was dropped while a write to it waited for its copies", table_id=table_id
            )
            known = (*self._replicas, *self._arriving)
            self._forget({key for key in known if key[0] == table_id and key[1] not in live}, dropped)

    def _forget(self, keys: set[Key], why: Error) -> None:
        for key in keys:
            self._replicas.pop(key, None)
            self._arriving.pop(key, None)
            self._hold(key, False)
            self._fail(key, why)
            self._notices.forget(key)
            self._unacknowledged.pop(key, None)
            if event := self._takeovers.pop(key, None):
                event.set()
        self._counted = {(key, member) for key, member in self._counted if key not in keys}
        self._expected -= keys

    async def close(self) -> None:
        """End everything that is under way."""
        self._is_closed = True
        self._notices.close()
        await self._background.close()

    # -- sending

    def _send_now(self, key: Key, replica: Replica, send: SendChange) -> None:
        """As :meth:`_send`, without a task where the member of the copy is connected."""
        try:
            is_sent = self._peers.ask_now(
                send.member,
                _write_copy(key, replica, send),
                send.change.rows,
                partial(self._answered, key, replica, send),
            )
        except Error:  # nothing was sent; sending it again says so where that is looked at
            is_sent = False
        if not is_sent:
            self._background.start(self._send(key, replica, send))

    async def _send(self, key: Key, replica: Replica, send: SendChange) -> None:
        """Have another copy make a change that was made here."""
        if send.pause_s:
            await asyncio.sleep(send.pause_s)
            if not replica.repairs(send):
                return
        outcome: CopyState | Exception
        try:
            outcome = await self._peers.call(send.member, _write_copy(key, replica, send), send.change.rows)
        except Exception as error:
            outcome = error
        self._answered(key, replica, send, outcome)

    def _answered(self, key: Key, replica: Replica, send: SendChange, outcome: CopyState | Exception) -> None:
        """A copy has answered that it made a change, or did not."""
        if self._is_closed:
            return
        match outcome:
            case CopyState():
                effects = replica.confirmed(send, outcome.last, outcome.term)
                self._notices.tell_later(key)
            case DiskError():  # it has the change in memory only, so it does not count
                effects = replica.refused(send, str(outcome))
            case OperationalError() | InterfaceError():
                effects = replica.unanswered(send)
            case _:
                effects = replica.refused(send, f"{type(outcome).__name__}: {outcome}")
        if self._replicas.get(key) is not replica:
            return
        self._carry_out(key, replica, effects)
        self._wake(key, replica)
        if replica.is_superseded:
            visible = f"the rows are visible on {self._member_id}, but {send.member} refused their copy"
            self._fail(key, self._superseded(key, replica, visible))
        elif not (replica.is_learner(send.member) or replica.has_confirmed(send.member, send.change.sequence)):
            self._give_up_later(key, send.change.sequence)

    def _carry_out(self, key: Key, replica: Replica, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendChange():
                    self._background.start(self._send(key, replica, effect))
                case CountOut(member, reason):
                    self._background.start(self._count_out(key, member, reason))
                case _:
                    assert_never(effect)

    def _hold(self, key: Key, is_repairing: bool) -> None:
        """No load of the table is published while a copy is repaired."""
        if is_repairing == (key in self._held):
            return
        latch = self._places.latch(key[0])
        if is_repairing:
            self._held.add(key)
            latch.begin()
        else:
            self._held.discard(key)
            latch.end()

    # -- taking over

    def _take_over(self, table: TableDef, partitions: Sequence[int]) -> None:
        table_id, term = table.table_id, self._topology.version
        asking: defaultdict[str, list[int]] = defaultdict(list)
        if table.scheme.live_partition_count < table.partition_count:  # those of dropped ranges have owners still
            partitions = np.intersect1d(partitions, table.scheme.live_partitions(), assume_unique=True).tolist()
        for partition in partitions:
            key = (table_id, partition)
            replica = self._replica(key)
            for member in replica.take_over(term, self._others(key)):
                asking[member].append(partition)
            if not replica.is_open and key not in self._takeovers:
                self._takeovers[key] = asyncio.Event()
            if replica.unsettled:
                self._unacknowledged.setdefault(key, 0)
            self._wake(key, replica)
        for member, asked in asking.items():
            self._background.start(self._ask(table_id, term, member, asked))

    async def _ask(self, table_id: int, term: int, member: str, partitions: Sequence[int]) -> None:
        """Ask a copy what it has, until it says so or does not count any more."""
        pause_s = _PAUSE_MIN_S
        while True:
            asked = {
                partition: replica
                for partition in partitions
                if (replica := self._asked(table_id, partition, term, member)) is not None
            }
            if not asked:
                return
            known = [(partition, replica.last) for partition, replica in asked.items()]
            try:
                answer = await self._peers.call(member, GetCopyTails(table_id, term, known))
                tails = {
                    tail.partition: (
                        tail.last,
                        [ReplicatedChange(*change, published=tail.published) for change in tail.changes],
                    )
                    for tail in answer.tails
                }
                await self._load_published(table_id, max((tail.published for tail in answer.tails), default=0))
            except Exception as error:  # a copy that nobody asks would keep the partition closed
                if not isinstance(error, (OperationalError, InterfaceError)):
                    _log.exception("%s did not say what it has of table %d", member, table_id)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _PAUSE_MAX_S)
                continue
            for partition, after in known:
                if self._asked(table_id, partition, term, member) is asked[partition]:
                    last, changes = tails.get(partition, (after, []))
                    await self._told((table_id, partition), asked[partition], member, last, changes)
            return

    async def _told(
        self, key: Key, replica: Replica, member: str, last: int, changes: Sequence[ReplicatedChange]
    ) -> None:
        try:
            for change in replica.told(member, last, changes):
                self._make(key, replica, change)
        except Exception as error:
            await self._count_out(key, self._member_id, f"{type(error).__name__}: {error}")
            return
        self._wake(key, replica)

    def _asked(self, table_id: int, partition: int, term: int, member: str) -> Replica | None:
        """The copy here, when it still wants to know what another one has."""
        replica = self._replicas.get((table_id, partition))
        waits = replica is not None and replica.term == term and replica.waits_for(member)
        return replica if waits else None

    async def _taken_over(self, key: Key) -> None:
        event = self._takeovers.get(key)
        if event is None:
            return
        try:
            async with asyncio.timeout(_TAKE_OVER_S):
                await event.wait()
        except TimeoutError as error:
            replica = self._replicas.get(key)
            waits_for = " and ".join(replica.others) if replica is not None else "nobody"
            raise TopologyChangedError(
                f"{self._name(key)}: {self._member_id} takes over as the primary and has received nothing"
                f" from {waits_for} for {_TAKE_OVER_S:g} s; nothing was written, try again",
                topology_version=self._topology.version,
            ) from error

    # --

    def _replica(self, key: Key) -> Replica:
        """Return the copy here; a new one if this member is the first primary of the partition."""
        replica = self._replicas.get(key)
        if replica is None:
            replica = self._replicas[key] = (
                Replica.first_primary(self._others(key)) if self._is_primary(key) else Replica()
            )
        return replica

    def _holders(self, key: Key) -> tuple[str, ...]:
        owners = self._topology.owners.get(self._places.table(key[0]).scheme.affinity_group())
        return owners.holders(key[1]) if owners is not None and key[1] < owners.partitions else ()

    def _is_primary(self, key: Key) -> bool:
        return self._holders(key)[:1] == (self._member_id,)

    def _others(self, key: Key) -> list[str]:
        """The members of the other copies, of those that the cluster counts on."""
        alive = self._topology.member_ids
        return [member for member in self._holders(key) if member != self._member_id and member in alive]

    def _make(self, key: Key, replica: Replica, change: ReplicatedChange) -> None:
        """Make a change that another member has made."""
        operation = (
            ChangeOperation.DELETE if change.operation == ChangeOperation.DELETE else load_mode(change.operation)
        )
        try:
            written = self._store.apply(key[0], key[1], operation, decode_rows(change.rows), is_copy=True)
        except BaseException:
            replica.could_not_make(change)
            raise
        self._change_registry.note((*key, change.change_id), RecordedChange(written, change.sequence))
        self._recorded.record(key, replica, change, written)

    def _wake(self, key: Key, replica: Replica) -> None:
        """Tell those who wait for the copy here that it takes writes, or that all copies have their changes."""
        if replica.is_open and key in self._takeovers:
            self._takeovers.pop(key).set()
            self._carry_out(key, replica, replica.repair())
        waiting = self._waiting.get(key)
        if waiting is not None:
            left = []
            for sequence, future in waiting:
                if sequence > replica.settled:
                    left.append((sequence, future))
                elif not future.done():
                    future.set_result(None)
            if left:
                self._waiting[key] = left
            else:
                del self._waiting[key]
        self._hold(key, replica.is_repairing)
        self.is_acknowledged(key)

    def _stepped_down(self, key: Key, replica: Replica) -> None:
        self._counted = {(counted, member) for counted, member in self._counted if counted != key}
        self._hold(key, False)
        self._fail(
            key, self._superseded(key, replica, f"the rows are visible on {self._member_id}, but may have no copies")
        )
        self._unacknowledged.pop(key, None)
        if event := self._takeovers.pop(key, None):
            event.set()

    def _fail(self, key: Key, error: Error) -> None:
        for _, future in self._waiting.pop(key, ()):
            if not future.done():
                future.set_exception(error)

    def _give_up_later(self, key: Key, sequence: int) -> None:
        asyncio.get_running_loop().call_later(self._limits.confirm_wait_s, self._give_up, key, sequence)

    def _give_up(self, key: Key, sequence: int) -> None:
        replica = self._replicas.get(key)
        if replica is None or sequence <= replica.settled:
            return
        late = [member for member in replica.others if not replica.has_confirmed(member, sequence)]
        error = MemberLostError(
            f"{self._name(key)}: the rows are visible on {self._member_id}, but their backup on {' and '.join(late)}"
            f" was not confirmed within {self._limits.confirm_wait_s:g} s: look whether they are there",
            member=late[0] if late else self._member_id,
        )
        waiting = self._waiting.get(key, [])
        self._waiting[key] = [entry for entry in waiting if entry[0] > sequence]
        for number, future in waiting:
            if number <= sequence and not future.done():
                future.set_exception(error)

    def _superseded(self, key: Key, replica: Replica, outcome: str) -> Error:
        message = f"{self._name(key)}: {outcome}: its copies follow another primary than {self._member_id}"
        if outcome == "nothing was written":
            return TopologyChangedError(message, topology_version=self._topology.version)
        return MemberLostError(message, member=self._member_id)

    async def _count_out(self, key: Key, member: str, reason: str) -> None:
        """A copy cannot be caught up: it must not be counted on any more."""
        try:
            _log.error(
                "%s: the copy on %s is out of sync and leaves the ownership: %s", self._name(key), member, reason
            )
            await self._out_of_sync(self._places.table(key[0]).scheme.affinity_group(), key[1], member)
        except Error:
            _log.exception("the controller did not hear of a copy that is out of sync")
        else:
            self.uncount(key[0], (key[1],), member)  # if it was only about to become an owner, it never will

    def _name(self, key: Key) -> str:
        return f"partition {key[1]} of {self._places.table(key[0]).name}"


def _write_copy(key: Key, replica: Replica, send: SendChange) -> WriteCopy:
    change = send.change
    return WriteCopy(
        *key, change.operation, change.change_id, change.sequence, send.term, replica.settled, change.published
    )
