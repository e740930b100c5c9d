"""The statistics that a member collects of its own rows."""

from __future__ import annotations

import asyncio

from secateur.protocol.catalog import LookAtStatistics, StoredStatistics
from secateur.storage.member_store import MemberStore
from secateur.storage.table_summary import summarize
from secateur.wire import Reply, Request


class MemberStatistics:
    """Answers ``look_at_statistics`` requests. Lives on the member's event loop.

    Args:
        store: The member's partitions.
    """

    def __init__(self, store: MemberStore) -> None:
        self._store = store

    async def summary(self, request: Request[LookAtStatistics]) -> Reply[StoredStatistics]:
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
        return Reply(StoredStatistics(summary))
