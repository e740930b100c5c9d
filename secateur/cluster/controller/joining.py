"""Adds a member to a cluster that has tables already.

The member gets the definitions of all tables, and the rows of replicated ones, before it counts as a member: statements
may run on it from the first moment. It owns nothing of existing partitioned tables until the rebalancing has built
copies there. While it catches up no load is published and no table changed.
"""

from __future__ import annotations

import asyncio
from typing import Final

from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.membership import MemberJoined
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.shared_lock import SharedLock
from secateur.cluster.sockets import peer_at
from secateur.errors import Error, ProgrammingError
from secateur.partitioning.tables.table import TableDefinition
from secateur.partitioning.topology.topology import MemberAddress
from secateur.protocol.catalog import CatchUp, TakeTopology
from secateur.protocol.message import Role
from secateur.wire import Peer

__all__ = ["Joining"]

_ID: Final = "m"


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

    async def _let_in(self, address: MemberAddress) -> None:
        async with self.loads.alone(), self._state.changing:
            if address.id in self._state.topology.member_ids:
                at = self._state.topology.member(address.id)
                raise ProgrammingError(f"member {address.id} is in the cluster already, at {at.host}:{at.port}")
            if self._state.catalog.tables():
                await self._catch_up(address)
            await self._state.advance(MemberJoined(address))

    async def _catch_up(self, address: MemberAddress) -> None:
        newcomer = peer_at(address.host, address.port, self._settings, name="controller", role=Role.CONTROLLER)
        try:
            await newcomer.request(TakeTopology(self._state.topology))
            for table in self._state.catalog.tables():
                await self._copy(newcomer, TableDefinition.of(table))
        finally:
            await newcomer.close()

    async def _copy(self, newcomer: Peer, table: TableDefinition) -> None:
        """Have the newcomer copy a table from a member; from another one when that is lost meanwhile.

        Raises:
            Error: As the newcomer's answer, with a source that lives.
        """
        while True:
            members = self._state.topology.member_ids
            source = members[0] if members else None
            copying = asyncio.ensure_future(newcomer.request(CatchUp(table, source)))
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
