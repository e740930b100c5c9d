"""Has the writer of a change, and readers who have seen it, wait until all copies have it.

The primary makes a change before the other copies do, so changes of a partition follow each other without a pause. If
the primary made it only once the copies have it, each write would have to wait for the round trip of the write before.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from secateur.cluster.member.persistence.member_log import MemberLog
from secateur.cluster.member.replication.replica import Replica
from secateur.cluster.member.replication.replicas import CopyKey, Replicas
from secateur.cluster.member.replication.unconfirmed_publications import UnconfirmedPublications
from secateur.errors import DiskError, Error, MemberLostError, TopologyChangedError


class Acknowledgements:
    """Knows which changes are not acknowledged, and who waits for them. Lives on the member's event loop.

    Args:
        replicas: The copies here.
        publications: The publications of replicated tables that other members may not have made yet.
        confirm_wait_s: Seconds that a write waits for a copy that does not answer.
        log: Knows which changes are on disk; None for a member without a data directory.
    """

    def __init__(
        self, replicas: Replicas, publications: UnconfirmedPublications, confirm_wait_s: float, log: MemberLog | None
    ) -> None:
        self._replicas = replicas
        self._publications = publications
        self._confirm_wait_s = confirm_wait_s
        self._log = log
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
