"""The network as the engine uses it, and the queue of messages to each other member, sent in order, one at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from secateur.errors import Error
from secateur.protocol.jobs import CancelRun, CreditRows, EndRun, ExchangeRows, MessagesLost, StartRun
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

    Args:
        member_id: This member.
        transport: The network.
        on_failed: Called with the member, the notice and the exception when a message could not be sent. Messages
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
