"""Writes of a job's processors, from their threads, to any partition of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from secateur.cluster.controller_requests import ControllerRequests
from secateur.cluster.member.changes.change_registry import RecordedChange
from secateur.cluster.member.changes.writes import MemberWrites
from secateur.cluster.peers import Peers
from secateur.partitioning.tables.split import split
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.catalog import MakeRanges
from secateur.protocol.changes import WriteRows
from secateur.storage.change import load_mode
from secateur.wire import encode_table

_AT_ONCE: Final = 8
"""Writes of one call that are on their way together: enough to hide the way to another member, few enough to leave its
loop to others.
"""


class JobWrites:
    """The member's :class:`~secateur.engine.runtime.services.RowsWriter`.

    Made on the event loop of the member, called from other threads.

    Args:
        member_id: This member.
        writes: Its own partitions.
        peers: The other members.
        controller: Makes ranges on demand.
        table: Finds a table by name, as it is now.
        topology: Gives the newest topology.
    """

    def __init__(
        self,
        member_id: str,
        writes: MemberWrites,
        peers: Peers,
        controller: ControllerRequests,
        table: Callable[[str], TableDef],
        topology: Callable[[], Topology],
    ) -> None:
        self._member_id = member_id
        self._writes = writes
        self._peers = peers
        self._controller = controller
        self._table = table
        self._topology = topology
        self._loop = asyncio.get_running_loop()

    def __call__(self, table: TableDef, rows: pa.Table, mode: str, change_id: str) -> int:
        """See :class:`~secateur.engine.runtime.services.RowsWriter`."""
        table = self._with_ranges_for(self._table(table.name), rows)
        return asyncio.run_coroutine_threadsafe(
            self._write_all(table, split(rows, table), mode, change_id), self._loop
        ).result()

    def _with_ranges_for(self, table: TableDef, rows: pa.Table) -> TableDef:
        """The table once it has the ranges that the rows need; every member has them by then, this one too."""
        cells = table.scheme.missing_cells(rows)
        if not cells:
            return table
        request = self._controller.request(MakeRanges(table.name, table.table_id, sorted(cells)))
        asyncio.run_coroutine_threadsafe(request, self._loop).result()
        return self._table(table.name)

    async def _write_all(self, table: TableDef, parts: Mapping[int, pa.Table], mode: str, change_id: str) -> int:
        slots = asyncio.Semaphore(_AT_ONCE)

        async def write(partition: int, rows: pa.Table) -> int:
            async with slots:
                return await self._write(table, partition, rows, mode, f"{change_id}/{partition}")

        outcomes = await asyncio.gather(
            *(write(partition, rows) for partition, rows in parts.items()), return_exceptions=True
        )
        written = 0
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            written += outcome
        return written

    async def _write(self, table: TableDef, partition: int, rows: pa.Table, mode: str, change_id: str) -> int:
        topology, operation = self._topology(), load_mode(mode)
        primary = topology.ownership(table.scheme.affinity_group()).primary(partition)
        if primary == self._member_id:

            async def make() -> RecordedChange:
                return self._writes.apply(table.table_id, partition, operation, rows, change_id)[0]

            return await self._writes.write_once(table.table_id, partition, change_id, make)
        return (
            await self._peers.call(primary, WriteRows(table.table_id, partition, mode, change_id), encode_table(rows))
        ).rows
