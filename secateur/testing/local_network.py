"""A network in memory: delivers in order, and fails on request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from secateur.engine.exchange.transport import Payload
from secateur.errors import MemberLostError
from secateur.protocol.codec import decode, encode
from secateur.protocol.message import Notice
from secateur.protocol.operation import operation_of

Hold = Callable[["SentMessage"], bool]


class SentMessage:
    """A message as a test sees it.

    Attributes:
        sender: Member id.
        receiver: Member id.
        notice: As the receiver gets it.
        payload: As the receiver gets it.
    """

    __slots__ = ("notice", "payload", "receiver", "sender")

    def __init__(self, sender: str, receiver: str, notice: Notice, payload: bytes) -> None:
        self.sender = sender
        self.receiver = receiver
        self.notice = notice
        self.payload = payload

    @property
    def operation(self) -> str:
        """The operation, such as ``exchange_rows``."""
        return operation_of(self.notice).title

    def __repr__(self) -> str:
        return f"{self.sender}->{self.receiver} {self.operation}"


class LocalNetwork:
    """Delivers messages between members in memory, in order, and can misbehave on request.

    Attributes:
        sent: Every message that was handed over, also those that were held back or lost.
    """

    def __init__(self) -> None:
        self.sent: list[SentMessage] = []
        self._receivers: dict[str, Callable[[Notice, Payload], None]] = {}
        self._lost: set[str] = set()
        self._holds: list[Hold] = []
        self._held: list[SentMessage] = []

    def attach(self, member: str, on_message: Callable[[Notice, Payload], None]) -> None:
        """Deliver the member's messages there."""
        self._receivers[member] = on_message

    def transport(self, member: str) -> _LocalTransport:
        """The way of one member to the others."""
        return _LocalTransport(self, member)

    def lose(self, member: str) -> None:
        """Messages from and to the member fail from now on."""
        self._lost.add(member)

    def hold(self, condition: Hold) -> None:
        """Keep back the messages for which the condition holds, until :meth:`release`."""
        self._holds.append(condition)

    def release(self) -> None:
        """Deliver the messages that were held back, in order, and hold back no more."""
        self._holds.clear()
        held, self._held = self._held, []
        for message in held:
            self._deliver_soon(message)

    async def carry(self, sender: str, receiver: str, notice: Notice, payload: Payload) -> None:
        """Deliver one message, as a transport does."""
        if receiver in self._lost or sender in self._lost:
            raise MemberLostError(f"the connection from {sender} to {receiver} broke", member=receiver)
        message = SentMessage(sender, receiver, decode(encode(notice), type(notice)), bytes(payload))
        self.sent.append(message)
        if any(condition(message) for condition in self._holds):
            self._held.append(message)
        else:
            self._deliver_soon(message)

    def _deliver_soon(self, message: SentMessage) -> None:
        asyncio.get_running_loop().call_soon(self._deliver, message)

    def _deliver(self, message: SentMessage) -> None:
        if message.receiver not in self._lost:
            self._receivers[message.receiver](message.notice, message.payload)


class _LocalTransport:
    def __init__(self, network: LocalNetwork, member: str) -> None:
        self._network = network
        self._member = member

    async def send(self, member_id: str, notice: Notice, payload: Payload) -> None:
        await self._network.carry(self._member, member_id, notice, payload)
