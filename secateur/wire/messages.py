"""The requests and replies of a handler, independent of their transport."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from secateur.wire.frames import Payload

__all__ = ["Answer", "PeerInfo", "Reply", "Request", "Role"]

_EMPTY = memoryview(b"")


class Role(StrEnum):
    """The role of the other end of a connection in the cluster.

    Everything but a client has proved that it is part of it.
    """

    CLIENT = "client"
    MEMBER = "member"
    CONTROLLER = "controller"
    """The controller itself, or the process that started the cluster and speaks for it."""


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """The other end of a connection that a server accepted.

    Attributes:
        connection_id: Never reused by this server.
        address: ``host:port`` of the peer's end.
        client: Its name in its hello; for people.
        authenticated: Whether the server has a token and the peer proved it.
        role: The role that it proved.
    """

    connection_id: int
    address: str
    client: str
    authenticated: bool
    role: Role = Role.CLIENT


class Request(NamedTuple):
    """A request or notification. A NamedTuple because one is made for every frame.

    Attributes:
        op: The operation.
        args: Its arguments, by name, straight from the header; unchecked.
        payload: Bytes that came with it; empty when there are none.
        peer: The sender.
    """

    op: str
    args: dict[str, Any]
    payload: memoryview
    peer: PeerInfo


@dataclass(frozen=True, slots=True)
class Reply:
    """A handler's answer: header values and bytes. An iterator of replies is sent part by part."""

    header: dict[str, Any] = field(default_factory=dict)
    payload: Payload = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply as it arrives at the side that asked.

    Attributes:
        header: Its values; those of all pieces together, later ones win.
        parts: The payloads in the order sent; one, unless the answer was sent piece by piece.
    """

    header: dict[str, Any]
    parts: tuple[memoryview, ...] = ()

    @property
    def payload(self) -> memoryview:
        """The bytes, of an answer that came in one piece; empty when it has none."""
        match self.parts:
            case ():
                return _EMPTY
            case (payload,):
                return payload
            case _:
                raise ValueError(f"the answer came in {len(self.parts)} pieces: read parts")
