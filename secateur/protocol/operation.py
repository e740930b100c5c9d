"""The type of operations: the properties by which servers dispatch, admit and count requests."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, Flag, auto
from typing import Any, Final, TypeAlias, get_args, get_origin

import msgspec

from secateur.protocol.codec import Codec
from secateur.protocol.message import Message, Notice, Role

Callers: TypeAlias = frozenset[Role]

ANYBODY: Final[Callers] = frozenset(Role)
CLUSTER: Final[Callers] = frozenset({Role.MEMBER, Role.CONTROLLER})
MEMBERS: Final[Callers] = frozenset({Role.MEMBER})
CONTROLLER: Final[Callers] = frozenset({Role.CONTROLLER})


class Server(Enum):
    """The server that answers an operation."""

    CONTROLLER = "controller"
    MEMBER = "member"
    ANY = "any"


class Trait(Flag):
    """A special property of an operation."""

    NONE = 0
    HOUSEKEEPING = auto()
    """It concerns the cluster and no statement, and so does not count as a frame received."""
    ABANDONABLE = auto()
    """It is cancelled where it waits when its answer is no longer needed: it changes nothing, or only something that
    is dropped anyway."""
    IDEMPOTENT = auto()
    """Repeating it does no harm, so it is sent again if a connection broke before its answer came."""
    STREAMS = auto()
    """Its answer comes in parts."""


class OperationBase(Enum):
    """One operation.

    An enumeration of operations derives from this class; each of its members belongs to one type of request.

    Attributes:
        code: Its number in the head of a frame. It is part of the protocol: never renumber.
        at: The server that answers it.
        request: The type of its requests: a :class:`~secateur.protocol.message.Message`, or a
            :class:`~secateur.protocol.message.Notice`.
        reply: The type of its replies; None for a notice, which has none.
        callers: The peers that may request it.
        is_housekeeping: :attr:`Trait.HOUSEKEEPING`.
        is_abandonable: :attr:`Trait.ABANDONABLE`.
        is_idempotent: :attr:`Trait.IDEMPOTENT`.
        streams: :attr:`Trait.STREAMS`.
        title: Its name, for people.
        requests: Writes and reads its requests.
        replies: Writes and reads its replies.
    """

    code: int
    at: Server
    request: type[msgspec.Struct]
    reply: type[msgspec.Struct] | None
    callers: Callers
    is_housekeeping: bool
    is_abandonable: bool
    is_idempotent: bool
    streams: bool
    title: str
    requests: Codec[Any]
    replies: Codec[Any]

    def __init__(
        self, code: int, at: Server, request: type[msgspec.Struct], callers: Callers, traits: Trait = Trait.NONE
    ) -> None:
        if request in _by_request:
            raise TypeError(
                f"{request.__name__} is the request of {self.name} and of {_by_request[request].name}: each operation"
                " has a type of its own"
            )
        _by_request[request] = self
        self.code = code
        self.at = at
        self.request = request
        self.reply = _reply_of(request)
        self.callers = callers
        self.is_housekeeping = Trait.HOUSEKEEPING in traits
        self.is_abandonable = Trait.ABANDONABLE in traits
        self.is_idempotent = Trait.IDEMPOTENT in traits
        self.streams = Trait.STREAMS in traits
        self.title = self.name.lower()
        self.requests = Codec(request)
        self.replies = Codec(self.reply)

    __hash__ = object.__hash__
    """Servers find the handler of every request by its operation, and the hash of Enum is written in Python."""

    @classmethod
    def at_server(cls, server: Server) -> Mapping[int, OperationBase]:
        """The operations that a server answers, by code."""
        return {operation.code: operation for operation in cls if operation.at in (server, Server.ANY)}


_by_request: Final[dict[type[msgspec.Struct], OperationBase]] = {}


def operation_of(request: msgspec.Struct) -> OperationBase:
    """The operation that a message asks for."""
    return _by_request[type(request)]


def _reply_of(request: type[msgspec.Struct]) -> type[msgspec.Struct] | None:
    """The ``R`` of the ``Message[R]`` from which a request derives."""
    if issubclass(request, Notice):
        return None
    for kind in request.__mro__:
        for base in kind.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is Message:
                (reply,) = get_args(base)
                if isinstance(reply, type):
                    return reply
    raise TypeError(f"{request.__name__} has to derive from Message[...] with the type of its reply, or from Notice")
