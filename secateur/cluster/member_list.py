"""``Cluster.members()``: the members, what each has, and those that were lost."""

from __future__ import annotations

import asyncio
from typing import Any

from secateur.cluster.cluster_state import GONE, ClusterState
from secateur.cluster.holders import primaries_of
from secateur.cluster.membership import MemberLost
from secateur.cluster.peers import Peers
from secateur.partitioning.topology import MemberAddress
from secateur.wire import Reply, Request

__all__ = ["MemberList"]


class MemberList:
    """Answers ``members``. Lives on the controller's event loop.

    Args:
        state: Who they are.
        peers: The way to them.
    """

    def __init__(self, state: ClusterState, peers: Peers) -> None:
        self._state = state
        self._peers = peers

    async def members(self, _: Request) -> Reply:
        """All of them, in order."""
        return Reply({"members": await self.rows()})

    async def rows(self) -> list[dict[str, Any]]:
        """Ask each for what it has. Who turns out to be gone is among the lost."""
        addresses = self._state.topology.members
        answers = await asyncio.gather(*(self._peers.call(member.id, "stats", {}) for member in addresses), return_exceptions=True)
        rows = []
        for member, answer in zip(addresses, answers, strict=True):
            if isinstance(answer, GONE):
                await self._state.change(MemberLost(member.id))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                rows.append(self._describe(member, answer))
        rows.extend(_describe_lost(member) for member in self._state.lost)
        return sorted(rows, key=lambda row: (len(row["id"]), row["id"]))

    def _describe(self, member: MemberAddress, stats: dict[str, Any]) -> dict[str, Any]:
        primaries = {table.table_id: set(primaries_of(self._state.topology, table, member.id)) for table in self._state.catalog.tables()}
        known = [table for table in stats["tables"] if table["table_id"] in primaries]
        served = sum(len(partitions) for partitions in primaries.values())
        return {
            "id": member.id,
            "address": f"{member.host}:{member.port}",
            "state": "active",
            "partitions_primary": served,
            "partitions_backup": sum(table["partitions"] for table in known) - served,
            "rows": sum(rows for table in known for partition, rows in table["rows"].items() if partition in primaries[table["table_id"]]),
            "bytes": sum(table["bytes"] for table in known),
            "executions": stats["executions"],
            "frames_received": stats["frames_received"],
        }


def _describe_lost(member: MemberAddress) -> dict[str, Any]:
    counters = dict.fromkeys(("partitions_primary", "partitions_backup", "rows", "bytes", "executions", "frames_received"), 0)
    return {"id": member.id, "address": f"{member.host}:{member.port}", "state": "lost", **counters}
