"""The changes that a member gets from primaries for its copies, also while the rows of a copy are on their way."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from secateur.cluster.member.changes.change_registry import RecordedChange
from secateur.cluster.member.member_log import MemberLog
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.replication.replica import Replica, ReplicaPhase, ReplicatedChange
from secateur.cluster.member.replication.replicas import CopyKey, RecordedChanges, Replicas
from secateur.cluster.member.replication.sent_changes import SentChanges
from secateur.errors import DiskError, TopologyChangedError
from secateur.protocol import changes as protocol
from secateur.protocol.copies import OpenedCopy
from secateur.protocol.message import Acknowledged
from secateur.storage.change import change_operation
from secateur.wire import Handled, Reply, Request, decode_rows

T = TypeVar("T")

_log = logging.getLogger(__name__)


class ReceivedChanges:
    """Answers what primaries ask of copies. Lives on the member's event loop.

    Args:
        check_settled: Raises while this member settles loads that were under way when it ended.
    """

    def __init__(
        self,
        storage: MemberStorage,
        replicas: Replicas,
        sent: SentChanges,
        recorded: RecordedChanges,
        check_settled: Callable[[], None],
    ) -> None:
        self._replicas = replicas
        self._store = storage.store
        self._places = storage.places
        self._sent = sent
        self._change_registry = storage.change_registry
        self._recorded = recorded
        self._check_settled = check_settled
        self._log = storage.log
        self._expected: set[CopyKey] = set()  # partitions whose state at their primary is not known yet
        self._arriving: dict[CopyKey, list[ReplicatedChange]] = {}  # changes to partitions whose rows are not here yet

    @property
    def arriving(self) -> Iterable[CopyKey]:
        """The copies whose rows are still on their way."""
        return self._arriving

    def write_copy(self, request: Request[protocol.WriteCopy]) -> Handled:
        """Make a change that the primary has made. It is on disk before the answer, if the cluster promises that.

        It may come before a load that the primary has published: then it waits for that, since copies are equal only
        if they make both in one order.

        Returns:
            ``last`` and ``term`` of this copy: it has the change if ``last`` is not less than its number, and takes
            nothing from a primary of an earlier term.
        """
        rows = request.payload
        state = self._taken(request.message, bytes(rows) if len(rows) < 4096 else rows)
        if state is None:
            return self._write_copy_behind(request)
        return Reply(state) if self._log is None else self._durable(state, self._log)

    def write_copies(self, request: Request[protocol.WriteCopies]) -> Handled:
        """Make changes as :meth:`write_copy` does, up to the first that cannot be made in this turn of the loop.

        That one and those behind it are left to requests of their own, one of which says what is wrong.
        """
        states: list[protocol.CopyState] = []
        for change, rows in request.message.changes:
            try:
                state = self._taken(change, rows)
            except Exception:
                _log.debug("a change is left to a request of its own", exc_info=True)
                break
            if state is None:
                break
            states.append(state)
        found = protocol.CopyStates(states)
        return Reply(found) if self._log is None else self._durable(found, self._log)

    def _taken(self, asked: protocol.WriteCopy, rows: bytes | memoryview) -> protocol.CopyState | None:
        """The state of a copy that has been sent a change; None if it waits for a load before that change.

        Raises:
            Error: The change cannot be made here.
        """
        key = (asked.table_id, asked.partition)
        self._check_settled()
        self._places.place(key[0])
        table, _ = self._store.place(*key)
        if asked.published > table.published and self._waits_for_load(key[0], asked.published):
            return None
        if key in self._expected:  # it does not know from which change it goes on, and is sent this one again
            return protocol.CopyState(0, asked.term)
        change = ReplicatedChange(asked.sequence, asked.change_id, asked.mode, rows, asked.published)
        replica = self._replicas.get(key) or self._replicas.here(key)
        was_open = asked.term > replica.term and replica.is_open
        arriving = self._arriving.get(key)
        for taken in replica.take(asked.term, asked.settled, (change,)):
            if arriving is None:
                self.make(key, replica, taken)
            else:
                arriving.append(taken)
        if was_open and not replica.is_open:
            self._sent.stepped_down(key, replica)
        return protocol.CopyState(replica.last, replica.term)

    def tails(self, request: Request[protocol.GetCopyTails]) -> Reply[protocol.CopyTails]:
        """Return the state of some copies for a new primary: the number of the last change, and later changes."""
        asked = request.message
        table_id, term = asked.table_id, asked.term
        self._check_settled()
        self._places.place(table_id)
        tails = []
        for partition, after in asked.partitions:
            key = (table_id, partition)
            replica = self._replicas.here(key)
            was_open = replica.is_open
            changes = replica.tail(term, after)
            if was_open and not replica.is_open:
                self._sent.stepped_down(key, replica)
            if changes is None:
                me = self._replicas.member_id
                raise TopologyChangedError(
                    f"{self._replicas.name(key)}: {me} follows the primary of topology version {replica.term}, not that"
                    f" of {term}",
                    topology_version=replica.term,
                )
            if replica.last != after:
                behind = [
                    (change.sequence, change.change_id, change.operation, bytes(change.rows)) for change in changes
                ]
                published = [change.published for change in changes] or [0]
                tails.append(protocol.CopyTail(partition, replica.last, behind, max(published), published[0]))
        return Reply(protocol.CopyTails(tails))

    def copies_settled(self, request: Request[protocol.TellSettled]) -> Reply[Acknowledged]:
        """A primary says up to which change all copies of its partitions have come."""
        for table_id, partition, term, settled in request.message.copies:
            replica = self._replicas.get((table_id, partition))
            if replica is not None and replica.phase is ReplicaPhase.BACKUP:
                replica.is_settled(term, settled)
        return Reply(Acknowledged())

    def expect(self, table_id: int, partition: int) -> None:
        """Rows of a partition are about to come from its primary; changes to them may come sooner."""
        key = (table_id, partition)
        self._replicas.pop(key, None)
        self._sent.not_read(key)
        self._expected.add(key)
        self._arriving[key] = []

    def begin_at(self, table_id: int, copy: OpenedCopy) -> None:
        """Go on from the state of the primary in which it has fixed the rows."""
        key = (table_id, copy.partition)
        self._expected.discard(key)
        kept = [ReplicatedChange(*change) for change in copy.kept]
        self._replicas[key] = Replica.built(copy.term, copy.settled, copy.last, kept)
        known = [(change_id, RecordedChange(rows, sequence)) for change_id, rows, sequence in copy.changes]
        for change_id, change in known:
            self._change_registry.note((*key, change_id), change)
        self._recorded.copy_begun(key, self._replicas[key], known)

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
            self.make(key, self._replicas[key], change)

    def forget(self, key: CopyKey) -> None:
        """A copy is not here any more, nor on its way."""
        self._arriving.pop(key, None)
        self._expected.discard(key)

    def make(self, key: CopyKey, replica: Replica, change: ReplicatedChange) -> None:
        """Make a change that another member has made.

        Raises:
            Error: It cannot be made, or not in its place: this copy is no good.
        """
        operation = change_operation(change.operation)
        try:
            table, partition = self._store.place(*key)
            if 0 <= change.published < table.published:
                raise DiskError(
                    f"{self._replicas.name(key)}: the copy on {self._replicas.member_id} has load {table.published} and"
                    f" lacks change {change.sequence}, which came before that load: its disk has lost what it had"
                    " written"
                )
            written = partition.apply(operation, decode_rows(change.rows), is_copy=True)
        except BaseException:
            replica.could_not_make(change)
            raise
        self._change_registry.note((*key, change.change_id), RecordedChange(written, change.sequence))
        self._recorded.record(key, table, replica, change, written)

    async def load_published(self, table_id: int, published: int) -> None:
        """Return when this member has published a load that another copy has published, which is decided therefore.

        Raises:
            LoadFailedError: It has not heard so for too long.
        """
        while self._waits_for_load(table_id, published):
            await self._places.latch(table_id).wait_open()

    async def _write_copy_behind(self, request: Request[protocol.WriteCopy]) -> Any:
        await self.load_published(request.message.table_id, request.message.published)
        answer = self.write_copy(request)
        return await answer if isinstance(answer, Awaitable) else answer

    def _waits_for_load(self, table_id: int, published: int) -> bool:
        """Whether a load that another copy has published is prepared here, and about to be published."""
        return published > self._replicas.published(table_id) and self._places.latch(table_id).is_closed

    async def _durable(self, state: T, log: MemberLog) -> Reply[T]:
        await log.durable()
        return Reply(state)
