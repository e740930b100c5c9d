"""The payload budget: how much payload a server holds at one moment, over all its connections.

Bytes count from their arrival until their request has been processed. Announced bytes that have not arrived cost
nothing, so they do not count. Above the budget, connections in the middle of a frame are not read from until a request
has been processed.

**Invariant**: of the connections in the middle of a frame, the one whose frame began first is always read from, so that
frames that wait for each other cannot wait for ever; it alone may exceed the budget. If it falls silent while others
wait, it is dropped.
"""

from __future__ import annotations

import asyncio
from typing import Protocol


class PausableConnection(Protocol):
    """A connection, as far as it can be held up."""

    def hold_up(self) -> None:
        """Do not read for now."""

    def go_on(self) -> None:
        """Read again."""

    def give_way(self) -> None:
        """Hang up: others wait, and nothing has come for long."""


class PayloadBudget:
    """Lives on the event loop of a server.

    Args:
        bytes_max: Bytes to hold.
        stalled_s: Seconds without a byte after which a frame has stalled.
    """

    def __init__(self, bytes_max: int, stalled_s: float) -> None:
        self.held = 0
        self._bytes_max = bytes_max
        self._stalled_s = stalled_s
        self._arriving: dict[
            PausableConnection, float
        ] = {}  # when the last byte came, in the order in which the frames began
        self._held_up: set[PausableConnection] = set()
        self._look: asyncio.TimerHandle | None = None

    def arrived(self, receiver: PausableConnection, size: int) -> None:
        """Bytes of a frame that is not whole yet."""
        self.held += size
        self._arriving[receiver] = asyncio.get_running_loop().time()
        if self.held > self._bytes_max and next(iter(self._arriving)) is not receiver:
            receiver.hold_up()
            self._held_up.add(receiver)
            self._look_later()

    def completed(self, receiver: PausableConnection, size: int) -> None:
        """Record that a frame is complete, with ``size`` bytes that were not counted yet."""
        self.held += size
        if self._arriving.pop(receiver, None) is not None:
            self._let_go_on()

    def given_up(self, receiver: PausableConnection, size: int) -> None:
        """A frame will not become whole; ``size`` bytes of it had arrived."""
        self._held_up.discard(receiver)
        self._arriving.pop(receiver, None)
        self.release(size)

    def release(self, size: int) -> None:
        """Bytes have been worked on."""
        self.held -= size
        if self._held_up:
            self._let_go_on()

    def _let_go_on(self) -> None:
        for receiver in [receiver for receiver in self._arriving if receiver in self._held_up]:
            if self.held > self._bytes_max and next(iter(self._arriving)) is not receiver:
                break
            self._held_up.discard(receiver)
            receiver.go_on()

    def _look_later(self) -> None:
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(self._stalled_s, self._drop_stalled)

    def _drop_stalled(self) -> None:
        self._look = None
        if not self._held_up:
            return
        oldest, last_s = next(iter(self._arriving.items()))
        if asyncio.get_running_loop().time() - last_s >= self._stalled_s and oldest not in self._held_up:
            oldest.give_way()
        self._look_later()
