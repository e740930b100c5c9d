"""Copies of existing tables for a member that joins, and their transfer from another member."""

from __future__ import annotations

from secateur.cluster.peers import Peers
from secateur.errors import TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.catalog import CopiedTable, CopyTable
from secateur.storage.member_store import MemberStore
from secateur.wire import Reply, Request, decode_tables, encode_table

__all__ = ["MemberCopies"]

_REPLICATED = 0
"""The only partition of a replicated table."""


class MemberCopies:
    """Answers ``copy_table``, and gets copies. Lives on the member's event loop.

    Args:
        store: The tables of this member.
        peers: The other members.
    """

    def __init__(self, store: MemberStore, peers: Peers) -> None:
        self._store = store
        self._peers = peers

    def copy_table(self, request: Request[CopyTable]) -> Reply[CopiedTable]:
        """How far a table has come here, and its rows, if it is replicated.

        Raises:
            UnknownTableError, TopologyChangedError: They are not here.
        """
        table = self._store.table(request.message.table_id)
        copied = CopiedTable(self._store.data_version(table.table_id).published)
        return (
            Reply(copied, encode_table(self._store.relation(table.table_id, [_REPLICATED])))
            if table.replicated
            else Reply(copied)
        )

    async def catch_up(self, table: TableDef, source: str | None) -> None:
        """Create a table here as another member has it: with its rows if it is replicated, else without partitions.

        A replicated table of which no member has a copy any more stays without rows here, and reading it raises an
        error.

        Args:
            table: The table.
            source: The member to ask; None when there is none.

        Raises:
            Error: The other member could not be asked.
        """
        if source is None:
            self._store.create_table(table, [])
            return
        try:
            answer = await self._peers.peer(source).request(CopyTable(table.table_id))
        except TopologyChangedError as error:
            if error.details.get("lease_ended") or not table.replicated:
                raise
            self._store.create_table(table, [])
            return
        rows = decode_tables(answer.parts) if table.replicated else None
        self._store.copy_table(table, {} if rows is None else {_REPLICATED: rows}, answer.message.published)
