"""The controller's requests about the tables that a member stores: to create, alter, catch up with and drop them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from secateur.cluster.member.persistence.member_log import MemberLog
from secateur.cluster.member.replication.built_copies import BuiltCopies
from secateur.cluster.member.replication.copies import MemberCopies
from secateur.cluster.member.replication.replication import Replication
from secateur.cluster.member.tables.alterations import MemberAlterations, resolved_table
from secateur.cluster.member.tables.table_directory import TableDirectory
from secateur.errors import TopologyChangedError
from secateur.partitioning.topology.topology import Topology
from secateur.protocol import catalog
from secateur.protocol.message import Acknowledged
from secateur.storage.member_store import MemberStore
from secateur.storage.table_summary import summarize
from secateur.wire import Reply, Request


class StoredTables:
    """Answers the controller's requests about tables. Lives on the member's event loop.

    Args:
        store: The partitions.
        places: Knows the definitions.
        replication: Knows the copies.
        copies: Fetches the rows of tables that others have already.
        built_copies: The copies that were built while others write.
        alterations: The alterations of tables that are under way.
        threads: What resolves definitions with many ranges.
        log: Records definitions; None for a member without a data directory.
        owners: This member's newest topology.
    """

    def __init__(
        self,
        store: MemberStore,
        places: TableDirectory,
        replication: Replication,
        copies: MemberCopies,
        built_copies: BuiltCopies,
        alterations: MemberAlterations,
        threads: Executor,
        log: MemberLog | None,
        owners: Callable[[], Topology],
    ) -> None:
        self._store = store
        self._places = places
        self._replication = replication
        self._copies = copies
        self._built_copies = built_copies
        self._alterations = alterations
        self._threads = threads
        self._log = log
        self._owners = owners
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

    async def catch_up(self, request: Request[catalog.CatchUp]) -> Reply[catalog.CaughtUp]:
        """Have a table that the other members have already; this member is about to join, or to return."""
        table = await resolved_table(request.message.table, self._threads)
        self._alterations.follow(table)
        is_here = self._store.find(table.table_id) is not None
        if is_here:
            self._built_copies.give_up(table.table_id)
        if is_here and not table.replicated:
            self._places.add_table(table)
            self._replication.take_over_again(table)
            self._built_copies.drop_outdated(table.table_id)
        ownership = None if table.replicated else self._owners().owners.get(table.scheme.affinity_group())
        last_owned = [] if ownership is None else ownership.partitions_of(self._places.member_id)
        has_rows = await self._copies.catch_up(
            table,
            request.message.sources,
            last_owned=last_owned,
            is_current=request.message.is_current,
            newest=request.message.newest,
        )
        self._places.add_table(table)
        await self._recorded()
        return Reply(catalog.CaughtUp(has_rows))

    async def drop(self, request: Request[catalog.DropStoredTable]) -> Reply[Acknowledged]:
        """Forget a table, with all its rows."""
        table_id = request.message.table_id
        for dropped in self._dropped_meanwhile:
            dropped.add(table_id)
        self._store.drop_table(table_id)
        self._built_copies.forget_table(table_id)
        self._replication.forget(table_id)
        self._places.remove_table(table_id)
        return await self._recorded()

    async def commit_alter(self, request: Request[catalog.CommitAlter]) -> Reply[Acknowledged]:
        """Have the table as it was prepared."""
        await self._alterations.commit(request)
        return await self._recorded()


class MemberStatistics:
    """Answers ``look_at_statistics`` requests. Lives on the member's event loop.

    Args:
        store: The member's partitions.
    """

    def __init__(self, store: MemberStore) -> None:
        self._store = store

    async def summary(self, request: Request[catalog.LookAtStatistics]) -> Reply[catalog.StoredStatistics]:
        """The summary of some partitions of a table, as they are now.

        Looks at the rows in a thread that no kernel call waits for.

        Raises:
            UnknownTableError: The table is not here.
            TopologyChangedError: A partition is not here.
        """
        table_id = request.message.table_id
        table = self._store.table(table_id)
        snapshots = [self._store.partition(table_id, partition).snapshot() for partition in request.message.partitions]
        summary = await asyncio.to_thread(summarize, table, snapshots)
        return Reply(catalog.StoredStatistics(summary))
