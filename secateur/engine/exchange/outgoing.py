"""The queue of messages to each other member, sent one after another so that their order holds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from secateur.engine.exchange.transport import Payload, RunNotice, Transport

__all__ = ["Outgoing"]


class Outgoing:
    """Sends messages in order.

    Its size is bounded by its producers: exchange windows, and one start, done and cancel for each job and member.

    Args:
        transport: The network.
        on_failed: Called with the member, the notice and the exception when a message could not be sent. Messages
            queued behind it stay queued.
    """

    def __init__(self, transport: Transport, on_failed: Callable[[str, RunNotice, Exception], None]) -> None:
        self._transport = transport
        self._on_failed = on_failed
        self._queues: dict[str, deque[tuple[RunNotice, Payload]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def post(self, member: str, notice: RunNotice, payload: Payload = b"") -> None:
        """Queue a message. Does not wait."""
        self._queues.setdefault(member, deque()).append((notice, payload))
        if member not in self._tasks:
            self._tasks[member] = asyncio.get_running_loop().create_task(
                self._drain(member), name=f"secateur-outgoing-{member}"
            )

    def discard(self, member: str) -> None:
        """Drop what is queued for a member: it is lost."""
        self._queues.pop(member, None)

    async def close(self) -> None:
        """Send no more."""
        tasks, self._tasks = list(self._tasks.values()), {}
        self._queues.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _drain(self, member: str) -> None:
        try:
            while queue := self._queues.get(member):
                notice, payload = queue.popleft()
                try:
                    await self._transport.send(member, notice, payload)
                except Exception as error:
                    self._on_failed(member, notice, error)
        finally:
            self._tasks.pop(member, None)
