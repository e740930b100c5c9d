"""Whose turn it is to change a table: changes of several partitions wait for each other, fairly between connections.

A change of several partitions lets no other write to its table in, so those of one table are made one after the other.
Those that wait take turns by connection, as statements at a member do, and when too many wait, the connection with most
of them is refused first. A change waits before anything is done for it: it is planned for the owners of its own moment,
and no member that joins waits for those that wait here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from secateur.cluster.member.statement_admission import Refusal, StatementAdmission
from secateur.errors import LimitExceededError
from secateur.wire import PeerInfo

__all__ = ["ChangeTurns"]


class ChangeTurns:
    """Lives on the controller's event loop.

    Args:
        waiting_max: Changes that wait for one table; one more is refused.
    """

    def __init__(self, waiting_max: int) -> None:
        self._waiting_max = waiting_max
        self._turns: dict[int, StatementAdmission] = {}

    @asynccontextmanager
    async def admitted(self, table_id: int, name: str, peer: PeerInfo) -> AsyncIterator[None]:
        """Around a change of a table: begins when it is its turn.

        Args:
            table_id: The table.
            name: Its name.
            peer: The client, whose session takes turns with others.

        Raises:
            LimitExceededError: Too many changes wait for this table, and the session of this one has most of them;
                nothing was done for it.
        """
        turns = self._turns.get(table_id)
        if turns is None:
            turns = self._turns[table_id] = StatementAdmission(1, self._waiting_max, _refusal(name))
        try:
            async with turns.admitted(peer):
                yield
        finally:
            if not turns.running and self._turns.get(table_id) is turns:
                del self._turns[table_id]


def _refusal(table: str) -> Refusal:
    def refusal(running: int, waiting: int) -> LimitExceededError:
        return LimitExceededError(
            f"{waiting} changes of several partitions of {table} wait, which is the most (max_waiting_statements),"
            f" while {running} is made: nothing was done for this one. Try again later, or change more rows with one"
            " statement",
            limit="max_waiting_statements",
            running=running,
            waiting=waiting,
            table=table,
            retry_safe=True,
        )

    return refusal
