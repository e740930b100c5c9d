"""The rows of an answer, handed out as fast as whoever wants them takes them: what is held meanwhile is bounded.

Three kinds, by where the rows come from: an answer that is there already, a fragment over partitions that are all here, and a job over several members. The
bound of the first is that of results as a whole; the others make rows as they are asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Protocol

import pyarrow as pa

from secateur.engine.kernel_call import in_thread
from secateur.engine.kernels.cancellation import Cancellation
from secateur.engine.result_queue import ResultQueue
from secateur.engine.row_pieces import RowPieces
from secateur.engine.running_job import RunningJob

__all__ = ["FragmentRows", "JobRows", "RowStream", "TableRows"]

Runner = Callable[[pa.Table, Cancellation], pa.Table]
"""Answers a fragment over some rows of its relation. For threads."""


class RowStream(Protocol):
    """Rows that are taken a part at a time, on the event loop, by one taker."""

    @property
    def is_done(self) -> bool:
        """Whether everything has been taken. False may mean that nobody knows yet: the next part is empty then."""

    @property
    def held_bytes(self) -> int:
        """Bytes of rows that were made and not taken."""

    async def take(self, bytes_wanted: int) -> pa.Table:
        """The next rows: about as many bytes as wanted, or what is left; without rows when nothing is.

        Cancelling the call stops the making of rows.

        Raises:
            Error: Why there will be no more rows, such as a value that a cast does not take, or a member that was lost.
        """

    def close(self) -> None:
        """Make no more rows, wherever they are made. Does not wait. May be called twice."""


class TableRows:
    """Rows that are there.

    Args:
        table: All of them.
    """

    def __init__(self, table: pa.Table) -> None:
        self._rest = table
        self.held_bytes = table.nbytes

    @property
    def is_done(self) -> bool:
        return not self._rest.num_rows

    async def take(self, bytes_wanted: int) -> pa.Table:
        rest = self._rest
        count = rest.num_rows if self.held_bytes <= bytes_wanted else max(1, rest.num_rows * bytes_wanted // self.held_bytes)
        self._rest = rest.slice(count)
        # In proportion: counting the bytes of many slices costs more than sending one.
        self.held_bytes -= self.held_bytes * count // max(rest.num_rows, 1)
        return rest.slice(0, count)

    def close(self) -> None:
        self._rest = self._rest.slice(0, 0)
        self.held_bytes = 0


class FragmentRows:
    """Rows of a fragment that answers row by row, over a relation of this member: a piece of the relation is read when its rows are wanted.

    Args:
        relation: The rows to read, as they were when the statement began.
        run: Answers the fragment over some of them.
        executor: Threads for that.
    """

    def __init__(self, relation: pa.Table, run: Runner, executor: Executor) -> None:
        self._pieces = RowPieces(relation)
        self._run = run
        self._executor = executor
        self.held_bytes = 0

    @property
    def is_done(self) -> bool:
        return self._pieces.is_done

    async def take(self, bytes_wanted: int) -> pa.Table:
        return await in_thread(self._executor, partial(self._next, bytes_wanted))

    def close(self) -> None:
        self._pieces.drop()

    def _next(self, bytes_wanted: int, cancellation: Cancellation) -> pa.Table:
        """In a thread."""
        made = self._run(self._pieces.take(), cancellation)
        parts = [made]
        made_bytes = made.nbytes
        while made_bytes < bytes_wanted and not self._pieces.is_done:
            part = self._run(self._pieces.take(), cancellation)
            if part.num_rows:
                parts.append(part)
                made_bytes += part.nbytes
        return made if len(parts) == 1 else pa.concat_tables(parts)


class JobRows:
    """Rows of a job that this member coordinates, from the queue of its result.

    Args:
        job: The job.
        queue: Where its result sink puts the rows; full, it refuses, and so each stage waits for the next, on every member.
        schema: That of the rows, for when no batch says it.
    """

    def __init__(self, job: RunningJob, queue: ResultQueue, schema: Callable[[], pa.Schema]) -> None:
        self._job = job
        self._queue = queue
        self._schema = schema
        job.when_done(queue.wake)

    @property
    def is_done(self) -> bool:
        return self._job.done and not self._queue.rows

    @property
    def held_bytes(self) -> int:
        return self._queue.bytes

    async def take(self, bytes_wanted: int) -> pa.Table:
        try:
            await self._queue.wait(bytes_wanted, lambda: self._job.done)
        except asyncio.CancelledError:
            self.close()
            raise
        if self._job.done:
            self._job.result_now()
        batches = self._queue.take(bytes_wanted)
        return pa.Table.from_batches(batches, self._queue.schema or self._schema())

    def close(self) -> None:
        self._job.cancel("nobody wants the rest of its rows")
        self._queue.close()
