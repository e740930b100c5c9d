"""Write latches: keep direct writes of a table apart from the publication of a load into it.

A write reaches the primary at one moment and each backup at another. If a load were published in between, the copies
would apply the two in different orders. So a member that prepares a load first lets its running writes reach their
backups and starts no new ones until the load is published or aborted.

The latch of the primary opens when the primary has published. A write that follows at once may reach a backup that has
not published yet: it says which load was published before it, and waits there for that load
(:meth:`secateur.cluster.member.replication.received_changes.ReceivedChanges.write_copy`).

**Invariant**: while the latch of a table is closed, none of its writes is on its way from this primary to a backup.

The holder of a latch has a lease on it, which the controller renews (:class:`LoadLeases`). Which latches open again
when it does not, and with which outcome of their loads, is decided by :mod:`secateur.cluster.termination_protocol`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from secateur.cluster.loop_thread import BackgroundTasks
from secateur.cluster.peers import MemberCaller
from secateur.cluster.termination_protocol import LEASE_RENEWED_S, Ask, Silence, TerminationProtocol
from secateur.errors import InterfaceError, LoadFailedError, OperationalError
from secateur.protocol import changes
from secateur.protocol.message import Acknowledged
from secateur.wire import Reply, Request


class WriteLatch:
    """The latch of one table on one member. Lives on the member's event loop.

    Args:
        table: Name of the table, for messages.
        wait_max_s: Seconds that a write waits for it to open.

    Attributes:
        is_closed: Whether writes have to wait.
    """

    def __init__(self, table: str, wait_max_s: float) -> None:
        self._wait_max_s = wait_max_s
        self._table = table
        self._writes = 0
        self._holders: set[str] = set()
        self.is_closed = False
        self._opened = asyncio.Event()
        self._drained = asyncio.Event()

    async def wait_open(self) -> None:
        """Wait until the latch is open.

        Raises:
            LoadFailedError: It has been held for too long; nothing was written.
        """
        try:
            async with asyncio.timeout(self._wait_max_s):
                while self._holders:
                    self._opened.clear()
                    await self._opened.wait()
        except TimeoutError as error:
            raise LoadFailedError(
                f"{self._table}: load or change {' and '.join(sorted(self._holders))} has held back writes"
                f" for more than {self._wait_max_s:g} s; nothing was written, try again",
                table=self._table,
            ) from error

    def begin(self) -> None:
        """A write is on its way from now on, until :meth:`end`.

        To be called while the latch is open, or another write is on its way.
        """
        self._writes += 1

    def end(self, _: object = None) -> None:
        """A write has reached its backups, or was not made; it may be called by a future that is done then."""
        self._writes -= 1
        if not self._writes:
            self._drained.set()

    async def close(self, holder: str) -> None:
        """Let the running writes end, and no new ones begin, until :meth:`open` is called for the same holder."""
        self._holders.add(holder)
        self.is_closed = True
        while self._writes:
            self._drained.clear()
            await self._drained.wait()

    def open(self, holder: str) -> None:
        """The load has been published or aborted. Nothing happens when it never closed the latch."""
        self._holders.discard(holder)
        self.is_closed = bool(self._holders)
        if not self.is_closed:
            self._opened.set()


_log = logging.getLogger(__name__)

_NO_CONNECTION = -1


class LoadLeases:
    """Carries out what a :class:`~secateur.cluster.termination_protocol.TerminationProtocol` decides.

    Lives on the member's event loop.

    Args:
        protocol: The loads whose latches are closed: none yet.
    """

    def __init__(self, protocol: TerminationProtocol, members: MemberCaller) -> None:
        self._protocol = protocol
        self._members = members
        self._latches: dict[str, WriteLatch] = {}
        self._opened = asyncio.Event()
        self._asking = BackgroundTasks()
        self._timer: asyncio.TimerHandle | None = None

    # -- for the requests of the controller

    async def close(self, load_id: str, table_id: int, latch: WriteLatch, connection_id: int) -> None:
        """Close the latch of a table for a load, from now until :meth:`release`; returns when no write is on its way.

        Raises:
            LoadFailedError: The load has closed the latch of another table.
        """
        self._protocol.closed(load_id, table_id, connection_id, _now_s())
        self._latches[load_id] = latch
        self._carry_out()
        await latch.close(load_id)

    def release(self, load_id: str) -> None:
        """The load has ended, or has not begun: open its latch."""
        self._protocol.released(load_id)
        self._carry_out()

    def renew(self, request: Request[changes.HoldLoad]) -> Reply[Acknowledged]:
        """The controller still works on a load."""
        self._protocol.renewed(request.message.load_id, request.peer.connection_id, _now_s())
        return Reply(Acknowledged())

    def connection_gone(self, connection_id: int) -> None:
        """The process that closed latches over this connection may be gone."""
        self._protocol.connection_gone(connection_id, _now_s())
        self._carry_out()

    def controller_replaced(self) -> None:
        """Another controller has taken over: members decide what the one before had begun."""
        self._protocol.controller_replaced(_now_s())
        self._carry_out()

    async def settle_prepared(self, loads: Mapping[str, tuple[int, WriteLatch]]) -> None:
        """Have the members decide loads that were prepared before this one was started anew; returns when they have.

        Args:
            loads: Table and latch of each load.
        """
        for load_id, (table_id, latch) in loads.items():
            self._protocol.closed(load_id, table_id, _NO_CONNECTION, _now_s())
            self._latches[load_id] = latch
            await latch.close(load_id)
        self.controller_replaced()
        while any(self._protocol.holds(load_id) for load_id in loads):
            await self._opened.wait()

    async def settle_held(self) -> None:
        """Have the members decide everything that closes a latch here; returns when they have."""
        self.controller_replaced()
        while self._latches:
            await self._opened.wait()

    @property
    def held(self) -> int:
        """The number of closed latches."""
        return len(self._latches)

    def holds(self, load_id: str) -> bool:
        """Whether a load closes a latch."""
        return load_id in self._latches

    async def decided(self, load_id: str) -> None:
        """Return at once for a load that is not in doubt; else when the members have decided it."""
        while self._protocol.is_in_doubt(load_id):
            await self._opened.wait()

    # -- for the requests of other members

    def standing(self, request: Request[changes.StandingOfLoad]) -> Reply[changes.StandingAnswer]:
        """Return how far a load is here, for the member that decides.

        The controller's later requests for the load are refused.
        """
        return Reply(self.asked(request.message.load_id))

    def asked(self, load_id: str) -> changes.StandingAnswer:
        """Answer as :meth:`standing` does."""
        standing = self._protocol.standing(load_id)
        self._carry_out()
        return standing

    def decide(self, request: Request[changes.DecideLoad]) -> Reply[changes.LoadVerdict]:
        """Decide a load that a member has in doubt; called on the first living member.

        Returns the decision once it is known.
        """
        decided, asks = self._protocol.decide(request.message.load_id)
        self._carry_out(asks)
        return Reply(decided)

    def settle(self, request: Request[changes.SettleLoad]) -> Reply[Acknowledged]:
        """A load in doubt was decided."""
        self.settled(request.message)
        return Reply(Acknowledged())

    def settled(self, told: changes.SettleLoad) -> None:
        """Take a decision as :meth:`settle` does."""
        self._protocol.settled(told.load_id, changes.LoadVerdict(True, told.published, told.number, told.rows))
        self._carry_out()

    async def stop(self) -> None:
        """Cancel the requests that are under way."""
        if self._timer is not None:
            self._timer.cancel()
        await self._asking.close()

    # --

    def _carry_out(self, asks: Iterable[Ask] = ()) -> None:
        """Send requests, open the latches that are not held any more, and look again when it is time to."""
        for ask in asks:
            self._asking.start(self._ask(ask))
        for load_id in [load_id for load_id in self._latches if not self._protocol.holds(load_id)]:
            self._latches.pop(load_id).open(load_id)
            self._opened.set()
            self._opened = asyncio.Event()
        if self._timer is not None:
            self._timer.cancel()
        due_s = self._protocol.due_s
        self._timer = None if due_s is None else asyncio.get_running_loop().call_at(due_s, self._look)

    def _look(self) -> None:
        self._carry_out(self._protocol.look(_now_s()))

    async def _ask(self, ask: Ask) -> None:
        answer: Any = Silence.OUT_OF_REACH
        try:
            answer = await self._members.call(ask.member, ask.message)
        except (OperationalError, InterfaceError) as error:
            if isinstance(error.__cause__, ConnectionRefusedError):
                answer = Silence.ENDED
        except Exception:  # whatever it was, the load has to be decided
            _log.exception("%s did not answer %s", ask.member, ask.message)
        self._carry_out(self._protocol.answered(ask, answer, _now_s()))


def _now_s() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def renewed(caller: MemberCaller, members: Iterable[str], lease: changes.HoldLoad) -> AsyncIterator[None]:
    """Renew the leases of a load or change at these members, as long as it may have closed latches there.

    Args:
        caller: How to reach the members.
        members: Their ids.
        lease: The request that renews a lease.
    """
    loop = asyncio.get_running_loop()
    renewing = [loop.create_task(_renew(caller, member, lease)) for member in members]
    try:
        yield
    finally:
        for task in renewing:
            task.cancel()


async def _renew(caller: MemberCaller, member: str, lease: changes.HoldLoad) -> None:
    while True:
        await asyncio.sleep(LEASE_RENEWED_S)
        try:
            await caller.call(member, lease)
        except Exception as error:  # the next one may arrive
            _log.info("the lease of %s was not renewed at %s: %s", lease.load_id, member, error)
