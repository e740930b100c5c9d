"""The base of every request: an immutable value whose type determines the operation and its reply.

All processes of a cluster and its clients run one release, so a message may change freely: a release that changes one
has another :data:`~secateur.protocol.hello.PROTOCOL_VERSION`, by which the others are recognised and refused.

msgspec reads a request straight into its type, so a handler does not check it again, and one that cannot be read is an
error of that request and not of its connection. SQL values, in fields of type ``Any``, are the exception: msgspec would
send them as text, so :mod:`secateur.protocol.values` packs such a message.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from secateur.errors import Error, rebuilt

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


class Failure(msgspec.Struct, frozen=True):
    """An error.

    Attributes:
        error: The name of its class.
        message: Its text.
        details: Its details, by name.
    """

    error: str
    message: str
    details: dict[str, Any] = {}

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Describe an error.

        An exception that is not ours becomes an :class:`~secateur.errors.InternalError` that names its type: the other
        side may not know the class, and must not unpickle it.
        """
        if isinstance(error, Error):
            return cls(type(error).__name__, error.message, error.details)
        return cls("InternalError", f"{type(error).__name__}: {error}")

    def to_error(self) -> Error:
        """The error; one of a class that is unknown here is an :class:`~secateur.errors.InternalError`."""
        return rebuilt(self.error, self.message, self.details)
