"""Members that answer from a script, for tests of what the controller asks of them and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

from secateur.errors import MemberLostError
from secateur.protocol import Message, operation_of

__all__ = ["Failures", "ScriptedMembers"]

R = TypeVar("R")
Failures: TypeAlias = Mapping[tuple[str, type[Message[Any]]], Exception]
"""What a member answers instead of a reply, by member and type of request."""


class ScriptedMembers:
    """The members of a cluster. A request and its reply travel as bytes, as they do between processes.

    Args:
        replies: The reply to each type of request.
        failures: Which requests fail at which member.

    Attributes:
        calls: Every request, with the member that it went to, in order.
        latch: While it is there and not set, ``held`` requests wait.
        held: The type of request that waits.
    """

    def __init__(self, replies: Mapping[type[Message[Any]], Any], failures: Failures | None = None) -> None:
        self.calls: list[tuple[str, Message[Any]]] = []
        self.latch: asyncio.Event | None = None
        self.held: type[Message[Any]] | None = None
        self._replies = replies
        self._failures = failures or {}

    @property
    def asked(self) -> list[type[Message[Any]]]:
        """The types of all requests, in order."""
        return [type(message) for _, message in self.calls]

    def is_member(self, member_id: str) -> bool:
        """Whether a member is in the cluster: one that breaks a connection has left it."""
        return not any(
            name == member_id and isinstance(failure, MemberLostError) for (name, _), failure in self._failures.items()
        )

    async def call(self, member_id: str, message: Message[R]) -> R:
        """Take a request in, and give the reply or the failure of the script."""
        operation, kind = operation_of(message), type(message)
        arrived = operation.requests.decode(operation.requests.encode(message))
        self.calls.append((member_id, arrived))
        if self.latch is not None and kind is self.held:
            await self.latch.wait()
        if (member_id, kind) in self._failures:
            raise self._failures[member_id, kind]
        reply: R = operation.replies.decode(operation.replies.encode(self._replies[kind]))
        return reply
