"""What a handler receives and gives back, free of how it travelled."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from secateur.wire.frames import Payload

__all__ = ["Answer", "PeerInfo", "Reply", "Request", "Role"]

_EMPTY = memoryview(b"")


class Role(StrEnum):
    """What the other end of a connection is to the cluster.

    Everything but a client has proved that it is part of it.
    """

    CLIENT = "client"
    MEMBER = "member"
    CONTROLLER = "controller"
    """The controller itself, or the process that started the cluster and speaks for it."""


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """Who is at the other end of a connection that a server accepted.

    Attributes:
        connection_id: Unique in this server for ever.
        address: ``host:port`` of the peer's end.
        client: What it called itself in its hello; for people.
        authenticated: Whether the server has a token and the peer proved it.
        role: What it has proved to be.
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
        peer: Who asks.
    """

    op: str
    args: dict[str, Any]
    payload: memoryview
    peer: PeerInfo


@dataclass(frozen=True, slots=True)
class Reply:
    """What a handler answers: header values and bytes. An iterator of them is sent piece by piece."""

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
