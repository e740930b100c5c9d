"""The base of every request: an immutable value whose type determines the operation and its reply.

A field that is added to a message later has a default value, because an older peer does not send it. In a struct with
``array_like=True``, whose fields travel by position, it comes last. An older peer refuses a longer NamedTuple, a new
member of an enumeration and a new class of a union: :data:`~secateur.protocol.version.PROTOCOL_VERSION` has to grow if
it gets one for a request of its own release.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

R = TypeVar("R", covariant=True)


class Message(msgspec.Struct, Generic[R], frozen=True):
    """A request; ``R`` is the type of its reply. The fields of a subclass are its arguments."""


def as_repeated(message: Message[R]) -> Message[R]:
    """The message for a second time: one that can say so does."""
    if "is_repeat" in message.__struct_fields__:
        return msgspec.structs.replace(message, is_repeat=True)
    return message


class Notice(msgspec.Struct, frozen=True):
    """A one-way message."""


class Acknowledged(msgspec.Struct, frozen=True):
    """The reply to a request that is answered by being carried out."""


class Role(StrEnum):
    """The role of the other end of a connection in the cluster.

    Everything but a client has proved that it is part of it.
    """

    CLIENT = "client"
    MEMBER = "member"
    CONTROLLER = "controller"
    """The controller itself, or the process that started the cluster and speaks for it."""
