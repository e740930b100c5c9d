"""Adds a member to a cluster that has tables already.

The member gets the definitions of all tables, and the rows of replicated ones, before it counts as a member: statements
may run on it from the first moment. It owns nothing of existing partitioned tables until the rebalancing has built
copies there. While it catches up no load is published and no table changed.

A member that was given up although it lives comes back with its data if it was the last owner of some partition: nobody
else can have accepted a write to that since. Everything else that it has counts for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.encoded_table import encoded_table
from secateur.cluster.controller.membership import MemberJoined, MemberReturned, absent_owners
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.shared_lock import SharedLock
from secateur.cluster.sockets import peer_at
from secateur.errors import Error, ProgrammingError
from secateur.partitioning.topology.topology import MemberAddress
from secateur.protocol.catalog import AdoptViews, CatchUp, DropStoredTable, TakeTopology
from secateur.protocol.message import Role
from secateur.protocol.recovery import BeginReturn
from secateur.wire.peer import Peer

__all__ = ["Joining"]

_ID: Final = "m"
_SILENCES_MAX: Final = 4
"""A member that joins may be silent for so many times ``member_silence_s``: loads and changes of tables wait for it."""


class Joining:
    """Lets members in. Lives on the controller's event loop.

    Args:
        state: Tables, members and owners.
        settings: The settings of the cluster.

    Attributes:
        loads: A shared lock that every publication holds; members join while there is none.
    """

    def __init__(self, state: ClusterState, settings: ClusterSettings) -> None:
        self._state = state
        self._settings = settings
        self._left_at: dict[str, int] = {}
        self.loads = SharedLock()

    def new_id(self) -> str:
        """An id that no member has had."""
        self._state.last_member += 1
        return f"{_ID}{self._state.last_member}"

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
            await self._let_in(address)
        finally:
            self._state.joining.remove(address)

    def member_left(self, member_id: str, last_load: int) -> None:
        """A member has left; ``last_load`` is the number of the last load that was begun before."""
        # Loads are numbered upwards: a member that has missed one will never be current again.
        self._left_at = {other: load for other, load in self._left_at.items() if load == last_load}
        self._left_at[member_id] = last_load

    async def let_back(self, address: MemberAddress, last_load: Callable[[], int]) -> bool:
        """Let a member that has left in again, with the partitions of which it was the last owner.

        Args:
            address: The member.
            last_load: Gives the number of the last load that was begun.

        Returns:
            Whether it is a member now; False if others have everything that it has: it is to drop that.

        Raises:
            Error: It could not catch up; it is no member.
        """
        state = self._state
        if address.id in state.topology.member_ids and address not in state.topology.members:
            await state.give_up(address.id)  # its process has ended, and was started again
        async with self.loads.alone(), state.changing:
            if address in state.topology.members:
                return True
            if state.topology.members and address.id not in absent_owners(state.topology):
                return False
            is_current = self._left_at.get(address.id) == last_load()
            if not await self._bring_up_to_date(address, is_current=is_current):
                return False
            await state.advance(MemberReturned(address))
            self._left_at.pop(address.id, None)
            return True

    async def _bring_up_to_date(self, address: MemberAddress, *, is_current: bool) -> bool:
        """Have a member that returns drop what is outdated, and get what it missed; False if it has lost its data."""
        state = self._state
        returning = self._peer(address)
        try:
            report = (await returning.request(BeginReturn(state.topology))).message
            if report.damage:
                return False
            there_are = {table.table_id for table in state.catalog.tables()}
            for held in report.tables:
                if held.table_id not in there_are:
                    await returning.request(DropStoredTable(held.table_id))
            for table in state.catalog.tables():
                await self._copy(returning, await encoded_table(table), is_current=is_current)
            await returning.request(AdoptViews(state.catalog.version, state.catalog.adopted_ids))
        finally:
            await returning.close()
        return True

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
            if self._state.catalog.tables():
                await self._catch_up(address)
            await self._state.advance(MemberJoined(address))

    async def _catch_up(self, address: MemberAddress) -> None:
        newcomer = self._peer(address)
        try:
            await newcomer.request(TakeTopology(self._state.topology))
            for table in self._state.catalog.tables():
                await self._copy(newcomer, await encoded_table(table))
        finally:
            await newcomer.close()

    async def _copy(self, newcomer: Peer, table: bytes, *, is_current: bool = False) -> None:
        """Have the newcomer copy a table from a member; from another one when that is lost meanwhile.

        Raises:
            Error: As the newcomer's answer, with a source that lives.
        """
        while True:
            members = self._state.topology.member_ids
            source = members[0] if members else None
            copying = asyncio.ensure_future(newcomer.request(CatchUp(table, source, is_current)))
            try:
                while not copying.done() and (source is None or source in self._state.topology.member_ids):
                    await asyncio.wait([copying], timeout=self._settings.lease_times.interval_s)
                if copying.done():
                    await copying
                    return
            except Error:
                if source is None or await self._state.still_there(source):
                    raise
            finally:
                copying.cancel()
