"""Copies of existing tables for a member that joins, and their transfer from another member."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from secateur.cluster.member.tables.alterations import check_catch_all, cuts_catch_all
from secateur.cluster.peers import Peers
from secateur.errors import PartitionLostError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.catalog import CopiedTable, CopyTable
from secateur.storage.member_store import MemberStore
from secateur.wire import Reply, Request, decode_tables, encode_table

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
        """Return the number of the last publication of a table here, and the rows of a replicated table.

        Raises:
            UnknownTableError, TopologyChangedError, PartitionLostError: They are not here.
        """
        table = self._store.table(request.message.table_id)
        copied = CopiedTable(self._store.data_version(table.table_id).published)
        return (
            Reply(copied, encode_table(self._store.relation(table.table_id, [_REPLICATED])))
            if table.replicated
            else Reply(copied)
        )

    async def catch_up(
        self,
        table: TableDef,
        sources: Sequence[str],
        *,
        last_owned: Collection[int] = (),
        is_current: bool,
        newest: int = 0,
    ) -> bool:
        """Have a table as another member has it: with its rows if it is replicated.

        Of a table with partitions, those that are here stay, and others do not come. A replicated table of which no
        member has a copy any more has no rows here, and reading it raises an error.

        Args:
            table: The table.
            sources: The members to ask, until one has it.
            last_owned: The partitions of which this member is the primary, or was the last owner.
            is_current: Whether rows of a replicated table that are here are those of now.
            newest: The number of the last publication of a table that no other member has, from which versions of its
                data go on; 0 if that is not known.

        Returns:
            Whether the rows of a replicated table are here; True for any other.

        Raises:
            SchemeError: The table has new ranges, whose rows are in a DEFAULT PARTITION here.
            Error: The other member could not be asked.
        """
        self._follow_ranges(table, last_owned)
        if table.replicated and is_current and self._has_rows(table):
            return True
        for source in sources:
            with suppress(PartitionLostError):  # it has no rows of a replicated table either
                answer = await self._peers.peer(source).request(CopyTable(table.table_id))
                rows = {_REPLICATED: decode_tables(answer.parts)} if table.replicated else {}
                self._store.copy_table(table, rows, answer.message.published)
                return True
        if table.replicated:
            self._store.drop_partition(table.table_id, _REPLICATED)
        if not newest and self._store.find(table.table_id) is not None:
            newest = self._store.data_version(table.table_id).published
        self._store.copy_table(table, {}, newest)
        return not table.replicated

    def _has_rows(self, table: TableDef) -> bool:
        return self._store.find(table.table_id) is not None and _REPLICATED in self._store.hosted(table.table_id)

    def _follow_ranges(self, table: TableDef, last_owned: Collection[int]) -> None:
        """Take over the ranges that a table has by now, if it is here.

        Of new ranges the member has those partitions, empty, of which it was the last owner: it left the cluster before
        it was told to make them, so nobody has ever written to them.
        """
        before = self._store.find(table.table_id)
        if before is None or before.version == table.version:
            return
        live = table.scheme.live_partitions().tolist()
        new = set(live).difference(before.scheme.live_partitions().tolist()).intersection(last_owned)
        partitions = sorted(new.union(set(self._store.hosted(table.table_id)).intersection(live)))
        if cuts_catch_all(before, table):
            rest = {
                number: self._store.partition(table.table_id, number).snapshot()
                for number in partitions
                if table.scheme.is_catch_all(number)
            }
            check_catch_all(table, rest)
        self._store.alter_table(table, partitions)
