"""Orders changes of a table or a partition: they take turns, fairly between connections.

A change of several partitions lets no other write to its table in, and one of a single partition finds and writes its
rows with no other change in between. So those of one table, or of one partition, are made one after the other. Those
that wait take turns by connection, as statements at a member do, and when too many wait, the connection with most of
them is refused first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from secateur.cluster.member.admission.statement_admission import Refusal, StatementAdmission
from secateur.errors import LimitExceededError
from secateur.wire import PeerInfo

K = TypeVar("K", bound=Hashable)


class ChangeTurns(Generic[K]):
    """The turns of the changes that share a key. Lives on one event loop. A turn costs a microsecond where none waits.

    Args:
        waiting_max: Changes that wait for one key; one more is refused.
        refusal_of: Makes the errors for these.
    """

    def __init__(self, waiting_max: int, refusal_of: Callable[[K], Refusal]) -> None:
        self._waiting_max = waiting_max
        self._refusal_of = refusal_of
        self._turns: dict[K, StatementAdmission | None] = {}  # None: one change is made, and none has waited behind it

    async def begin(self, key: K, peer: PeerInfo) -> None:
        """Return when it is the turn of a change; :meth:`end` is to follow.

        Args:
            key: The key of the table or partition that it changes.
            peer: The client, whose session takes turns with others.

        Raises:
            LimitExceededError: Too many changes wait, and the session of this one has most of them; nothing was done
                for it.
        """
        if key not in self._turns:
            self._turns[key] = None
            return
        turns = self._turns[key]
        if turns is None:
            turns = self._turns[key] = StatementAdmission(1, self._waiting_max, self._refusal_of(key), running=1)
        try:
            await turns.begin(peer)
        except BaseException:
            self._forget_unused(key, turns)  # its turn may have come at the same moment
            raise

    def is_free(self, key: K) -> bool:
        """Whether no change has or awaits its turn: one that is made without a pause needs none."""
        return key not in self._turns

    def end(self, key: K, peer: PeerInfo) -> None:
        """The change of a client is made, or will not be."""
        turns = self._turns[key]
        if turns is None:
            del self._turns[key]
        else:
            turns.end(peer)
            self._forget_unused(key, turns)

    @asynccontextmanager
    async def admitted(self, key: K, peer: PeerInfo) -> AsyncIterator[None]:
        """Enclose a change, from :meth:`begin` to :meth:`end`.

        Raises:
            LimitExceededError: As there.
        """
        await self.begin(key, peer)
        try:
            yield
        finally:
            self.end(key, peer)

    def _forget_unused(self, key: K, turns: StatementAdmission) -> None:
        if not turns.running and self._turns.get(key) is turns:
            del self._turns[key]


def full_table(key: tuple[int, str]) -> Refusal:
    """The refusal of a change of several partitions, for which too many of the same table wait.

    Args:
        key: Id and name of the table.
    """
    return _refusal(f"of several partitions of {key[1]} wait", key[1])


def full_partition(table: str, partition: int, member_id: str) -> Refusal:
    """The refusal of a change of one partition, for which too many wait at its primary."""
    return _refusal(f"of partition {partition} of {table} wait at member {member_id}", table)


def _refusal(which: str, table: str) -> Refusal:
    def refusal(running: int, waiting: int) -> LimitExceededError:
        return LimitExceededError(
            f"{waiting} changes {which}, which is the most (max_waiting_statements), while {running} is made: nothing"
            " was done for this one. Try again later, or change more rows with one statement",
            limit="max_waiting_statements",
            running=running,
            waiting=waiting,
            table=table,
            retry_safe=True,
        )

    return refusal
