"""Adds a member to a cluster that has tables already.

The member gets the definitions of all tables, and the rows of replicated ones, before it counts as a member: statements
may run on it from the first moment. It owns nothing of existing partitioned tables until the rebalancing has built
copies there. While it catches up no load is published and no table changed.

A member that was given up although it lives comes back with its data if it was the last owner of some partition: nobody
else can have accepted a write to that since. So does one that has the rows of a replicated table which no member has,
if it has published the last load of it. Everything else that it has counts for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from secateur.cluster.controller.catalog import encoded_table
from secateur.cluster.controller.cluster_state import ClusterState, answers_of
from secateur.cluster.controller.disk_losses import lost_by
from secateur.cluster.controller.membership import MemberJoined, MemberReturned, absent_owners
from secateur.cluster.controller.publication_numbers import PublicationNumbers
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import peer_at
from secateur.errors import Error, ProgrammingError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import MemberAddress
from secateur.protocol.catalog import AdoptViews, CatchUp, DropStoredTable, TakeTopology
from secateur.protocol.changes import SettleLoad
from secateur.protocol.message import Role
from secateur.protocol.recovery import BeginReturn, GetReport, MemberReport
from secateur.wire.peer import Peer

_ID: Final = "m"
_SILENCES_MAX: Final = 4
"""A member that joins may be silent for so many times ``member_silence_s``: loads and changes of tables wait for it."""


class Joining:
    """Lets members in. Lives on the controller's event loop.

    Attributes:
        loads: A shared lock that every publication holds; members join while there is none.
    """

    def __init__(self, state: ClusterState, settings: ClusterSettings, numbers: PublicationNumbers) -> None:
        self._state = state
        self._settings = settings
        self._numbers = numbers
        self.loads = _SharedLock()
        self._may_lack_rows = True  # a controller that starts anew does not know

    async def new_id(self) -> str:
        """An id that no member has had, and that no later controller gives to another."""
        self._state.last_member += 1
        new = f"{_ID}{self._state.last_member}"
        await self._state.recorded()
        return new

    async def join(self, address: MemberAddress) -> None:
        """Let a member in; returns when every member knows it.

        Raises:
            ProgrammingError: Its id is taken.
            Error: It could not catch up; it is no member.
        """
        number = address.id.removeprefix(_ID)
        if number.isascii() and number.isdecimal():
            self._state.last_member = max(self._state.last_member, int(number))
        self._state.joining.append(address)
        try:
            await self._numbers.settled()  # a load that members publish meanwhile would pass the newcomer by
            await self._let_in(address)
        finally:
            self._state.joining.remove(address)

    async def may_return(self) -> tuple[str, ...]:
        """The members that have left and may have what nobody else has, ascending."""
        wanted = set(absent_owners(self._state.topology))
        lost: Collection[int] = ()
        ended = [member_id for member_id in self._ids() if not self._state.has_member(member_id)]
        if ended and (self.may_lack_rows or not self._state.topology.members):
            async with self.loads.alone(), self._state.changing:
                with suppress(Error):  # a member is lost just now
                    lost = await self.share_rows()
                if lost:
                    wanted.update(ended)
        return tuple(sorted(wanted))

    def _ids(self) -> Iterator[str]:
        """All ids that members have had: a controller that starts anew does not know which were lost."""
        return (f"{_ID}{number}" for number in range(1, self._state.last_member + 1))

    @property
    def may_lack_rows(self) -> bool:
        """Whether a member may lack the rows of a replicated table, so that :meth:`share_rows` can do something."""
        return self._may_lack_rows and bool(self._replicated())

    async def share_rows(self) -> frozenset[int]:
        """Have members that lack the rows of a replicated table get them from one that has them.

        Such a member has joined when nobody had them, and somebody has come back with them since. Only while no load is
        published and no table changed. Costs a round trip for each replicated table, besides the rows.

        Returns:
            The origins of the tables whose rows nobody has.

        Raises:
            Error: A member could not be asked, or could not get the rows.
        """
        members = self._state.topology.member_ids
        lost = frozenset([table.origin for table in self._replicated() if not await self._have_shared(table, members)])
        self._may_lack_rows = bool(lost)
        return lost

    async def _have_shared(self, table: TableDef, members: tuple[str, ...]) -> bool:
        """Have each of these members get the rows of a table from the others; whether one of them has them."""
        definition = await encoded_table(table)

        def catching_up(member_id: str) -> CatchUp:
            others = tuple(other for other in members if other != member_id)
            return self._catching_up(table, definition, others, is_current=True)

        return any(answer.has_rows for answer in answers_of(await self._state.call_all(catching_up, members)))

    def _replicated(self) -> list[TableDef]:
        return [table for table in self._state.catalog.tables() if table.replicated]

    async def let_back(self, address: MemberAddress) -> bool:
        """Let a member that has left in again, with the partitions of which it was the last owner.

        Returns:
            Whether it is a member now; False if others have everything that it has: it is to drop that.

        Raises:
            Error: It could not catch up; it is no member.
        """
        state = self._state
        if address.id in state.topology.member_ids and address not in state.topology.members:
            await state.give_up(address.id)  # its process has ended, and was started again
        await self._numbers.settled()
        async with self.loads.alone(), state.changing:
            if address in state.topology.members:
                return True
            self._pass_doubt()
            is_last_owner = not state.topology.members or address.id in absent_owners(state.topology)
            lost: Collection[int] = ()
            if not is_last_owner or self._numbers.are_in_doubt:
                lost = await self.share_rows()
            if not (is_last_owner or lost):
                return False
            brought = await self._bring_up_to_date(address, lost, is_last_owner=is_last_owner)
            if brought is None:
                return False
            await state.advance(MemberReturned(address))
            self._numbers.came(address.id)
            for origin, published in brought.items():
                self._numbers.made(origin, published)
            return True

    async def _bring_up_to_date(
        self, address: MemberAddress, lost: Collection[int], *, is_last_owner: bool
    ) -> Mapping[int, int] | None:
        """Have a member that returns drop what is outdated, and get what it missed.

        Args:
            address: The member.
            lost: The origins of the replicated tables whose rows no member has, as far as that was found out.
            is_last_owner: Whether it is to come even if it has none of these.

        Returns:
            The last publication of those tables that it alone has; None if it has lost its data, or has nothing that
            others lack.
        """
        state = self._state
        returning = self._peer(address)
        try:
            last_loads = self._numbers.told(address.id)
            settled = tuple(SettleLoad(load.load_id, True, load.number) for load in last_loads.values() if load.load_id)
            report = (await returning.request(BeginReturn(state.topology, settled))).message
            current = {
                held.origin: held.published
                for held in report.tables
                if self._numbers.is_current(held.origin, held.published, has_holders=held.origin not in lost)
            }
            brought = {origin: current[origin] for origin in lost if origin in current}
            damage = report.damage or lost_by(report, state.catalog.tables(), state.topology, last_loads)
            if damage:
                state.events.add("data_directory_damaged", address.id, damage)
            if damage or not (is_last_owner or brought):
                return None
            await self._drop_unknown(returning, report)
            for table in state.catalog.tables():
                await self._copy(returning, table, is_current=table.origin in current)
            await returning.request(AdoptViews(state.catalog.version, state.catalog.adopted_ids))
        finally:
            await returning.close()
        return brought

    def _peer(self, address: MemberAddress) -> Peer:
        settings = self._settings
        patience_s = min(settings.start_timeout_s, _SILENCES_MAX * settings.member_silence_s)
        return peer_at(
            address.host, address.port, settings, name="controller", role=Role.CONTROLLER, timeout_s=patience_s
        )

    async def _let_in(self, address: MemberAddress) -> None:
        async with self.loads.alone(), self._state.changing:
            if address in self._state.topology.members:
                return  # it asks again: it did not get the answer
            if address.id in self._state.topology.member_ids:
                at = self._state.topology.member(address.id)
                raise ProgrammingError(f"member {address.id} is in the cluster already, at {at.host}:{at.port}")
            self._pass_doubt()
            if self._state.catalog.tables():
                await self._catch_up(address)
            await self._state.advance(MemberJoined(address))

    def _pass_doubt(self) -> None:
        """Before the first member comes to a cluster without any."""
        if not self._state.topology.members:
            for table in self._state.catalog.tables():
                if not table.replicated:  # of those that are, the number says which rows are those of now
                    self._numbers.pass_doubt(table.origin)

    async def _catch_up(self, address: MemberAddress) -> None:
        newcomer = self._peer(address)
        try:
            await newcomer.request(TakeTopology(self._state.topology))
            # It may have caught up for a controller that ended before it was let in.
            await self._drop_unknown(newcomer, (await newcomer.request(GetReport())).message)
            for table in self._state.catalog.tables():
                await self._copy(newcomer, table)
        finally:
            await newcomer.close()

    async def _drop_unknown(self, member: Peer, report: MemberReport) -> None:
        """Have a member drop the tables that were dropped while it was none."""
        there_are = {table.origin for table in self._state.catalog.tables()}
        for held in report.tables:
            if held.origin not in there_are:
                await member.request(DropStoredTable(held.table_id))

    def _catching_up(
        self, table: TableDef, definition: bytes, sources: tuple[str, ...], *, is_current: bool
    ) -> CatchUp:
        return CatchUp(definition, sources, is_current, self._numbers.newest(table.origin))

    async def _copy(self, newcomer: Peer, table: TableDef, *, is_current: bool = False) -> None:
        """Have the newcomer copy a table from a member; from one of those that are left when one is lost meanwhile.

        Raises:
            Error: As the newcomer's answer, while all members live.
        """
        definition = await encoded_table(table)
        while True:
            members = self._state.topology.member_ids
            catching_up = self._catching_up(table, definition, members, is_current=is_current)
            copying = asyncio.ensure_future(newcomer.request(catching_up))
            try:
                while not copying.done() and self._state.topology.member_ids == members:
                    await asyncio.wait([copying], timeout=self._settings.lease_times.interval_s)
                if copying.done():
                    self._may_lack_rows |= not (await copying).message.has_rows
                    return
            except Error:
                if all(await asyncio.gather(*(self._state.still_there(member) for member in members))):
                    raise
            finally:
                copying.cancel()


class _SharedLock:
    """A lock for tasks with many shared holders, or one exclusive holder. Lives on one event loop.

    Who waits to hold it exclusively comes before those who come later to share it, so no holder may ask to share it
    again.
    """

    def __init__(self) -> None:
        self._holders = 0
        self._waiting = 0
        self._is_alone = False
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Hold it together with others."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._is_alone and not self._waiting)
            self._holders += 1
        try:
            yield
        finally:
            async with self._changed:
                self._holders -= 1
                self._changed.notify_all()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Hold it without others."""
        async with self._changed:
            self._waiting += 1
            try:
                await self._changed.wait_for(lambda: not self._is_alone and not self._holders)
                self._is_alone = True
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            async with self._changed:
                self._is_alone = False
                self._changed.notify_all()
