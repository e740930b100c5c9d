"""A stream of result rows, which are made as fast as the consumer takes them: the rows held are bounded.

There are two kinds, by the origin of the rows: kernel calls over partitions that are all local, which a fragment may
read piece by piece, and a job over several members. Both make rows on demand; only the answer of the arrow kernel is
complete at once, and counts with all its remaining rows.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from functools import partial
from typing import Final, Protocol

import pyarrow as pa

from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import ChunkedResult, StreamedResult
from secateur.engine.runtime.result import ResultQueue
from secateur.engine.runtime.running_job import RunningJob
from secateur.engine.threads import in_thread
from secateur.engine_limits import EngineLimits
from secateur.errors import DataError

Runner = Callable[[pa.Table, Cancellation], pa.Table]
"""Answers a fragment over some rows of its relation. For threads."""


class RowStream(Protocol):
    """Rows that are taken a part at a time, on the event loop, by one consumer."""

    @property
    def is_done(self) -> bool:
        """Whether all rows have been taken. False may mean that it is not known yet: the next part is then empty."""

    @property
    def held_bytes(self) -> int:
        """Bytes of rows that were made and not taken."""

    async def take(self, bytes_wanted: int) -> pa.Table:
        """Return the next rows: about as many bytes as wanted, or the remaining ones; without rows when none remain.

        Cancelling the call stops the statement.

        Raises:
            Error: Why there are no more rows, such as a failed cast, or a lost member.
        """

    def close(self) -> None:
        """Make no more rows, wherever they are made. Does not wait. May be called twice."""


class LocalRowStream:
    """Rows of kernel calls on this member, which are opened, taken and closed in the threads of ``executor``."""

    def __init__(self, start: Callable[[Cancellation], ChunkedResult], executor: Executor) -> None:
        self._start = start
        self._executor = executor
        self._cancellation = Cancellation()
        self._answer: ChunkedResult | None = None
        self._is_closed = False

    @property
    def is_done(self) -> bool:
        return self._answer is not None and self._answer.is_done

    @property
    def held_bytes(self) -> int:
        return 0 if self._answer is None else self._answer.held_bytes

    async def take(self, bytes_wanted: int) -> pa.Table:
        return await in_thread(self._executor, partial(self._next, bytes_wanted), self._cancellation)

    def close(self) -> None:
        self._is_closed = True
        if self._answer is None or self._answer.is_done:
            return
        self._cancellation.cancel()
        with contextlib.suppress(RuntimeError):  # the member is shutting down, and its kernel with it
            self._executor.submit(self._answer.close)

    def _next(self, bytes_wanted: int, cancellation: Cancellation) -> pa.Table:
        """The next rows of the answer. Runs in a thread."""
        if self._answer is None:
            self._answer = self._start(cancellation)
        taken = self._answer.take(bytes_wanted)
        if self._is_closed:
            self._answer.close()
        return taken


def answered_by_piece(relation: pa.Table, run: Runner, limits: EngineLimits) -> Callable[[Cancellation], ChunkedResult]:
    """Make what opens the answer of a fragment that answers row by row, for a :class:`LocalRowStream`.

    A piece of the relation is read when its rows are wanted.

    Args:
        relation: The rows to read, as they were when the statement began.
        run: Answers the fragment over some of them.
        limits: How many bytes a piece has.
    """

    def parts(cancellation: Cancellation) -> Generator[pa.Table, None, None]:
        pieces = RowPieces(relation, limits)
        while not pieces.is_done:
            yield run(pieces.take(), cancellation)

    return lambda cancellation: StreamedResult(parts(cancellation))


class JobRowStream:
    """Rows of a job that this member coordinates, from the queue of its result.

    Args:
        job: The job.
        queue: The queue of its result sink; a full queue makes each stage wait for the next, on every member.
        schema: Makes the schema of the rows, in case there is no batch.
        bytes_before_first: The bytes that the first part waits for, though it may return fewer; at most what the queue
            may hold. Until then no row of the job has been returned, so an error may be handled by running it again.
        when_late: Makes the error for an error in the data that comes later.
    """

    def __init__(
        self,
        job: RunningJob,
        queue: ResultQueue,
        schema: Callable[[], pa.Schema],
        bytes_before_first: int = 0,
        when_late: str = "",
    ) -> None:
        self._job = job
        self._queue = queue
        self._schema = schema
        self._bytes_before = bytes_before_first
        self._when_late = when_late
        self._has_begun = False
        job.when_done(queue.wake)

    @property
    def is_done(self) -> bool:
        return self._is_over() and not self._queue.rows

    @property
    def held_bytes(self) -> int:
        return self._queue.bytes

    async def take(self, bytes_wanted: int) -> pa.Table:
        try:
            await self._queue.wait(max(bytes_wanted, self._bytes_before), self._is_over)
        except asyncio.CancelledError:
            self.close()
            raise
        self._bytes_before = 0
        if self._job.done:
            self._check()
        self._has_begun = True
        batches = self._queue.take(bytes_wanted)
        return pa.Table.from_batches(batches, self._queue.schema or self._schema())

    def close(self) -> None:
        self._job.cancel("its consumer needs no more rows")
        self._queue.close()

    def _is_over(self) -> bool:
        """Whether no further row comes."""
        return self._job.done or self._job.has_enough

    def _check(self) -> None:
        """Raise why the job failed, if it did."""
        try:
            self._job.result_now()
        except DataError as error:
            if not self._has_begun or not self._when_late:
                raise
            raise DataError(f"{error.message}; {self._when_late}", **error.details) from error


_KEPT_MIN: Final = 0.25
_PIECE_ROWS_MIN: Final = 1024


class RowPieces:
    """Takes a relation apart from the front, without copying."""

    __slots__ = ("_limits", "_position", "_relation", "_rows_limit", "_rows_max", "_taken_bytes")

    def __init__(self, relation: pa.Table, limits: EngineLimits) -> None:
        self._limits = limits
        self._relation = relation
        self._position = 0
        self._rows_max = 0
        self._rows_limit = 0
        self._taken_bytes = 0

    @property
    def is_done(self) -> bool:
        """Whether all pieces have been taken.

        A relation without rows has one piece, which has none either: its schema is an answer too.
        """
        return self._position >= max(self._relation.num_rows, 1)

    def take(self) -> pa.Table:
        """The next piece."""
        if not self._rows_max:
            # Not earlier: counting the bytes of many partitions takes time, which the threads that take pieces have.
            first = self._limits.piece_bytes
            self._rows_max = max(_PIECE_ROWS_MIN, self._relation.num_rows * first // max(self._relation.nbytes, 1))
            self._rows_limit = self._rows_max * (self._limits.piece_bytes_max // first)
            self._taken_bytes = first
        piece = self._relation.slice(self._position, self._rows_max)
        self._position += max(piece.num_rows, 1)
        return piece

    def answered(self, nbytes: int) -> None:
        """Record the bytes of the last piece's answer; if they are few, the next piece is twice as large."""
        if nbytes < _KEPT_MIN * self._taken_bytes and self._rows_max < self._rows_limit:
            self._rows_max *= 2
            self._taken_bytes *= 2

    def drop(self) -> None:
        """Leave the rest."""
        self._position = max(self._relation.num_rows, 1)
        self._relation = self._relation.slice(0, 0)
