"""The controller's requests about the tables that a member stores: to create, alter, catch up with and drop them."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Executor
from contextlib import suppress

from secateur.cluster.member.alterations import (
    MemberAlterations,
    check_catch_all,
    cuts_catch_all,
    resolved_table,
)
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.replication.built_copies import BuiltCopies
from secateur.cluster.member.replication.replication import Replication, owned_by
from secateur.cluster.peers import Peers
from secateur.errors import PartitionLostError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol import catalog
from secateur.protocol.catalog import CatchUp, CopiedTable, CopyTable
from secateur.protocol.message import Acknowledged
from secateur.storage.member_store import MemberStore
from secateur.wire import Reply, Request, decode_tables, encode_table

_REPLICATED = 0
"""The only partition of a replicated table."""


class MemberCopies:
    """Answers ``copy_table``, and gets copies. Lives on the member's event loop.

    They are copies of existing tables, for a member that joins; another member has the rows.
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

    async def catch_up(self, table: TableDef, asked: CatchUp, last_owned: Collection[int] = ()) -> bool:
        """Have a table as another member has it: with its rows if it is replicated.

        Of a table with partitions, those that are here stay, and others do not come. A replicated table of which no
        member has a copy any more has no rows here, and reading it raises an error.

        Args:
            table: The table of the request.
            asked: The request.
            last_owned: The partitions of which this member is the primary, or was the last owner.

        Returns:
            Whether the rows of a replicated table are here; True for any other.

        Raises:
            SchemeError: The table has new ranges, whose rows are in a DEFAULT PARTITION here.
            Error: The other member could not be asked.
        """
        self._follow_ranges(table, last_owned)
        if table.replicated and asked.is_current and self._has_rows(table):
            return True
        for source in asked.sources:
            with suppress(PartitionLostError):  # it has no rows of a replicated table either
                answer = await self._peers.peer(source).request(CopyTable(table.table_id))
                rows = {_REPLICATED: decode_tables(answer.parts)} if table.replicated else {}
                self._store.copy_table(table, rows, answer.message.published)
                return True
        if table.replicated:
            self._store.drop_partition(table.table_id, _REPLICATED)
        newest = asked.newest
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


class StoredTables:
    """Answers the controller's requests about tables. Lives on the member's event loop.

    Args:
        threads: What resolves definitions with many ranges.
    """

    def __init__(
        self,
        storage: MemberStorage,
        replication: Replication,
        copies: MemberCopies,
        built_copies: BuiltCopies,
        alterations: MemberAlterations,
        threads: Executor,
    ) -> None:
        self._store = storage.store
        self._places = storage.places
        self._log = storage.log
        self._replication = replication
        self._copies = copies
        self._built_copies = built_copies
        self._alterations = alterations
        self._threads = threads
        self._dropped_meanwhile: list[set[int]] = []  # for each table that is being created, the ids dropped since

    async def create(self, request: Request[catalog.CreateStoredTable]) -> Reply[Acknowledged]:
        """Have a new table, with partitions that are empty."""
        dropped: set[int] = set()
        self._dropped_meanwhile.append(dropped)
        try:
            table = await resolved_table(request.message.table, self._threads)
        finally:
            self._dropped_meanwhile = [other for other in self._dropped_meanwhile if other is not dropped]
        if table.table_id in dropped:
            raise TopologyChangedError(f"table {table.name} was dropped before it was there", table=table.name)
        self._store.create_table(table, request.message.partitions)
        self._places.add_table(table)
        return await self._recorded()

    async def _recorded(self) -> Reply[Acknowledged]:
        """Acknowledge a change of definitions once it is on disk."""
        if self._log is not None:
            await self._log.flushed()
        return Reply(Acknowledged())

    async def catch_up(self, request: Request[CatchUp]) -> Reply[catalog.CaughtUp]:
        """Have a table that the other members have already; this member is about to join, or to return."""
        table = await resolved_table(request.message.table, self._threads)
        self._alterations.follow(table)
        for known in self._store.tables():
            if known.origin == table.origin and known.table_id != table.table_id:
                self._forget(known.table_id)  # it was altered several times meanwhile: nobody names it so any more
        is_here = self._store.find(table.table_id) is not None
        if is_here:
            self._built_copies.give_up(table.table_id)
        if is_here and not table.replicated:
            self._places.add_table(table)
            self._replication.take_over_again(table)
            self._built_copies.drop_outdated(table.table_id)
        last_owned: list[int] = []
        if not table.replicated:
            group = table.scheme.affinity_group()
            last_owned = owned_by(self._places.member_id, self._replication.topology, group)
        has_rows = await self._copies.catch_up(table, request.message, last_owned)
        self._places.add_table(table)
        await self._recorded()
        return Reply(catalog.CaughtUp(has_rows))

    async def drop(self, request: Request[catalog.DropStoredTable]) -> Reply[Acknowledged]:
        """Forget a table, with all its rows."""
        table_id = request.message.table_id
        for dropped in self._dropped_meanwhile:
            dropped.add(table_id)
        self._forget(table_id)
        return await self._recorded()

    def _forget(self, table_id: int) -> None:
        self._store.drop_table(table_id)
        self._built_copies.forget_table(table_id)
        self._replication.forget(table_id)
        self._places.remove_table(table_id)

    async def commit_alter(self, request: Request[catalog.CommitAlter]) -> Reply[Acknowledged]:
        """Have the table as it was prepared."""
        await self._alterations.commit(request)
        return await self._recorded()
