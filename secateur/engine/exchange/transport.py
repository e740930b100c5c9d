"""The engine's interface to the network: one-way messages to members, in order."""

from __future__ import annotations

from typing import Protocol

from secateur.protocol.message import Notice

__all__ = ["Payload", "Transport"]

Payload = bytes | memoryview


class Transport(Protocol):
    """Carries messages to the other members. Implemented by the cluster; tests connect several runtimes in memory.

    Messages from one member to another arrive complete, unchanged and in the order sent, or the connection is reported
    as lost: the engine numbers them and fails a job whose numbers have a gap, but it does not ask for repetition.
    """

    async def send(self, member_id: str, notice: Notice, payload: Payload) -> None:
        """Send one message; returns when the connection can take the next one.

        A slow connection slows the engine in this way.

        Args:
            member_id: Where to.
            notice: One of those that members of a running job send each other; see :mod:`secateur.protocol.jobs`.
            payload: Bytes; empty when there are none.

        Raises:
            OperationalError: The member cannot be reached or the connection broke. Every job in which it takes part is
                then failed.
        """
