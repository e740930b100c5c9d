"""Rows between members: the two ends of an edge between two members, with flow control, and the network below.

The receiver grants a window of bytes; the sender keeps at most that many unacknowledged (or a quarter of them and one
batch, if a single batch is larger). The receiver acknowledges when a *processor takes* rows, not when they arrive, so a
slow consumer slows producers on other members just as on its own.

Source: Hazelcast Jet's ``SenderTasklet`` and ``ReceiverTasklet``; the window is fixed instead of adaptive, since
    members sit in one data centre.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa

from secateur.dag.edge import EdgeConfig
from secateur.engine.exchange.batches import bytes_of
from secateur.engine.exchange.inbox import Inbox, Wakeable
from secateur.engine.scheduler import Scheduler
from secateur.errors import Error, ProtocolError
from secateur.partitioning.types.arrow_layout import empty_batch
from secateur.protocol.arrow_ipc import decode_table, encode_table
from secateur.protocol.jobs import CancelRun, CreditRows, EndRun, ExchangeRows, MessagesLost, RowsPiece, StartRun
from secateur.protocol.message import Notice

_PAUSE_MIN_S: Final = 0.02
_PAUSE_MAX_S: Final = 0.5

Payload = bytes | memoryview
RunNotice = StartRun | ExchangeRows | CreditRows | EndRun | CancelRun
"""The messages that members of a running job send each other.

A start goes from the coordinator to each participant, rows and credit between participants, the end back to the
coordinator, and a cancellation from the coordinator to those who still run.
"""


class Transport(Protocol):
    """Carries messages to the other members. Implemented by the cluster; tests connect several runtimes in memory.

    Messages from one member to another arrive complete, unchanged and in the order sent, or the connection is reported
    as lost, to :meth:`~secateur.engine.runtime.runtime.JobRuntime.connection_lost` of the sender, also after
    :meth:`send` has returned. The engine numbers them and fails a job whose numbers have a gap, but it does not ask for
    repetition.
    """

    async def send(self, member_id: str, notice: Notice, payload: Payload) -> None:
        """Send one message; returns when the connection can take the next one.

        A slow connection slows the engine in this way.

        Args:
            member_id: The receiver.
            notice: One of those that members of a running job send each other; see :mod:`secateur.protocol.jobs`.
            payload: Bytes; empty when there are none.

        Raises:
            OperationalError: The member cannot be reached or the connection broke. Every job in which it takes part is
                then failed. With ``has_left`` in its details, the member is none any more.
        """


class Outgoing:
    """Sends messages in order.

    Its size is bounded by its producers: exchange windows, and one start, done and cancel for each job and member.

    **Invariant**: a message that was sent over a connection which broke has arrived, or its receiver is told that some
    may not have, before anything else, or has left the cluster. TCP tells the sender alone: the receiver's end may look
    whole for ever, when the reset was lost as well. Without this a job would wait for the message without end.

    ``on_failed`` is called with the member, the notice and the exception when a message could not be sent. Messages
    queued behind it stay queued.
    """

    def __init__(
        self, member_id: str, transport: Transport, on_failed: Callable[[str, RunNotice, Exception], None]
    ) -> None:
        self._lost = MessagesLost(member_id)
        self._transport = transport
        self._on_failed = on_failed
        self._queues: dict[str, deque[tuple[RunNotice, Payload]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._untold: set[str] = set()

    def post(self, member: str, notice: RunNotice, payload: Payload = b"") -> None:
        """Queue a message. Does not wait."""
        self._queues.setdefault(member, deque()).append((notice, payload))
        self._start(member)

    def broken(self, member: str) -> None:
        """The connection to a member broke: drop what is queued for it, and tell it as soon as it can be reached."""
        self._queues.pop(member, None)
        self._untold.add(member)
        self._start(member)

    def discard(self, member: str) -> None:
        """A member has left: drop what is queued for it."""
        self._queues.pop(member, None)
        self._untold.discard(member)

    async def close(self) -> None:
        """Send no more."""
        tasks, self._tasks = list(self._tasks.values()), {}
        self._queues.clear()
        self._untold.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, member: str) -> None:
        if member not in self._tasks:
            self._tasks[member] = asyncio.get_running_loop().create_task(
                self._drain(member), name=f"secateur-outgoing-{member}"
            )

    async def _drain(self, member: str) -> None:
        pause_s = _PAUSE_MIN_S
        try:
            while True:
                if member in self._untold:
                    if await self._told(member):
                        pause_s = _PAUSE_MIN_S
                    else:
                        await asyncio.sleep(pause_s)
                        pause_s = min(2 * pause_s, _PAUSE_MAX_S)
                elif queue := self._queues.get(member):
                    notice, payload = queue.popleft()
                    try:
                        await self._transport.send(member, notice, payload)
                    except Exception as error:
                        self._on_failed(member, notice, error)
                else:
                    return
        finally:
            self._tasks.pop(member, None)

    async def _told(self, member: str) -> bool:
        """Tell a member that messages were lost; if it cannot be reached, nor can it be for what is queued."""
        try:
            await self._transport.send(member, self._lost, b"")
        except Exception as error:
            for notice, _ in self._queues.pop(member, ()):
                self._on_failed(member, notice, error)
            if isinstance(error, Error) and error.details.get("has_left"):
                self.discard(member)
            return False
        self._untold.discard(member)
        return True


Post = Callable[[str, RunNotice, Payload], None]
"""Hands a message to the transport's queue for a member."""

_ACKNOWLEDGE_SHARE: Final = 4
"""An acknowledgement is sent for each such share of the window: often enough that the sender does not run dry, and
never for a small exchange.
"""


def encode_batches(batches: Sequence[pa.RecordBatch]) -> memoryview:
    """Batches of one schema as one payload."""
    return encode_table(pa.Table.from_batches(batches))


class SharedEncoder:
    """Encodes once what several members get, such as a broadcast.

    The senders usually have the same batches at the heads of their queues.

    Keeps the last payload.
    """

    __slots__ = ("_batches", "_payload")

    def __init__(self) -> None:
        self._batches: tuple[pa.RecordBatch, ...] = ()
        self._payload = memoryview(b"")

    def __call__(self, batches: Sequence[pa.RecordBatch]) -> memoryview:
        if len(batches) != len(self._batches) or any(
            one is not other for one, other in zip(batches, self._batches, strict=True)
        ):
            self._batches, self._payload = tuple(batches), encode_batches(batches)
        return self._payload


@dataclass(frozen=True, slots=True)
class ExchangeLink:
    """An edge of a job, by its index, between this member and another one."""

    job: str
    member: str
    edge: int
    other: str
    config: EdgeConfig
    post: Post

    @property
    def described(self) -> str:
        """The link in a message about what the other member has sent."""
        return f"edge {self.edge} from member {self.other}"


class ExchangeSender:
    """The sending end: collects batches for the consumers on one other member and sends them as the window allows.

    Args:
        link: To whom it sends.
        producer_count: The processors of this member that it sends rows of.
        frame_bytes_max: Bytes of a message, beside those of its largest batch.
        scheduler: Gives turns.
        fail: Called with the error of a turn.
        ended: Called once everything was sent and acknowledged.
        encode: Makes the payload of some batches.
    """

    def __init__(
        self,
        link: ExchangeLink,
        *,
        producer_count: int,
        frame_bytes_max: int,
        scheduler: Scheduler,
        fail: Callable[[Error], None],
        ended: Callable[[], None],
        encode: Callable[[Sequence[pa.RecordBatch]], memoryview] = encode_batches,
    ) -> None:
        self._link = link
        self._config = link.config
        self._open_producers = producer_count
        self._frame_bytes_max = frame_bytes_max
        self._free_below = _acknowledge_at(link.config)
        self._scheduler = scheduler
        self._fail = fail
        self._ended = ended
        self._encode = encode
        self._queue: deque[tuple[tuple[int, ...], pa.RecordBatch, int]] = deque()
        self._queued_bytes = 0
        self.unacknowledged_bytes = 0
        """Bytes that were sent and that no processor has taken yet, as far as this side knows."""
        self._sequence = 0
        self._waiting: list[Wakeable] = []
        self.is_ended = False
        self.is_scheduled = False
        self.sent_bytes = 0
        """Bytes of payloads sent so far."""

    @property
    def has_room(self) -> bool:
        return len(self._queue) < self._config.queue_batches_max and self._queued_bytes < self._config.queue_bytes_max

    def put(self, consumers: tuple[int, ...], batch: pa.RecordBatch, size: int | None = None) -> None:
        """Add a batch for some consumers; only when :attr:`has_room`."""
        size = max(1, bytes_of(batch) if size is None else size)
        self._queue.append((consumers, batch, size))
        self._queued_bytes += size
        self._scheduler.at_end_of_slice(self)

    def wait_for_room(self, producer: Wakeable) -> None:
        if producer not in self._waiting:
            self._waiting.append(producer)

    def producer_done(self) -> None:
        """One producer of this member has ended."""
        self._open_producers -= 1
        self._scheduler.at_end_of_slice(self)

    def credit(self, size: int) -> None:
        """The other side has taken ``size`` bytes."""
        self.unacknowledged_bytes -= size
        if self.unacknowledged_bytes < 0:
            raise ProtocolError(
                f"member {self._link.other} acknowledged {-self.unacknowledged_bytes} bytes of edge {self._link.edge}"
                " more than it was sent"
            )
        self._scheduler.at_end_of_slice(self)

    def run(self) -> None:
        """Send as much as the window allows."""
        if self.is_ended:
            return
        try:
            while pieces := self._next_pieces():
                self._send(pieces)
            if not self._queue and self._open_producers == 0 and not self.is_ended:
                self._send([])
        except Error as error:
            self._fail(error)
            return
        if self._waiting and self.has_room:
            waiting, self._waiting = self._waiting, []
            for producer in waiting:
                producer.wake()
        if self.is_ended:
            self._ended()

    def clear(self) -> None:
        """Drop everything: the job has ended."""
        self.is_ended = True
        self._queue.clear()
        self._waiting.clear()

    def _next_pieces(self) -> list[tuple[tuple[int, ...], pa.RecordBatch, int]]:
        """Return the head of the queue that fits into one frame and into the window, all of one schema."""
        pieces: list[tuple[tuple[int, ...], pa.RecordBatch, int]] = []
        frame_bytes = 0
        while self._queue:
            consumers, batch, size = self._queue[0]
            charge = size * len(consumers)
            # Below the share the receiver may have taken everything without acknowledging; waiting for it could take
            # forever.
            if (
                self.unacknowledged_bytes >= self._free_below
                and self.unacknowledged_bytes + charge > self._config.window_bytes_max
            ):
                break
            if pieces and (frame_bytes + size > self._frame_bytes_max or batch.schema != pieces[0][1].schema):
                break
            pieces.append(self._queue.popleft())
            frame_bytes += size
            self._queued_bytes -= size
            self.unacknowledged_bytes += charge
        return pieces

    def _send(self, pieces: Sequence[tuple[tuple[int, ...], pa.RecordBatch, int]]) -> None:
        payload = memoryview(b"")
        if pieces:
            payload = self._encode([batch for _, batch, _ in pieces])
            self.sent_bytes += payload.nbytes
        self.is_ended = not self._queue and self._open_producers == 0
        described = tuple(RowsPiece(consumers, batch.num_rows, size) for consumers, batch, size in pieces)
        link, number = self._link, self._sequence
        rows = ExchangeRows(link.job, link.member, link.edge, number, described, self.is_ended)
        link.post(link.other, rows, payload)
        self._sequence += 1


class RemoteLane:
    """The lane to some consumers on another member."""

    __slots__ = ("_consumers", "_sender")

    def __init__(self, sender: ExchangeSender, consumers: tuple[int, ...]) -> None:
        self._sender = sender
        self._consumers = consumers

    @property
    def has_room(self) -> bool:
        return self._sender.has_room

    def put(self, batch: pa.RecordBatch, size: int | None = None) -> None:
        self._sender.put(self._consumers, batch, size)

    def wait_for_room(self, producer: Wakeable) -> None:
        self._sender.wait_for_room(producer)


class ExchangeReceiver:
    """The receiving end: hands rows from one other member to the consumers here."""

    def __init__(self, link: ExchangeLink, inboxes: Sequence[Inbox]) -> None:
        self._link = link
        self._inboxes = inboxes
        self._acknowledge_at = _acknowledge_at(link.config)
        self._unacknowledged = 0
        self._sequence = 0
        self._is_ended = False

    def receive(self, message: ExchangeRows, payload: Payload) -> None:
        """Decode a message and deliver its rows; costs no copy.

        Raises:
            ProtocolError: A message is missing, came after the end, or is not what its header says.
        """
        if self._is_ended or message.sequence != self._sequence:
            expected = "nothing more" if self._is_ended else f"message {self._sequence}"
            raise ProtocolError(
                f"{self._link.described}: message {message.sequence} arrived where {expected} was"
                " expected; one was lost or repeated"
            )
        self._sequence += 1
        if message.pieces:
            self._deliver(message, payload)
        if message.is_last:
            self._is_ended = True
            for inbox in self._inboxes:
                inbox.producer_done()

    def taken(self, size: int) -> None:
        """Record that a processor has taken ``size`` bytes.

        The sender gets credit when enough have accumulated, unless it has ended.
        """
        self._unacknowledged += size
        if self._unacknowledged >= self._acknowledge_at and not self._is_ended:
            link = self._link
            link.post(link.other, CreditRows(link.job, link.member, link.edge, self._unacknowledged), b"")
            self._unacknowledged = 0

    def _deliver(self, message: ExchangeRows, payload: Payload) -> None:
        table = decode_table(payload, ranges=False)
        if sum(piece.rows for piece in message.pieces) != table.num_rows:
            raise ProtocolError(
                f"{self._link.described}: the header names {sum(p.rows for p in message.pieces)}"
                f" rows, the payload has {table.num_rows}"
            )
        start = 0
        for piece in message.pieces:
            if any(not 0 <= consumer < len(self._inboxes) for consumer in piece.consumers):
                raise ProtocolError(
                    f"{self._link.described}: rows for the consumers {piece.consumers}, but"
                    f" {len(self._inboxes)} are here"
                )
            batch = _one_batch(table, start, piece.rows)
            start += piece.rows
            for consumer in piece.consumers:
                self._inboxes[consumer].deliver(batch, piece.size, self)


def _acknowledge_at(config: EdgeConfig) -> int:
    return max(1, config.window_bytes_max // _ACKNOWLEDGE_SHARE)


def _one_batch(table: pa.Table, start: int, rows: int) -> pa.RecordBatch:
    """Rows of a table as one batch; without a copy when they lie in one chunk, as those of one sent batch do."""
    batches = table.slice(start, rows).to_batches()
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return empty_batch(table.schema)
    return table.slice(start, rows).combine_chunks().to_batches()[0]
