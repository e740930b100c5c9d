"""Connections between the parts of a cluster under test, all on one event loop: they can be held up, cut, or end at a
process that is dead or silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from secateur.cluster import ClusterSettings
from secateur.cluster.peers import Peers
from secateur.errors import DeadlineError, Error, MemberLostError, UnreachableError
from secateur.protocol import Message, Role, operation_of
from secateur.wire import Answer, Payload, PeerInfo, Reply, Request

__all__ = ["Answers", "Links"]

R = TypeVar("R")

Answers: TypeAlias = Mapping[type, Callable[[Request[Any]], Reply[Any] | Awaitable[Reply[Any]]]]
"""What answers each type of request to a process."""


class Links:
    """All connections of one cluster.

    Attributes:
        answers: The members that can be reached, by name.
        held: Connections, from one process to another, on which nothing arrives until their event is set.
        cut: Connections that break at the next request.
        dead: Processes that have ended.
        silent: Members that answer nothing, and may have done what they were asked.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Answers] = {}
        self.held: dict[tuple[str, str], asyncio.Event] = {}
        self.cut: set[tuple[str, str]] = set()
        self.dead: set[str] = set()
        self.silent: set[str] = set()

    def of(
        self, name: str, *, peer: PeerInfo | None = None, may: Callable[[Message[Any]], bool] = lambda message: True
    ) -> Peers:
        """The connections of one process.

        Args:
            name: The process.
            peer: As what it is known to members; a member unless told otherwise.
            may: Whether it still lives to send a request.
        """
        return _Link(self, name, peer or PeerInfo(1, name, name, False, Role.MEMBER), may)

    def hold(self, source: str, target: str) -> asyncio.Event:
        """Let nothing arrive from one process at another until the event is set."""
        return self.held.setdefault((source, target), asyncio.Event())

    def lose(self, name: str) -> None:
        """A process dies; what it has sent and has not arrived never does."""
        self.dead.add(name)
        for (source, _), event in self.held.items():
            if source == name:
                event.set()


class _Link(Peers):
    def __init__(self, links: Links, name: str, peer: PeerInfo, may: Callable[[Message[Any]], bool]) -> None:
        super().__init__(name, peer.role, ClusterSettings())
        self._links = links
        self._source = name
        self._peer = peer
        self._may = may
        self._asking: set[asyncio.Task[None]] = set()

    def ask_now(
        self, member_id: str, message: Message[R], payload: Payload, heard: Callable[[R | Error], None]
    ) -> bool:
        async def ask() -> None:
            outcome: Any
            try:
                outcome = (await self.ask(member_id, message, payload)).message
            except Exception as error:
                outcome = error
            heard(outcome)

        asking = asyncio.get_running_loop().create_task(ask())
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        return True

    async def ask(self, member_id: str, message: Message[Any], payload: Payload = b"") -> Answer[Any]:
        links, link = self._links, (self._source, member_id)
        if link in links.held:
            await links.held[link].wait()
        if self._source in links.dead:
            raise UnreachableError("this side is dead")
        if member_id in links.dead:
            raise UnreachableError(f"nobody answers at {member_id}") from ConnectionRefusedError()
        if member_id in links.silent:
            raise DeadlineError(f"{member_id} did not answer")
        if link in links.cut or not self._may(message):
            links.cut.discard(link)
            raise MemberLostError("the connection broke")
        request: Request[Any] = Request(operation_of(message), message, memoryview(bytes(payload)), self._peer)  # type: ignore[arg-type]
        answer = links.answers[member_id][type(message)](request)
        reply = answer if isinstance(answer, Reply) else await answer
        return Answer(reply.message, (memoryview(reply.payload),) if reply.payload else ())  # type: ignore[arg-type]
