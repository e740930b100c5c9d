"""What the controller knows: the tables, the members, and who owns what; and how the members hear of it.

Everything else at the controller reads it from here at the moment it needs it. Changes go one after the other, under :attr:`ClusterState.changing`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from secateur.cluster.catalog import Catalog
from secateur.cluster.membership import Event, MemberLost, advance
from secateur.cluster.peers import Peers
from secateur.errors import MemberLostError, OperationalError, UnreachableError
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.wire import pack

__all__ = ["GONE", "ClusterState"]

GONE: Final = (MemberLostError, UnreachableError)
"""A connection that breaks or is refused means a dead process. A late answer does not: the member may only be busy."""


class ClusterState:
    """Catalog and topology. Lives on the controller's event loop.

    Args:
        peers: The way to the members.
        on_lost: Is told the id of each member that left.

    Attributes:
        catalog: The tables; replaced as a whole by whoever holds :attr:`changing`.
        changing: Held by whoever changes catalog or topology, from reading what is there to the end of the change.
    """

    def __init__(self, peers: Peers, on_lost: Callable[[str], None]) -> None:
        self._peers = peers
        self._on_lost = on_lost
        self._topology = Topology(1, (), {})
        self._lost: dict[str, MemberAddress] = {}
        self.catalog = Catalog()
        self.changing = asyncio.Lock()

    @property
    def topology(self) -> Topology:
        """Members and owners."""
        return self._topology

    @property
    def lost(self) -> list[MemberAddress]:
        """The members that have left and not come back."""
        return list(self._lost.values())

    async def change(self, event: Event) -> None:
        """Wait for changes under way, then :meth:`advance`."""
        async with self.changing:
            await self.advance(event)

    async def advance(self, event: Event) -> None:
        """Take over the next topology and send it to the members; only while holding :attr:`changing`.

        A member that cannot be reached then is found by the controller's watch.
        """
        before, self._topology = self._topology, advance(self._topology, event)
        if self._topology is before:
            return
        gone = {member.id: member for member in before.members if member.id not in self._topology.member_ids}
        self._lost.update(gone)
        for member_id in self._topology.member_ids:
            self._lost.pop(member_id, None)
        self._peers.update(self._topology)
        for member_id in gone:
            self._on_lost(member_id)
        payload = pack(self._topology.to_wire())
        outcomes = await asyncio.gather(
            *(self._peers.call(member_id, "topology", {}, payload) for member_id in self._topology.member_ids), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, OperationalError):
                raise outcome

    async def check_member(self, member_id: str) -> None:
        """Find out now whether a member is alive, rather than at the next look of the watch."""
        try:
            await self._peers.call(member_id, "ping", {})
        except GONE:
            await self.change(MemberLost(member_id))
        except OperationalError:
            pass  # late, not dead
