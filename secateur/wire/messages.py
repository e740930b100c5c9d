"""The requests and replies of a handler, independent of their transport, and their traces on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from secateur.protocol.access import Rights
from secateur.protocol.codec import Codec
from secateur.protocol.message import Role
from secateur.protocol.operations import Operation, OperationBase
from secateur.protocol.tokens import GrantedToken, TokenRole
from secateur.tracing import ServedSpan, TraceContext, carried
from secateur.wire.frames import FrameKind, Payload, encode_frame

if TYPE_CHECKING:
    import asyncio


M = TypeVar("M", covariant=True)
R = TypeVar("R", covariant=True)

_EMPTY = memoryview(b"")


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """The other end of a connection that a server accepted.

    Attributes:
        connection_id: Never reused by this server.
        address: ``host:port`` of the peer's end.
        client: Its name in its hello; for people.
        authenticated: Whether the server has a token and the peer proved it.
        role: The role that it proved.
        session: The session of a client, which may have several connections; of another peer, the connection.
        token: Its token; None for that of the cluster, and where there is none.
        rights: What its bearer may do; None for everything that its role allows. It is worked out anew when roles and
            policies change.
        tenant: Whom its statements are for, see :attr:`~secateur.protocol.tokens.GrantedToken.tenant`; "" for the owner
            of the cluster, and for its processes.
    """

    connection_id: int
    address: str
    client: str
    authenticated: bool
    role: Role = Role.CLIENT
    session: str = ""
    token: GrantedToken | None = None
    rights: Rights | None = None
    tenant: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tenant", "" if self.token is None else self.token.tenant)

    @property
    def token_role(self) -> TokenRole:
        """What the bearer of its token may do."""
        return TokenRole.CODE if self.token is None else self.token.role

    @property
    def token_id(self) -> str | None:
        """Names its token."""
        return None if self.token is None else self.token.id


class Request(msgspec.Struct, Generic[M], frozen=True):
    """A request or notice of a peer: an operation, its message, and the bytes that came with it, if any."""

    operation: OperationBase
    message: M
    payload: memoryview
    peer: PeerInfo


class Reply(msgspec.Struct, Generic[R], frozen=True):
    """A handler's answer: a message of the operation's reply type, and bytes.

    An iterator of replies is sent piece by piece.
    """

    message: R
    payload: Payload = b""


Handled: TypeAlias = Reply[Any] | Awaitable[Reply[Any]] | AsyncIterator[Reply[Any]]
"""The results that a handler may return."""


class Handler(Protocol):
    """The handler of a server's requests. Called on the server's event loop only; must not block it."""

    def handle(self, request: Request[Any]) -> Handled:
        """Answer a request that its sender may ask.

        A Reply returned at once is sent before anything else happens: the fast path. An awaitable is awaited in a task
        of its own, also when the peer has gone meanwhile. The replies of an async iterator are sent as they come, each
        when the peer has room for it; the iterator is closed early if the peer goes, and cancelled where it waits.

        The hello arrives here too, once the token is proven; its reply is the answer to the peer's hello.

        Raises:
            Error: Sent to the peer, which raises it. Any other exception becomes an InternalError there.
        """

    def notify(self, request: Request[Any]) -> None:
        """Take a one-way message, in the order sent. An exception is logged and not sent to the peer."""


class Answer(msgspec.Struct, Generic[R], frozen=True):
    """A reply as it arrives at the side that asked.

    Attributes:
        message: The message; for an answer in several pieces, that of the last piece.
        parts: The payloads in the order sent; one, unless the answer was sent piece by piece.
    """

    message: R
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


CONTROLLER: Final = "controller"
"""The name of the controller in traces."""
_contexts: Final[Codec[TraceContext]] = Codec(TraceContext)
_PLANNING: Final = frozenset({Operation.PREPARE, Operation.EXPLAIN})


def trace_frame() -> bytes:
    """The frame to send before a request; empty outside of traces.

    It is a frame of its own, so that a request without a trace is as long, and as quick to read, as if there were none;
    and it is sent to peers only that have said in their hello that they take it.
    """
    context = carried()
    if context is None:
        return b""
    (frame,) = encode_frame(FrameKind.TRACE, _contexts.encode(context))
    return bytes(frame)


class TracedRequest:
    """A request that a server answers as a part of a trace.

    The header is that of the frame that came before the request.

    Raises:
        ProtocolError: The header is no trace.
    """

    def __init__(self, header: bytes, server: str, operation: OperationBase) -> None:
        kind = "controller" if server == CONTROLLER else "member"
        name = "secateur.plan" if operation in _PLANNING else f"secateur.{kind}"
        described = {f"secateur.{kind}": server, "secateur.operation": operation.title}
        self._span = ServedSpan(_contexts.decode(header), name, described)
        self.context = self._span.context

    def handle(self, handler: Handler, request: Request[Any]) -> Handled:
        """Call the handler in the span; an answer that is there at once ends the span."""
        try:
            handled = self.context.run(handler.handle, request)
        except Exception as error:
            self._span.end(error)
            raise
        if isinstance(handled, Reply):
            self._span.end()
        return handled

    def ended(self, _: asyncio.Task[None]) -> None:
        """End the span with the task that has answered."""
        self._span.end()
