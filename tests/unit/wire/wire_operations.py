"""Operations for tests of the wire: one for each way to answer."""

from __future__ import annotations

from typing import Any

import msgspec

from secateur.protocol import Message, Notice, OperationBase, Server, TokenRole, Trait

__all__ = [
    "BadDetails",
    "Bug",
    "Echo",
    "Later",
    "Nonsense",
    "Note",
    "Orders",
    "Promise",
    "Said",
    "Stop",
    "Stream",
    "Unsendable",
    "Wait",
    "WaitAbandoned",
    "Who",
    "WireOperation",
]


class Said(msgspec.Struct, frozen=True):
    """Any values."""

    args: dict[str, Any] = msgspec.field(default_factory=dict)


class _Asked(Message[Said], frozen=True):
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class Echo(_Asked, frozen=True):
    """Answered at once, with what was asked."""


class Later(_Asked, frozen=True):
    """Answered from a task."""


class Wait(_Asked, frozen=True):
    """Answered when the test says so."""


class Promise(_Asked, frozen=True):
    """Answered by a future, when the test says so."""


class WaitAbandoned(_Asked, frozen=True):
    """As Wait, given up when nobody waits for it."""


class Stream(Message[Said], frozen=True):
    """Answered in pieces."""

    pieces: int
    bytes: int


class Who(_Asked, frozen=True):
    """Who asks."""


class Unsendable(_Asked, frozen=True):
    """Answered with what does not travel."""


class Stop(_Asked, frozen=True):
    """Has the handler stop its server."""


class Nonsense(_Asked, frozen=True):
    """The handler gives back nothing."""


class Bug(_Asked, frozen=True):
    """The handler raises what is not ours."""


class BadDetails(_Asked, frozen=True):
    """The handler raises an error that does not travel."""


class Orders(_Asked, frozen=True):
    """There is no such table."""


class Note(Notice, frozen=True):
    """One-way."""

    text: str
    n: int = 0


class WireOperation(OperationBase):
    """The operations."""

    ECHO = 2001, Server.ANY, Echo, TokenRole.CODE
    LATER = 2002, Server.ANY, Later, TokenRole.CODE
    WAIT = 2003, Server.ANY, Wait, TokenRole.CODE
    PROMISE = 2020, Server.ANY, Promise, TokenRole.CODE
    WAIT_ABANDONED = 2004, Server.ANY, WaitAbandoned, TokenRole.CODE, Trait.ABANDONABLE
    STREAM = 2005, Server.ANY, Stream, TokenRole.CODE, Trait.STREAMS
    WHO = 2006, Server.ANY, Who, TokenRole.CODE
    UNSENDABLE = 2007, Server.ANY, Unsendable, TokenRole.CODE
    STOP = 2008, Server.ANY, Stop, TokenRole.CODE
    NONSENSE = 2009, Server.ANY, Nonsense, TokenRole.CODE
    BUG = 2010, Server.ANY, Bug, TokenRole.CODE
    BAD_DETAILS = 2011, Server.ANY, BadDetails, TokenRole.CODE
    ORDERS = 2012, Server.ANY, Orders, TokenRole.CODE
    NOTE = 2013, Server.ANY, Note, TokenRole.CODE
