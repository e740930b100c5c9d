"""Admission of the statements of clients: at the member that runs or coordinates them, or to change a table.

A statement waits before anything is done for it, and holds its place until its answer, or the first part of its rows,
is made. What an admitted statement asks of this member or of others is never admitted anew, so no two statements can
wait for each other. A result that is read in parts holds no place between them: its reader may be slow.

Statements that the event loop answers at once are not admitted: they cost less than waiting would.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from secateur.cluster.member.admission.statement_queue import StatementQueue
from secateur.cluster.member.admission.tenants import TenantAccounts
from secateur.cluster.member.member_threads import QUICK_THREADS_MAX
from secateur.cluster.settings import ClusterSettings
from secateur.engine.threads import WORK, is_long_over
from secateur.errors import LimitExceededError
from secateur.wire import PeerInfo

_QUICK_SLOTS: Final = 2
"""Statements over few rows that run at once where there are tenants, for each kernel thread."""

_Turn: TypeAlias = "tuple[asyncio.Future[None], str]"
"""Is done when the turn of a statement has come; and its tenant."""

Refusal: TypeAlias = Callable[[int, int], LimitExceededError]
"""Makes the error of a refused statement, from the numbers of running and of waiting statements."""


class StatementAdmission:
    """Lets a bounded number of statements run, and queues the others. Lives on one event loop.

    Args:
        running_max: Statements that run at once.
        waiting_max: Statements that wait for one of those to end; one more is refused.
        refusal: Makes the error for it.
        running: Statements that run already, and for which :meth:`end` will be called.
        slots: Statements that run at once while tenants beside the owner are there; None for ``running_max``.
        tenants: Knows their shares, and how long they have waited; None where all have the same.

    Attributes:
        refused: How many statements were refused until now.
    """

    def __init__(
        self,
        running_max: int,
        waiting_max: int,
        refusal: Refusal,
        *,
        running: int = 0,
        slots: int | None = None,
        tenants: TenantAccounts | None = None,
    ) -> None:
        self.refused = 0
        self._refusal = refusal
        self._tenants = tenants or TenantAccounts()
        self._charges = slots is not None
        self._queue: StatementQueue[_Turn] = StatementQueue(
            running_max, waiting_max, slots=slots, share_of=self._tenants.share_of, running=running
        )
        self._waiting: set[asyncio.Task[Any]] = set()
        self._waited_s: WeakKeyDictionary[asyncio.Task[Any], float] = WeakKeyDictionary()

    @property
    def running(self) -> int:
        """The number of running statements."""
        return self._queue.running

    @property
    def waiting(self) -> int:
        """The number of waiting statements."""
        return self._queue.waiting

    def is_waiting(self, task: asyncio.Future[Any]) -> bool:
        """Whether the statement on which a task works waits."""
        return task in self._waiting

    def waited_s(self, task: asyncio.Task[Any]) -> float:
        """Seconds for which the statement on which a task works has waited; 0 while it does."""
        return self._waited_s.get(task, 0.0)

    @asynccontextmanager
    async def admitted(self, peer: PeerInfo) -> AsyncIterator[bool]:
        """Enclose the work for a statement, which begins when it is its turn.

        Args:
            peer: The client, whose session takes turns with others.

        Yields:
            Whether it has waited, so that rows and owners may be others than when it came.

        Raises:
            LimitExceededError: Too many statements wait, and the session of this one has most of them; nothing was
                done for it.
        """
        waits = await self.begin(peer)
        try:
            yield waits
        finally:
            self.end(peer)

    async def begin(self, peer: PeerInfo) -> bool:
        """Wait for the turn of a statement, as :meth:`admitted` does; :meth:`end` is to follow.

        Raises:
            LimitExceededError: As there.
        """
        turn = asyncio.get_running_loop().create_future(), peer.tenant
        running = self._queue.running
        refused = self._queue.came(peer.session, turn, peer.tenant)
        if refused is not None:
            self.refused += 1
            refused[0].set_exception(self._refusal(self.running, self.waiting))
        waits = self._queue.running == running
        if waits:
            await self._its_turn(peer, turn)
        return waits

    def end(self, peer: PeerInfo) -> None:
        """A statement of a client has ended: it is the turn of the next one."""
        work = WORK.get() if self._charges else None
        following = self._queue.ended(peer.tenant, 0.0 if work is None else work.uncharged_s())
        while following is not None:
            turn, tenant = following
            if turn.done():  # its statement was cancelled, and has not left yet
                following = self._queue.ended(tenant)
            else:
                turn.set_result(None)
                following = self._queue.following()

    def charge(self, peer: PeerInfo, cost_s: float) -> None:
        """A client has used processor time beside its statements, such as for the rest of a result."""
        self._queue.charge(peer.tenant, cost_s)

    def shares_changed(self) -> None:
        """Ask for the shares of all tenants again."""
        self._queue.shares_changed()

    async def _its_turn(self, peer: PeerInfo, turn: _Turn) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        begun = time.perf_counter()
        try:
            await turn[0]
        except asyncio.CancelledError:
            self._queue.left(peer.session, turn, peer.tenant)
            if not turn[0].cancelled() and turn[0].exception() is None:
                self.end(peer)  # its turn came at the same moment
            raise
        except LimitExceededError:
            self._tenants.refused(peer)
            raise
        finally:
            self._waiting.discard(task)
            self._waited_s[task] = waited_s = time.perf_counter() - begun
            self._tenants.waited(peer, waited_s)


def full_member(member_id: str, running_max: int) -> Refusal:
    """The refusal of a member at which too many statements wait.

    Args:
        member_id: The member.
        running_max: Statements that it runs at once.
    """

    def refusal(running: int, waiting: int) -> LimitExceededError:
        return LimitExceededError(
            f"{waiting} statements wait at member {member_id}, which is the most (max_waiting_statements), while"
            f" {running} run (at most {running_max}), and this connection has most of those that wait: nothing was"
            " done for this one. Try again later, run fewer statements at once, or start the cluster with a larger"
            " max_running_statements",
            limit="max_waiting_statements",
            running=running,
            waiting=waiting,
            member=member_id,
            retry_safe=True,
        )

    return refusal


@dataclass(frozen=True, slots=True)
class Admissions:
    """The admission of the statements of clients; each kind waits for its own.

    Attributes:
        long: Statements that read many rows, or rows of several members, or run in steps.
        quick: Statements over few rows of this member, or of a few partitions of several.
    """

    long: StatementAdmission
    quick: StatementAdmission

    @classmethod
    def of_member(cls, member_id: str, settings: ClusterSettings, tenants: TenantAccounts) -> Admissions:
        """Those of a member."""

        def admission(running_max: int, slots: int) -> StatementAdmission:
            refusal = full_member(member_id, running_max)
            waiting_max = settings.max_waiting_statements
            return StatementAdmission(running_max, waiting_max, refusal, slots=slots, tenants=tenants)

        slots = settings.kernel_threads
        return cls(
            long=admission(settings.max_running_statements, slots),
            quick=admission(QUICK_THREADS_MAX, _QUICK_SLOTS * slots),
        )

    def of(self, rows: int) -> StatementAdmission:
        """The admission for a statement that is one call on this member, over so many rows."""
        return self.long if is_long_over(rows) else self.quick

    def shares_changed(self) -> None:
        """Ask for the shares of all tenants again."""
        self.long.shares_changed()
        self.quick.shares_changed()

    def is_waiting(self, task: asyncio.Future[Any]) -> bool:
        """Whether the statement on which a task works waits for its turn."""
        return self.long.is_waiting(task) or self.quick.is_waiting(task)

    def waited_s(self, task: asyncio.Task[Any]) -> float:
        """Seconds for which the statement on which a task works has waited for its turn."""
        return self.long.waited_s(task) + self.quick.waited_s(task)
