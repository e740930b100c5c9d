"""What members report: ``Cluster.members()`` with the lost ones, and sizes and uses of the partitions of each table."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from secateur.cluster.controller.cluster_state import GONE, ClusterState
from secateur.cluster.peers import Peers
from secateur.partitioning.topology.owner_routing import primaries_of
from secateur.partitioning.topology.topology import MemberAddress
from secateur.protocol.membership import GetMembers, GetMemberStats, MemberCounters, MemberInfo, Members, MemberStats
from secateur.protocol.message import Message
from secateur.wire import Reply, Request

R = TypeVar("R")

_ANSWER_WAIT_S: Final = 2.0
"""Seconds that each member may take to report its contents, when all members are listed."""
_NOTHING_SAID: Final = MemberStats()


class MemberList:
    """Answers ``get_members``. Lives on the controller's event loop."""

    def __init__(self, state: ClusterState, peers: Peers) -> None:
        self._state = state
        self._peers = peers
        self._last: dict[str, MemberStats] = {}

    async def members(self, _: Request[GetMembers]) -> Reply[Members]:
        """List all members, in order."""
        return Reply(Members(await self.rows()))

    async def rows(self) -> list[MemberInfo]:
        """Ask each member for its tables and counters.

        A member that does not answer soon is listed with its last answer; one that turns out to be gone, as lost.
        """
        asked = self._state.topology.member_ids
        answers = dict(await self.ask_all(GetMemberStats()))
        self._last |= answers
        silent = [member_id for member_id in asked if member_id not in answers]
        for member_id in silent:
            await self._state.check_member(member_id)
        members = self._state.topology.members
        self._last = {member.id: self._last[member.id] for member in members if member.id in self._last}
        suspects = {*silent, *self._state.suspects}
        rows = [
            self._describe(
                member, self._last.get(member.id, _NOTHING_SAID), "suspect" if member.id in suspects else "active"
            )
            for member in members
        ]
        rows += [_describe(member, "joining") for member in self._state.joining if member not in members]
        rows += [_describe(member, "lost") for member in self._state.lost]
        return sorted(rows, key=lambda row: (len(row.id), row.id))

    async def ask_all(self, message: Message[R]) -> list[tuple[str, R]]:
        """Ask all members at once. Those that do not answer soon, or are gone, are left out."""
        members = self._state.topology.member_ids

        async def ask(member_id: str) -> R:  # nothing that nobody awaits, where it is cancelled before it begins
            async with asyncio.timeout(_ANSWER_WAIT_S):
                return await self._peers.call(member_id, message)

        answers = await asyncio.gather(*map(ask, members), return_exceptions=True)
        found: list[tuple[str, R]] = []
        for member_id, answer in zip(members, answers, strict=True):
            if isinstance(answer, (*GONE, TimeoutError)):
                continue
            if isinstance(answer, BaseException):
                raise answer
            found.append((member_id, answer))
        return found

    def _describe(self, member: MemberAddress, stats: MemberStats, state: str) -> MemberInfo:
        primaries = {
            table.table_id: set(primaries_of(self._state.topology, table, member.id))
            for table in self._state.catalog.tables()
        }
        leaving = self._state.leaving
        known = [table for table in stats.tables if table.table_id in primaries]
        served = sum(len(partitions) for partitions in primaries.values())
        return MemberInfo(
            id=member.id,
            address=f"{member.host}:{member.port}",
            node=member.node,
            state=state,
            partitions_primary=served,
            partitions_backup=max(0, sum(table.partitions for table in known) - served),
            rows=sum(
                rows
                for table in known
                for partition, rows in table.rows.items()
                if partition in primaries[table.table_id]
            ),
            bytes=sum(table.bytes for table in known),
            draining=member.id in leaving.draining or member.id in leaving.drained,
            **{name: getattr(stats, name) for name in MemberCounters.__struct_fields__},
        )


def _describe(member: MemberAddress, state: str) -> MemberInfo:
    """A member that has nothing."""
    return MemberInfo(member.id, f"{member.host}:{member.port}", member.node, state)


Answers = Iterable[tuple[str, MemberStats]]


@dataclass(slots=True)
class TableParts:
    """The size of a table on all members: rows and bytes of each partition at one copy, and the bytes of all copies."""

    rows: dict[int, int]
    partition_bytes: dict[int, int]
    bytes: int


def stored_parts(answers: Answers) -> dict[int, TableParts]:
    """Sum up the sizes of each table on all members, by table id.

    Args:
        answers: The ids of members, and their reports.
    """
    found: dict[int, TableParts] = {}
    for _, answer in answers:
        for table in answer.tables:
            parts = found.setdefault(table.table_id, TableParts({}, {}, 0))
            for partition, rows in table.rows.items():
                parts.rows[partition] = max(rows, parts.rows.get(partition, 0))
            for partition, size in table.partition_bytes.items():
                parts.partition_bytes[partition] = max(size, parts.partition_bytes.get(partition, 0))
            parts.bytes += table.bytes
    return found


class PartitionUse(NamedTuple):
    """The uses of a partition since its primary has it.

    Attributes:
        reads: Reads of statements and jobs, and look-ups of keys.
        writes: Changes, each load that was published once.
    """

    reads: int
    writes: int


class PartitionHits:
    """The uses of all partitions, as members have reported them.

    Args:
        answers: The ids of members, and their reports, with hits.
    """

    def __init__(self, answers: Answers) -> None:
        self._used = {(member, used.table_id): used for member, answer in answers for used in answer.used}

    def of(self, table_id: int, partition: int, primary: str | None) -> PartitionUse:
        """The uses of a partition at its primary, which answers all readers."""
        used = None if primary is None else self._used.get((primary, table_id))
        if used is None:
            return PartitionUse(0, 0)
        return PartitionUse(used.reads.get(partition, 0), used.writes.get(partition, 0))

    def of_replicated(self, table_id: int) -> PartitionUse:
        """The uses of a replicated table: each member answers its own readers, and all make the same changes."""
        found = [used for (_, known), used in self._used.items() if known == table_id]
        return PartitionUse(
            sum(used.reads.get(0, 0) for used in found), max((used.writes.get(0, 0) for used in found), default=0)
        )
