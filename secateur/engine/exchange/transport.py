"""The engine's interface to the network: one-way messages to members, in order."""

from __future__ import annotations

from typing import Protocol

from secateur.protocol.jobs import CancelRun, CreditRows, EndRun, ExchangeRows, StartRun
from secateur.protocol.message import Notice

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
