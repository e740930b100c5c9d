"""Has the writer of a change, and readers who have seen it, wait until all copies have it.

The primary makes a change before the other copies do, so changes of a partition follow each other without a pause. If
the primary made it only once the copies have it, each write would have to wait for the round trip of the write before.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.replication.replica import Replica
from secateur.cluster.member.replication.replicas import CopyKey, Replicas
from secateur.cluster.peers import MemberCaller
from secateur.errors import DiskError, Error, InterfaceError, MemberLostError, OperationalError, TopologyChangedError
from secateur.protocol.changes import GetPublication, PublishedEverywhere
from secateur.protocol.message import Acknowledged
from secateur.wire import Reply, Request

_TOLD_WITHIN_S: Final = 0.2
_PAUSE_S: Final = 0.1


class _Publication:
    """One that is visible here.

    Attributes:
        number: Its number.
        confirmed: Set when all members have made it.
        is_asked: Whether the members are being asked for it.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.confirmed = asyncio.Event()
        self.is_asked = False


class UnconfirmedPublications:
    """Knows these publications, and waits for them. Lives on the member's event loop. It is false while there is none.

    Every member answers reads of a replicated table from its own copy, and members publish a load one after the other.
    An answer with its rows waits until all members have them: whoever reads next, at whichever member, must not find
    the rows of before.

    Readers are not stopped before the first member publishes: that would need no message of the controller, but all of
    them would wait for the slowest member that prepares a large load.

    The controller tells when all have published. If it does not, because it is gone or its word was lost, the members
    are asked.

    **Invariant**: when an answer with the rows of a publication is sent, no member answers with those of before.

    Args:
        other_ids: Gives their ids, as of the newest topology.
        start: Begins to ask them, in the background.
        wait_max_s: Seconds that a reader waits.

    Attributes:
        by_table: They, by the ids of the tables.
    """

    def __init__(
        self,
        members: MemberCaller,
        other_ids: Callable[[], Sequence[str]],
        start: Callable[[Coroutine[Any, Any, None]], None],
        wait_max_s: float,
    ) -> None:
        self._members = members
        self._other_ids = other_ids
        self._start = start
        self._wait_max_s = wait_max_s
        self.by_table: dict[int, _Publication] = {}

    def __bool__(self) -> bool:
        return bool(self.by_table)

    def __contains__(self, table_id: int) -> bool:
        return table_id in self.by_table

    def made(self, table_id: int, number: int) -> None:
        """A load of a replicated table has become visible here. All members have those before it."""
        self._confirm(table_id)
        if self._other_ids():
            self.by_table[table_id] = _Publication(number)

    def told(self, request: Request[PublishedEverywhere]) -> Reply[Acknowledged]:
        """The controller reports that all members have published a load."""
        known = self.by_table.get(request.message.table_id)
        if known is not None and known.number <= request.message.number:
            self._confirm(request.message.table_id)
        return Reply(Acknowledged())

    async def wait(self, table_id: int) -> None:
        """Return once all members have what is visible of a table here now.

        Raises:
            TopologyChangedError: They do not have it for too long; to be read again.
        """
        seen = self.by_table.get(table_id)
        if seen is None:
            return
        try:
            async with asyncio.timeout(_TOLD_WITHIN_S):
                await seen.confirmed.wait()
            return
        except TimeoutError:
            if not seen.is_asked:
                seen.is_asked = True
                self._start(self._ask(table_id, seen))
        try:
            async with asyncio.timeout(self._wait_max_s):
                await seen.confirmed.wait()
        except TimeoutError as error:
            raise TopologyChangedError(
                "the statement has read rows of a replicated table that not all members have published for"
                f" {self._wait_max_s:g} s; try again"
            ) from error

    def _confirm(self, table_id: int) -> None:
        known = self.by_table.pop(table_id, None)
        if known is not None:
            known.confirmed.set()

    async def _ask(self, table_id: int, publication: _Publication) -> None:
        while not publication.confirmed.is_set():
            asking = (self._has(member, table_id, publication.number) for member in self._other_ids())
            if all(await asyncio.gather(*asking)):
                if self.by_table.get(table_id) is publication:
                    self._confirm(table_id)
                return
            await asyncio.sleep(_PAUSE_S)

    async def _has(self, member: str, table_id: int, number: int) -> bool:
        """Whether a member cannot answer any more with rows from before a publication."""
        try:
            return (await self._members.call(member, GetPublication(table_id))).number >= number
        except (OperationalError, InterfaceError) as error:
            return isinstance(error.__cause__, ConnectionRefusedError)
        except Error:  # it has no such table any more
            return True


class Acknowledgements:
    """Knows which changes are not acknowledged, and who waits for them. Lives on the member's event loop.

    Args:
        storage: Knows which changes are on disk, and how long a write waits for a copy that does not answer.
    """

    def __init__(self, storage: MemberStorage, replicas: Replicas, publications: UnconfirmedPublications) -> None:
        self._replicas = replicas
        self._publications = publications
        self._confirm_wait_s = storage.limits.confirm_wait_s
        self._log = storage.log
        self._waiting: dict[CopyKey, list[tuple[int, asyncio.Future[Any], Any]]] = {}
        # Partitions with changes that writers wait for, and the place of these in the log.
        self._unacknowledged: dict[CopyKey, int] = {}

    def made(self, key: CopyKey, replica: Replica) -> None:
        """The primary has made a change and sent it to the other copies."""
        unsynced = 0 if self._log is None else self._log.unsynced
        if unsynced or replica.last > replica.settled:
            self._unacknowledged[key] = unsynced

    def taken_over(self, key: CopyKey) -> None:
        """A copy with changes that others may lack is to be the primary: writers may still wait for these."""
        self._unacknowledged.setdefault(key, 0)

    def forget(self, key: CopyKey) -> None:
        """Readers of a partition need not wait here any more."""
        self._unacknowledged.pop(key, None)

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
        waiting = self.settling(key, sequence)
        if waiting is None:
            return
        if is_known:
            self.give_up_later(key, sequence)
        await waiting

    def settling(self, key: CopyKey, sequence: int, outcome: Any = None) -> asyncio.Future[Any] | None:
        """Return a future of ``outcome`` that is done once all copies that count have a change; None if they have it.

        Raises:
            Error: From the future, as :meth:`settled`.
        """
        replica = self._replicas.get(key)
        if replica is None or sequence <= replica.settled:
            return None
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append((sequence, future, outcome))
        return future

    def is_acknowledged(self, key: CopyKey) -> bool:
        """Whether every change of a partition that readers see here is acknowledged, or may be."""
        place = self._unacknowledged.get(key)
        if place is None:
            return True
        replica = self._replicas.get(key)
        if (replica is not None and replica.last > replica.settled) or not (
            self._log is None or self._log.is_durable(place)
        ):
            return False
        del self._unacknowledged[key]
        return True

    @property
    def pending(self) -> tuple[Mapping[CopyKey, object], Mapping[int, object]]:
        """The partitions, and the ids of the tables, of which something may not be acknowledged yet."""
        return self._unacknowledged, self._publications.by_table

    def acknowledged(self, reads: Iterable[CopyKey]) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """Return a function that waits until the changes visible in some partitions are acknowledged; None if they are.

        It is a function and not a coroutine, since whoever is to call it may be cancelled first.

        A read that has seen a change has to wait for this before it is answered: if this member were lost first, the
        next read would not see it. Costs nothing while nobody writes.

        Raises:
            TopologyChangedError: A copy does not confirm a change, or a member a publication; to be read again.
        """
        if not self._unacknowledged and not self._publications:
            return None
        changes, tables = [], []
        for key in reads:
            if not self.is_acknowledged(key):
                changes.append((key, self._replicas[key].last, self._unacknowledged[key]))
            elif key[0] in self._publications:
                tables.append(key[0])
        return partial(self._all_acknowledged, changes, tables) if changes or tables else None

    async def _all_acknowledged(self, changes: Sequence[tuple[CopyKey, int, int]], replicated: Sequence[int]) -> None:
        for table_id in replicated:
            await self._publications.wait(table_id)
        for key, sequence, place in changes:
            try:
                await self.settled(*key, sequence, is_known=True)
            except MemberLostError as error:
                raise TopologyChangedError(
                    f"{self._replicas.name(key)}: the statement has read a write that is not confirmed by all copies;"
                    " try again",
                    topology_version=self._replicas.topology.version,
                ) from error
            if self._log is not None and not self._log.is_durable(place):
                with contextlib.suppress(DiskError):  # reads go on; whether it survives a restart is not known
                    await self._log.durable()
            self.is_acknowledged(key)

    def settled_now(self, key: CopyKey, replica: Replica) -> None:
        """Tell those who wait for changes of a copy which of them all copies have by now."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            left = []
            for entry in waiting:
                sequence, future, outcome = entry
                if sequence > replica.settled:
                    left.append(entry)
                elif not future.done():
                    future.set_result(outcome)
            if left:
                self._waiting[key] = left
            else:
                del self._waiting[key]
        self.is_acknowledged(key)

    def fail(self, key: CopyKey, error: Error) -> None:
        """Fail the waits for changes of a partition with an error."""
        for _, future, _ in self._waiting.pop(key, ()):
            if not future.done():
                future.set_exception(error)

    def give_up_later(self, key: CopyKey, sequence: int) -> None:
        """Stop waiting for a change in a while, if the copies have not confirmed it by then."""
        asyncio.get_running_loop().call_later(self._confirm_wait_s, self._give_up, key, sequence)

    def _give_up(self, key: CopyKey, sequence: int) -> None:
        replica = self._replicas.get(key)
        if replica is None or sequence <= replica.settled:
            return
        late = [member for member in replica.others if not replica.has_confirmed(member, sequence)]
        name, me = self._replicas.name(key), self._replicas.member_id
        error = MemberLostError(
            f"{name}: the rows are visible on {me}, but their backup on {' and '.join(late)} was not confirmed within"
            f" {self._confirm_wait_s:g} s: look whether they are there",
            member=late[0] if late else me,
        )
        waiting = self._waiting.get(key, [])
        self._waiting[key] = [entry for entry in waiting if entry[0] > sequence]
        for number, future, _ in waiting:
            if number <= sequence and not future.done():
                future.set_exception(error)
