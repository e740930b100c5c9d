"""The changes that a primary sends to other copies: what they answer, and what a copy that lacks some is sent again.

A change is sent to all other copies in the turn of the event loop in which the primary makes it, those of one frame in
one message, and connections keep their order, so copies usually get changes in sequence. If one does not (its
connection broke, its member was suspended), a repair sends it the missing changes until it has everything or does not
count any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias, assert_never

from secateur.cluster.loop_thread import BackgroundTasks
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.replication.acknowledgements import Acknowledgements
from secateur.cluster.member.replication.replica import CountOut, Effect, Replica, SendChange
from secateur.cluster.member.replication.replicas import CopyKey, Replicas
from secateur.cluster.peers import Peers
from secateur.errors import DiskError, Error, InterfaceError, OperationalError, TopologyChangedError
from secateur.protocol.changes import CopyState, CopyStates, TellSettled, WriteCopies, WriteCopy
from secateur.storage.read_lease import lease_clock_s

_log = logging.getLogger(__name__)
_TOGETHER_BYTES_MAX: Final = 1 << 20
"""Rows that one message takes: they travel in its header, and headers are bounded."""

_Sent: TypeAlias = tuple[CopyKey, Replica, SendChange]
"""A change of a copy here that is sent to another copy."""


class SentChanges:
    """Sends the changes and hears the answers. Lives on the member's event loop.

    Args:
        out_of_sync: Has the cluster count a member out as a holder of a partition, by table, partition and member.
    """

    def __init__(
        self,
        storage: MemberStorage,
        replicas: Replicas,
        peers: Peers,
        acknowledgements: Acknowledgements,
        background: BackgroundTasks,
        out_of_sync: Callable[[int, int, str], Awaitable[object]],
    ) -> None:
        self._replicas = replicas
        self._places = storage.places
        self._peers = peers
        self._acknowledgements = acknowledgements
        self._background = background
        self._out_of_sync = out_of_sync
        self._held: set[CopyKey] = set()
        self._gathered: dict[str, list[_Sent]] | None = None  # by member, while they are not sent at once
        self._is_closed = False
        self._notices = _SettledNotices(replicas, peers, background, storage.limits.settled_after_s)

    def send(self, key: CopyKey, replica: Replica, send: SendChange) -> None:
        """Have another copy make a change that was made here: without a task where its member is connected."""
        if self._gathered is not None:
            self._gathered.setdefault(send.member, []).append((key, replica, send))
            return
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
            self._background.start(self._send_later(key, replica, send))

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """The changes that are sent in here go to each member in one message, when all are made; nothing may wait here.

        Each keeps its number, and is confirmed or repaired by itself.
        """
        gathered = self._gathered = {}
        try:
            yield
        finally:
            self._gathered = None
            for member, sent in gathered.items():
                self._send_together(member, sent)

    def _send_together(self, member: str, sent: Sequence[_Sent]) -> None:
        start, size = 0, 0
        for end, (_, _, send) in enumerate(sent):
            size += len(send.change.rows)
            if size > _TOGETHER_BYTES_MAX and end > start:
                self._send_message(member, sent[start:end])
                start, size = end, len(send.change.rows)
        self._send_message(member, sent[start:])

    def _send_message(self, member: str, sent: Sequence[_Sent]) -> None:
        """Send changes in one message, or alone: one change, and all that cannot be sent in this turn of the loop."""
        is_sent = False
        if len(sent) > 1:
            changes = [(_write_copy(*one), bytes(one[2].change.rows)) for one in sent]
            with contextlib.suppress(Error):  # nothing was sent; sending them again says so where that is looked at
                is_sent = self._peers.ask_now(member, WriteCopies(changes), b"", partial(self._answered_together, sent))
        if not is_sent:
            self._send_alone(sent)

    def _answered_together(self, sent: Sequence[_Sent], outcome: CopyStates | Exception) -> None:
        """A copy has answered to several changes: what it says of the first ones, the others are sent again alone."""
        if self._is_closed:
            return
        states: Sequence[CopyState | Exception]
        states = outcome.states if isinstance(outcome, CopyStates) else [outcome] * len(sent)
        for one, state in zip(sent, states, strict=False):
            self._answered(*one, state)
        self._send_alone(sent[len(states) :])

    def _send_alone(self, sent: Sequence[_Sent]) -> None:
        for one in sent:
            self.send(*one)

    def wake(self, key: CopyKey, replica: Replica) -> None:
        """Tell those who wait for a copy how far all copies are; go on with loads when none is repaired any more."""
        self._acknowledgements.settled_now(key, replica)
        is_repairing = replica.is_repairing
        if is_repairing or self._held:
            self.hold(key, is_repairing)

    def opened(self, key: CopyKey, replica: Replica) -> None:
        """Look whether a copy that takes over has just opened: then it sends the others what they lack, and writes."""
        if replica.is_open and key in self._replicas.opening:
            self._replicas.opening.pop(key).set()
            self.carry_out(key, replica, replica.repair())
        self.wake(key, replica)

    def stepped_down(self, key: CopyKey, replica: Replica) -> None:
        """A copy is not the primary any more: nobody is to wait for it."""
        self._replicas.counted = {(counted, member) for counted, member in self._replicas.counted if counted != key}
        self.hold(key, False)
        self._acknowledgements.fail(
            key,
            self._replicas.superseded(
                key, replica, f"the rows are visible on {self._replicas.member_id}, but may have no copies"
            ),
        )
        self._acknowledgements.forget(key)
        if event := self._replicas.opening.pop(key, None):
            event.set()

    def carry_out(self, key: CopyKey, replica: Replica, effects: Sequence[Effect]) -> None:
        """Send again what a copy lacks, or have it counted out."""
        for effect in effects:
            match effect:
                case SendChange():
                    self._background.start(self._send_later(key, replica, effect))
                case CountOut(member, reason):
                    self._background.start(self.count_out(key, member, reason))
                case _:
                    assert_never(effect)

    def hold(self, key: CopyKey, is_repairing: bool) -> None:
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

    async def count_out(self, key: CopyKey, member: str, reason: str) -> None:
        """A copy cannot be caught up: it must not be counted on any more."""
        try:
            _log.error(
                "%s: the copy on %s is out of sync and leaves the ownership: %s",
                self._replicas.name(key),
                member,
                reason,
            )
            await self._out_of_sync(*key, member)
        except Error:
            _log.exception("the controller did not hear of a copy that is out of sync")
            return
        replica = self._replicas.get(key)
        if replica is not None and replica.is_out_of_sync(member):  # and not built again while the controller answered
            self.uncount(key[0], (key[1],), member)  # if it was only about to become an owner, it never will

    def uncount(self, table_id: int, partitions: Iterable[int], member: str) -> None:
        """A member will not be an owner of partitions that it has been building copies of."""
        for partition in partitions:
            key = (table_id, partition)
            self._replicas.counted.discard((key, member))
            replica = self._replicas.get(key)
            if replica is not None and member not in self._replicas.others(key):
                replica.left(member)
                self.opened(key, replica)

    def forget(self, key: CopyKey, why: Error) -> None:
        """A partition is gone."""
        self.hold(key, False)
        self._acknowledgements.fail(key, why)
        self._acknowledgements.forget(key)
        self._notices.forget(key)

    def not_read(self, key: CopyKey) -> None:
        """Readers of a partition do not wait here: its copy is built anew."""
        self._acknowledgements.forget(key)

    def close(self) -> None:
        """Send nothing more, and hear no answers."""
        self._is_closed = True
        self._notices.close()

    async def _send_later(self, key: CopyKey, replica: Replica, send: SendChange) -> None:
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

    def _answered(self, key: CopyKey, replica: Replica, send: SendChange, outcome: CopyState | Exception) -> None:
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
        if effects:
            self.carry_out(key, replica, effects)
        self.wake(key, replica)
        if replica.is_superseded:
            visible = f"the rows are visible on {self._replicas.member_id}, but {send.member} refused their copy"
            self._acknowledgements.fail(key, self._replicas.superseded(key, replica, visible))
        elif send.change.sequence > replica.settled and not (
            replica.is_learner(send.member) or replica.has_confirmed(send.member, send.change.sequence)
        ):
            self._acknowledgements.give_up_later(key, send.change.sequence)


def _write_copy(key: CopyKey, replica: Replica, send: SendChange) -> WriteCopy:
    change = send.change
    return WriteCopy(
        *key, change.operation, change.change_id, change.sequence, send.term, replica.settled, change.published
    )


class _SettledNotices:
    """Tells the other copies of partitions that are written to up to which change all of them have come.

    Then they need not keep those changes any more. A write tells it too, so only the last ones need a notice of their
    own: it is sent once for many partitions, a moment after the last copy has confirmed. Lives on the member's event
    loop.

    Args:
        after_s: Seconds between a confirmation and the notice.
    """

    def __init__(
        self, replicas: Mapping[tuple[int, int], Replica], peers: Peers, background: BackgroundTasks, after_s: float
    ) -> None:
        self._replicas = replicas
        self._peers = peers
        self._background = background
        self._after_s = after_s
        self._untold: set[tuple[int, int]] = set()
        self._telling: asyncio.TimerHandle | None = None

    def tell_later(self, key: tuple[int, int]) -> None:
        """A copy of a partition has confirmed a change."""
        self._untold.add(key)
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(self._after_s, self._tell)

    def forget(self, key: tuple[int, int]) -> None:
        """A partition is gone."""
        self._untold.discard(key)

    def close(self) -> None:
        """Tell nothing more."""
        if self._telling is not None:
            self._telling.cancel()

    def _tell(self) -> None:
        self._telling = None
        untold, self._untold = self._untold, set()
        copies: defaultdict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
        for key in untold:
            replica = self._replicas.get(key)
            if replica is not None and replica.is_open:
                for member in replica.others:
                    copies[member].append((*key, replica.term, replica.settled))
        for member, told in copies.items():
            self._background.start(self._tell_member(member, told))

    async def _tell_member(self, member: str, copies: list[tuple[int, int, int, int]]) -> None:
        with contextlib.suppress(Error):  # the next write tells it
            await self._peers.call(member, TellSettled(copies))


_COUNTED_S: Final = 10.0
_LEVEL_PAUSE_S: Final = 0.002


class Learners:
    """The members that learn partitions of which this one is the primary. Lives on the member's event loop.

    Copies are built while others write: their members get every change, and writes wait for them in the end.
    """

    def __init__(self, replicas: Replicas, sent: SentChanges) -> None:
        self._replicas = replicas
        self._sent = sent

    def of(self, table_id: int, partitions: Iterable[int]) -> dict[str, list[int]]:
        """The partitions by the members that are building copies of them, also those that writes wait for already."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for partition in partitions:
            key = (table_id, partition)
            replica = self._replicas.get(key)
            if replica is not None:
                for member in replica.receivers:
                    if replica.is_learner(member) or (key, member) in self._replicas.counted:
                        found[member].append(partition)
        return found

    async def count(self, table_id: int, partitions: Iterable[int], member: str) -> None:
        """Return when every change to these partitions waits for a member that has built copies of them.

        Raises:
            TopologyChangedError: It is not building one of them here, or has not caught up.
        """
        deadline_s = lease_clock_s() + _COUNTED_S
        for partition in partitions:
            key = (table_id, partition)
            while (replica := self._replicas.get(key)) is not None and replica.takes_writes:
                if replica.is_level(member):
                    replica.count(member)
                    self._replicas.counted.add((key, member))
                    break
                if (key, member) in self._replicas.counted:
                    break
                if not replica.is_learner(member) or lease_clock_s() > deadline_s:
                    raise self._not_counted(key, member)
                await asyncio.sleep(_LEVEL_PAUSE_S)
            else:
                raise self._not_counted(key, member)

    def forget_all(self) -> None:
        """No member that has been building copies will be an owner, unless it is one already."""
        for (table_id, partition), replica in list(self._replicas.items()):
            for member in replica.receivers:
                self._sent.uncount(table_id, (partition,), member)

    def uncount(self, table_id: int, partitions: Iterable[int], member: str) -> None:
        """A member will not be an owner of partitions that it has been building copies of."""
        self._sent.uncount(table_id, partitions, member)

    def _not_counted(self, key: CopyKey, member: str) -> TopologyChangedError:
        name, me = self._replicas.name(key), self._replicas.member_id
        return TopologyChangedError(
            f"{name}: {me} cannot count on a copy that {member} has built: it is behind, or follows another primary",
            topology_version=self._replicas.topology.version,
        )
