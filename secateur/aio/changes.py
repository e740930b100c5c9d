"""The changes of a table, on an event loop."""

from __future__ import annotations

from typing import Self

import pyarrow as pa

from secateur.aio.proxy import Proxy
from secateur.client import changes


class AsyncChanges(Proxy[changes.Changes]):
    """The changes of the rows of a table, as batches of Arrow: ``async for batch in changes``.

    Made by :meth:`AsyncConnection.changes`; as :class:`secateur.client.changes.Changes`.
    """

    @property
    def position(self) -> changes.Position:
        """Behind the last batch."""
        return self._blocking.position

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        batch = await self._waits.run(next, self._blocking, None)
        if batch is None:
            raise StopAsyncIteration
        return batch
