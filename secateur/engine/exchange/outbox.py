"""The output of a processor: its outbox, and behind it a writer for each edge.

One outbox refuses, for cooperative processors, and one waits, for threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import pyarrow as pa

from secateur.engine.exchange.batches import bytes_of
from secateur.engine.exchange.inbox import Wakeable
from secateur.errors import DagError, JobCancelledError
from secateur.partitioning.types.arrow_layout import without_views

_HELD_BATCHES_MAX: Final = 4
"""Batches between a thread and the loop: enough that neither waits for the other's wake-up at each batch."""


class DirectOutbox:
    """Writes straight to the edges; refuses while an edge holds something back. For the event loop."""

    def __init__(self, writers: Sequence[EdgeWriter], vertex: str) -> None:
        self._writers = tuple(writers)
        self._vertex = vertex

    @property
    def accepted(self) -> int:
        """Batches accepted so far, counted once for each edge that they went to."""
        return sum(writer.batches for writer in self._writers)

    @property
    def bucket_count(self) -> int:
        return len(self._writers)

    def offer(self, batch: pa.RecordBatch) -> bool:
        if not all(writer.is_clear for writer in self._writers):
            return False
        batch = _checked_batch(batch, self._vertex)
        for writer in self._writers:
            writer.write(batch)
        return True

    def offer_to(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        writer = self._writers[_checked_ordinal(ordinal, len(self._writers), self._vertex)]
        if not writer.is_clear:
            return False
        batch = _checked_batch(batch, self._vertex)
        writer.write(batch)
        return True

    @property
    def is_clear(self) -> bool:
        """Whether no edge holds anything back."""
        return all(writer.is_clear for writer in self._writers)

    def flush(self, producer: Wakeable) -> bool:
        """Retry the batches that are held back.

        Returns False when some are still held back; the producer is woken when a retry makes sense.
        """
        clear = [writer.is_clear or writer.flush(producer) for writer in self._writers]
        return all(clear)

    def finish(self) -> None:
        """The processor has ended: so have its edges."""
        for writer in self._writers:
            writer.finish()

    def clear(self) -> None:
        """Drop everything: the job has ended."""
        for writer in self._writers:
            writer.clear()


class WaitingOutbox:
    """Takes batches from the processor's thread and moves them to the edges on the event loop.

    ``offer`` waits while too many are held.
    """

    def __init__(self, writers: Sequence[EdgeWriter], vertex: str, wake_loop: Callable[[], None]) -> None:
        self._direct = DirectOutbox(writers, vertex)
        self._vertex = vertex
        self._wake_loop = wake_loop
        self._held: deque[tuple[int | None, pa.RecordBatch]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False

    @property
    def accepted(self) -> int:
        return self._direct.accepted

    @property
    def bucket_count(self) -> int:
        return self._direct.bucket_count

    def offer(self, batch: pa.RecordBatch) -> bool:
        batch = _checked_batch(batch, self._vertex)
        if self._direct.bucket_count:
            self._hold(None, batch)
        return True

    def offer_to(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        batch = _checked_batch(batch, self._vertex)
        self._hold(_checked_ordinal(ordinal, self._direct.bucket_count, self._vertex), batch)
        return True

    @property
    def is_clear(self) -> bool:
        return not self._held and self._direct.is_clear

    def flush(self, producer: Wakeable) -> bool:
        """Move the batches that the thread has offered. On the event loop."""
        while self._direct.flush(producer):
            with self._changed:
                if not self._held:
                    return True
                ordinal, batch = self._held.popleft()
                self._changed.notify()
            if ordinal is None:
                self._direct.offer(batch)
            else:
                self._direct.offer_to(ordinal, batch)
        return False

    def finish(self) -> None:
        self._direct.finish()

    def clear(self) -> None:
        """Drop everything.

        An ``offer`` that waits, and every later one, raises ``JobCancelledError`` in the processor's thread.
        """
        with self._changed:
            self._is_closed = True
            self._held.clear()
            self._changed.notify_all()
        self._direct.clear()

    def _hold(self, ordinal: int | None, batch: pa.RecordBatch) -> None:
        with self._changed:
            while len(self._held) >= _HELD_BATCHES_MAX and not self._is_closed:
                self._changed.wait()
            if self._is_closed:
                raise JobCancelledError(
                    f"vertex {self._vertex!r}: the job has ended while the processor was offering a batch"
                )
            self._held.append((ordinal, batch))
            is_first = len(self._held) == 1
        if is_first:
            self._wake_loop()


def _checked_batch(batch: pa.RecordBatch, vertex: str) -> pa.RecordBatch:
    if not isinstance(batch, pa.RecordBatch):
        raise DagError(
            f"vertex {vertex!r} offered a {type(batch).__name__}; processors exchange pyarrow.RecordBatch (for a Table:"
            " table.to_batches())"
        )
    return without_views(batch)


def _checked_ordinal(ordinal: int, count: int, vertex: str) -> int:
    if not 0 <= ordinal < count:
        raise DagError(f"vertex {vertex!r} offered a batch to output {ordinal}, but it has {count} outbound edges")
    return ordinal


class Lane(Protocol):
    """Leads to a consumer. :class:`~secateur.engine.exchange.inbox.Inbox` is one, for a consumer on this member."""

    @property
    def has_room(self) -> bool:
        """Whether a batch may be put."""

    def put(self, batch: pa.RecordBatch, size: int | None = None) -> None:
        """Add a batch. ``size`` is its bytes, if known."""

    def wait_for_room(self, producer: Wakeable) -> None:
        """Wake the producer once when there is room."""


class EndOfEdge(Protocol):
    """Counts the producers of this member that have ended. An inbox is one, the sender to another member is another."""

    def producer_done(self) -> None:
        """One producer of this member has ended."""


class LaneGroup:
    """Lanes of which any one may take a batch; they take turns, and one without room is skipped."""

    __slots__ = ("_lanes", "_next")

    def __init__(self, lanes: Sequence[Lane], first: int = 0) -> None:
        self._lanes = tuple(lanes)
        self._next = first

    def place(self, batch: pa.RecordBatch, size: int | None = None) -> bool:
        """Put the batch, of ``size`` bytes if known, into the next lane with room; False when none has."""
        lanes = self._lanes
        count = len(lanes)
        for step in range(count):
            index = (self._next + step) % count
            if lanes[index].has_room:
                self._next = (index + 1) % count
                lanes[index].put(batch, size)
                return True
        return False

    def wait_for_room(self, producer: Wakeable) -> None:
        """Wake the producer once when one of the lanes has room."""
        for lane in self._lanes:
            lane.wait_for_room(producer)


Route = Callable[[pa.RecordBatch], Iterable[tuple[LaneGroup, pa.RecordBatch]]]
"""Determines the lanes of a batch or of its parts."""


class EdgeWriter:
    """Takes the output of one producer for one edge.

    A *lane* leads to one consumer (or, for a broadcast over the network, to all consumers of a member at once). Routing
    turns a batch into parts, each with the lanes of which any one may take it; this one mechanism covers every kind of
    edge.

    At most one batch is held back beyond the bounds of the lanes: while a part of it finds no room, the writer refuses
    the next.
    """

    __slots__ = ("_backlog", "_ends", "_route", "batches", "bytes", "rows")

    def __init__(self, route: Route, ends: Sequence[EndOfEdge]) -> None:
        self._ends = tuple(ends)
        self._route = route
        self._backlog: deque[tuple[LaneGroup, pa.RecordBatch, int | None]] = deque()
        self.batches = 0
        self.rows = 0
        self.bytes = 0

    @property
    def is_clear(self) -> bool:
        """Whether nothing is held back, so that a batch may be written."""
        return not self._backlog

    def write(self, batch: pa.RecordBatch) -> None:
        """Route a batch; only when :attr:`is_clear`."""
        self.batches += 1
        self.rows += batch.num_rows
        size = bytes_of(batch)
        self.bytes += size
        for group, part in self._route(batch):
            part_size = size if part is batch else None
            if not group.place(part, part_size):
                self._backlog.append((group, part, part_size))

    def flush(self, producer: Wakeable) -> bool:
        """Retry the batches that were held back.

        Returns False when some are still held back; the producer is woken when a retry makes sense.
        """
        backlog = self._backlog
        for _ in range(len(backlog)):
            group, part, size = backlog.popleft()
            if not group.place(part, size):
                backlog.append((group, part, size))
        for group, _, _ in backlog:
            group.wait_for_room(producer)
        return not backlog

    def finish(self) -> None:
        """The producer has ended; only when :attr:`is_clear`."""
        for end in self._ends:
            end.producer_done()

    def clear(self) -> None:
        """Drop the batches that are held back: the job has ended."""
        self._backlog.clear()
