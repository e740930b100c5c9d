"""Results that clients are still reading; each belongs to the connection of its statement, and ends with it.

A client that wants rows in parts grants a number of bytes with its statement. A result that fits is the answer; of a
larger one it gets about as much, and fetches the next part with another grant when it has taken the first. In between
the member makes no rows beyond the capacity of the engine's queues, so a slow reader slows the statement down, and a
reader that disconnects ends it.

**Invariant**: a connection has at most one open result; the next one, an error, the end of the rows and the end of the
connection close it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import pyarrow as pa
from msgspec.structs import replace

from secateur.engine.sql.row_stream import RowStream
from secateur.engine.threads import WORK
from secateur.errors import LimitExceededError, MemberLostError, ProtocolError
from secateur.protocol.query import Executed, NextRows, PartOfRows
from secateur.wire import PeerInfo, Reply, Request, encode_table

T = TypeVar("T")

GRANT_BYTES_MAX: Final = 64 << 20
"""More than this is not made for one part, whatever is granted."""


class OpenResults:
    """Keeps the results of which clients have not read all parts. Lives on the member's event loop.

    Args:
        held_bytes_max: Bytes that all open results together may hold in memory; a result that is made whole counts with
            all that is left of it.
    """

    def __init__(self, held_bytes_max: int) -> None:
        self.held_bytes_max = held_bytes_max
        self._connections: set[int] = set()
        self._streams: dict[int, RowStream] = {}
        self._running: dict[int, set[asyncio.Task[Any]]] = {}

    @property
    def count(self) -> int:
        """The number of results that are being read, or are being made for a reader."""
        return len(self._streams) + sum(map(len, self._running.values()))

    @property
    def held_bytes(self) -> int:
        """Bytes of rows that were made and not read yet."""
        return sum(stream.held_bytes for stream in self._streams.values()) if self._streams else 0

    @property
    def bytes_max(self) -> int:
        """Bytes that the result of the statement of this task may hold."""
        work = WORK.get()
        own = None if work is None else work.result_bytes_max
        return self.held_bytes_max if own is None else min(own, self.held_bytes_max)

    def connected(self, peer: PeerInfo) -> None:
        """A connection is open; results of any other are given up."""
        self._connections.add(peer.connection_id)

    def gone(self, peer: PeerInfo) -> None:
        """A connection has ended: so do its result and the statements that it asked for."""
        self._connections.discard(peer.connection_id)
        self.close(peer)
        for task in self._running.pop(peer.connection_id, ()):
            task.cancel()

    @contextmanager
    def running(self, peer: PeerInfo, task: asyncio.Task[Any] | None = None) -> Iterator[None]:
        """Around what a task, by default this one, does for a reader: it is cancelled when the connection ends."""
        task = task or asyncio.current_task()
        assert task is not None
        tasks = self._running.setdefault(peer.connection_id, set())
        tasks.add(task)
        try:
            yield
        finally:
            tasks.discard(task)
            if not tasks and self._running.get(peer.connection_id) is tasks:
                del self._running[peer.connection_id]

    async def while_connected(self, peer: PeerInfo, work: Coroutine[Any, Any, T]) -> T:
        """Do something for a peer that is cancelled when the connection ends.

        Raises:
            MemberLostError: So it was. Who asks again, over another connection, may be answered.
        """
        task = asyncio.ensure_future(work)
        with self.running(peer, task):
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                if task.cancelled():
                    raise MemberLostError(
                        "the connection that requested a change ended before its rows were found: nothing was changed"
                    ) from None
                task.cancel()
                raise

    def checked(self, table: pa.Table) -> pa.Table:
        """A result that is answered whole, if it is not too large for that.

        Raises:
            LimitExceededError: It is.
        """
        if table.nbytes > self.bytes_max:
            raise self._too_much(table.nbytes)
        return table

    async def open(self, peer: PeerInfo, stream: RowStream, grant_bytes: int, said: Executed) -> Reply[Executed]:
        """The first part of a result; what is left is kept for the next ones.

        Args:
            peer: The reader.
            stream: Its rows.
            grant_bytes: How much the reader has room for; from :func:`within_bounds`.
            said: The answer, without its number of rows.

        Raises:
            LimitExceededError: With this result too much would be held in memory.
            Error: Why there are no rows.
        """
        try:
            rows = await stream.take(grant_bytes)
            made_bytes = rows.nbytes + stream.held_bytes
            if made_bytes > self.bytes_max < self.held_bytes_max:
                raise self._too_much(made_bytes)
            if not stream.is_done:
                if self.held_bytes + stream.held_bytes > self.held_bytes_max:
                    raise self._too_much(stream.held_bytes)
                if peer.connection_id not in self._connections:
                    raise ProtocolError("the connection that requested this result is closed")
        except BaseException:
            stream.close()
            raise
        if stream.is_done:
            stream.close()
            return Reply(replace(said, rows=rows.num_rows), encode_table(rows))
        self.close(peer)
        self._streams[peer.connection_id] = stream
        return Reply(replace(said, rows=rows.num_rows, has_more=True), encode_table(rows))

    async def next(self, request: Request[NextRows]) -> Reply[PartOfRows]:
        """The next part of the open result of a connection: ``grant`` bytes of it.

        Raises:
            ProtocolError: The connection has none.
            Error: Why there are no more rows; the result is closed.
        """
        peer, grant = request.peer, within_bounds(request.message.grant)
        stream = self._streams.get(peer.connection_id)
        if stream is None:
            raise ProtocolError(
                "this connection has no result of which more could be read: it was read to its end, closed, or its"
                " statement was another one's"
            )
        with self.running(peer):
            try:
                rows = await stream.take(grant)
            except BaseException:
                self.close(peer)
                raise
        more = not stream.is_done
        if not more:
            self.close(peer)
        return Reply(PartOfRows(rows.num_rows, more), encode_table(rows))

    def close(self, peer: PeerInfo) -> None:
        """Give up the open result of a connection; nothing happens when it has none."""
        stream = self._streams.pop(peer.connection_id, None)
        if stream is not None:
            stream.close()

    def close_all(self) -> None:
        """Give up every result: the member is shutting down."""
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()

    def _too_much(self, more_bytes: int) -> LimitExceededError:
        own = self.bytes_max
        if own < self.held_bytes_max and more_bytes > own:
            return LimitExceededError(
                f"the result takes {more_bytes:,} bytes, and one of this tenant may take {own:,} (max_memory of its"
                " resource group): ask for fewer rows or columns",
                limit="max_memory",
            )
        held = f", and results that are being read hold {self.held_bytes:,} bytes already" if self._streams else ""
        return LimitExceededError(
            f"the result takes {more_bytes:,} bytes{held}; all of them may take {self.held_bytes_max:,}, the"
            " result_bytes_max of this member: ask for fewer rows or columns, leave out ORDER BY so that rows can be"
            " read as they are made, or start the cluster with a larger result_bytes_max",
            limit="result_bytes_max",
        )


def within_bounds(grant: int) -> int:
    """The bytes that a client has room for, as many as a member makes at a time."""
    return max(1, min(grant, GRANT_BYTES_MAX))
