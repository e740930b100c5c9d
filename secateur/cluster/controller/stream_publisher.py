"""Publishes batches of streams, each of them once; see :mod:`secateur.cluster.controller.stream_batches`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakValueDictionary

from secateur.cluster.controller.cluster_state import ClusterState
from secateur.errors import Error, LoadFailedError, ProgrammingError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.changes import StreamBatch
from secateur.protocol.recovery import PublishedBatch

R = TypeVar("R")

_log = logging.getLogger(__name__)


class StreamPublisher:
    """Publishes batches. Lives on the controller's event loop.

    Args:
        state: Has the record.
        rows_published: Returns if a load was published, and raises a LoadFailedError if it never will be.
    """

    def __init__(self, state: ClusterState, rows_published: Callable[[str], Awaitable[int]]) -> None:
        self._state = state
        self._rows_published = rows_published
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    async def once(
        self, table: TableDef, batch: StreamBatch, load_id: str, publish: Callable[[], Awaitable[R]]
    ) -> R | None:
        """Publish the load of a batch; None, and nothing is done, if the batch was published before.

        Costs one delivery of the record to all members before the publication.

        Raises:
            ProgrammingError: The stream has published this batch, or a later one, from another query.
            Error: As ``publish``.
        """
        async with self._locks.setdefault((table.origin, batch.stream), asyncio.Lock()):
            if await self._was_published(table, batch):
                return None
            entry = PublishedBatch(table.origin, batch, load_id)
            tables = {known.origin for known in self._state.catalog.tables()}
            self._state.streams = self._state.streams.begun(entry, tables)
            await self._state.all_reached()
            answer = await publish()
            self._state.streams = self._state.streams.published(load_id)
            return answer

    async def settle(self) -> None:
        """Find out which loads that an earlier controller has begun were published, while members remember them.

        Where nobody can say, members are asked again when the batch comes again.
        """
        for entry in self._state.streams.entries:
            try:
                is_published = entry.is_published or await self._is_published(entry.load_id)
            except Error as error:
                _log.warning("whether batch %s was published is not known yet: %s", entry.batch, error)
                continue
            if is_published and not entry.is_published:
                self._state.streams = self._state.streams.published(entry.load_id)

    async def _was_published(self, table: TableDef, batch: StreamBatch) -> bool:
        last = self._state.streams.find(table.origin, batch.stream)
        if last is None or last.batch.batch < batch.batch:
            return False
        if last.batch.query != batch.query:
            raise ProgrammingError(
                f"batch {batch.batch} of stream {batch.stream!r} was not published: {table.name} has batch"
                f" {last.batch.batch} of this stream from another query ({last.batch.query}), so this one, which begins"
                " anew, may bring other rows under the same numbers. Go on from the checkpoint of that query, or choose"
                " another streamId",
                table=table.name,
            )
        return last.batch.batch > batch.batch or last.is_published or await self._is_published(last.load_id)

    async def _is_published(self, load_id: str) -> bool:
        try:
            await self._rows_published(load_id)
        except LoadFailedError:
            return False
        return True
