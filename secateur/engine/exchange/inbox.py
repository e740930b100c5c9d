"""The input of one processor from one edge: a bounded queue that wakes its two sides."""

from __future__ import annotations

from collections import deque
from typing import Protocol

import pyarrow as pa

from secateur.dag.edge import EdgeConfig
from secateur.engine.exchange.batches import SMALL_BYTES_MAX, bytes_of, remember_bytes


class Wakeable(Protocol):
    """Something that waits and can be woken to check again."""

    def wake(self) -> None:
        """There may be something to do. Cheap, and harmless when there is not."""


class Acknowledger(Protocol):
    """Wants to know when rows that came over the network have been taken."""

    def taken(self, size: int) -> None:
        """A processor has taken ``size`` bytes."""


class Inbox:
    """A queue of batches for one processor.

    Attributes:
        consumer: Is woken when there is something to take; None before the job runs.
        taken_rows: Rows that the processor has taken so far.

    Batches from this member are bounded by the edge's queue, those from other members by their receive windows. To be
    used on the event loop only.

    Invariant: a producer that found no room is woken when there is room again; the consumer is woken when a batch or
    the last end arrives.
    """

    __slots__ = (
        "_batches_max",
        "_bytes_max",
        "_items",
        "_open_producers",
        "_put_batches",
        "_put_bytes",
        "_taken_local_batches",
        "_taken_local_bytes",
        "_taken_remote_batches",
        "_taken_remote_bytes",
        "_waiting",
        "_window_bytes_max",
        "consumer",
        "taken_rows",
    )

    def __init__(self, config: EdgeConfig, producer_count: int) -> None:
        self._items: deque[tuple[pa.RecordBatch, int, Acknowledger | None]] = deque()
        self._batches_max = config.queue_batches_max
        self._bytes_max = config.queue_bytes_max
        # Counts that only grow serve the bounds of the queue and the metrics at once.
        self._put_batches = 0
        self._put_bytes = 0
        self._taken_local_batches = 0
        self._taken_local_bytes = 0
        self._taken_remote_batches = 0
        self._taken_remote_bytes = 0
        self._open_producers = producer_count
        self._waiting: list[Wakeable] = []
        self.consumer: Wakeable | None = None
        self._window_bytes_max = config.window_bytes_max
        self.taken_rows = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def taken_batches(self) -> int:
        """Batches that the processor has taken so far."""
        return self._taken_local_batches + self._taken_remote_batches

    @property
    def taken_bytes(self) -> int:
        """Bytes that the processor has taken so far."""
        return self._taken_local_bytes + self._taken_remote_bytes

    @property
    def queued_bytes(self) -> int:
        """Bytes that wait here."""
        return sum(size for _, size, _ in self._items)

    @property
    def fill(self) -> float:
        """The fill level of this queue, 0 to 1, by the tightest of the bounds of local producers and remote windows."""
        local_batches, local_bytes = (
            self._put_batches - self._taken_local_batches,
            self._put_bytes - self._taken_local_bytes,
        )
        parts = (
            local_batches / self._batches_max,
            local_bytes / self._bytes_max,
            (self.queued_bytes - local_bytes) / self._window_bytes_max,
        )
        return max(0.0, min(1.0, max(parts)))

    @property
    def has_room(self) -> bool:
        """Whether a producer on this member may put a batch."""
        return (
            self._put_batches - self._taken_local_batches < self._batches_max
            and self._put_bytes - self._taken_local_bytes < self._bytes_max
        )

    @property
    def is_drained(self) -> bool:
        """Whether the queue is empty and no further batch will come."""
        return not self._items and self._open_producers == 0

    def put(self, batch: pa.RecordBatch, size: int | None = None) -> None:
        """Add a batch from this member, of ``size`` bytes if known; only when :attr:`has_room`."""
        if size is None:
            size = bytes_of(batch)
        self._put_batches += 1
        self._put_bytes += size
        self._items.append((batch, size, None))
        self._wake_consumer()

    def deliver(self, batch: pa.RecordBatch, size: int, acknowledger: Acknowledger) -> None:
        """Add a batch from another member, which was given a window and so is never refused."""
        self._items.append((batch, size, acknowledger))
        self._wake_consumer()

    def take(self) -> pa.RecordBatch | None:
        """The next batch, or None when there is none now."""
        if not self._items:
            return None
        batch, size, acknowledger = self._items.popleft()
        self.taken_rows += batch.num_rows
        if size > SMALL_BYTES_MAX:
            remember_bytes(batch, size)
        if acknowledger is not None:
            self._taken_remote_batches += 1
            self._taken_remote_bytes += size
            acknowledger.taken(size)
        else:
            self._taken_local_batches += 1
            self._taken_local_bytes += size
            if self._waiting and self.has_room:
                waiting, self._waiting = self._waiting, []
                for producer in waiting:
                    producer.wake()
        return batch

    def wait_for_room(self, producer: Wakeable) -> None:
        """Wake the producer once when there is room."""
        if producer not in self._waiting:
            self._waiting.append(producer)

    def producer_done(self) -> None:
        """One of the producers, a processor on this member or a whole other member, has ended."""
        self._open_producers -= 1
        if self._open_producers == 0:
            self._wake_consumer()

    def clear(self) -> None:
        """Drop everything: the job has ended."""
        self._items.clear()
        self._put_batches, self._put_bytes = self._taken_local_batches, self._taken_local_bytes
        self._waiting.clear()
        self.consumer = None

    def _wake_consumer(self) -> None:
        if self.consumer is not None:
            self.consumer.wake()
