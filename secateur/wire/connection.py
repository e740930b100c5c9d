"""One accepted connection of a :class:`~secateur.wire.server.FrameServer`.

**Invariant**: memory for unsent data is bounded. The server does not read from a peer that does not read: once
``write_buffer_bytes_max`` unsent bytes have piled up, its further requests stay in the socket (and at most one read's
worth of them here) until it has caught up.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias, cast

import msgspec

from secateur.errors import AuthenticationError, Error, InternalError, LimitExceededError, ProtocolError
from secateur.protocol.codec import Codec
from secateur.protocol.hello import FrameLimits, Greeting
from secateur.protocol.message import Failure, Role
from secateur.protocol.operations import Operation, OperationBase
from secateur.protocol.tokens import GrantedToken
from secateur.tracing import is_installed, record_error
from secateur.wire.buffers import FrameReceiver, PayloadBudget, SendBuffer
from secateur.wire.frames import HANDSHAKE_LIMITS, Frame, FrameKind, Limits, Payload, encode_frame
from secateur.wire.handshake import TokenBook, check_hello
from secateur.wire.messages import CONTROLLER, Handler, PeerInfo, Reply, Request, TracedRequest

_log = logging.getLogger(__name__)
_NO_REQUEST: Final = 0
_LINGER_S: Final = 1.0
_UNACKNOWLEDGED_MS: Final = 20_000
_ids = itertools.count(1)
_failures: Final[Codec[Failure]] = Codec(Failure)
_SHORT: Final = (Operation.EXECUTE, Operation.EXECUTE_FIRST_STAGE, Operation.GET_ROWS)
_SHORT_ROLE: Final = max(operation.role for operation in _SHORT)
_OPERATION_AT: Final = 4
"""The place of the code of the operation in the head of a frame: of its lowest byte, and no code needs more."""
_SHORT_CODES: Final = frozenset(operation.code for operation in _SHORT)

Answered: TypeAlias = Callable[[bytes, PeerInfo], bytes | None]
"""A function from the bytes of a short request, and its sender, to the frame that answers it.

It returns None to have the bytes handled as any others; nothing is done then. It is called with whatever arrives at
once from a peer that may make any of these requests, if it begins with the head of one.
"""


@dataclass(frozen=True, slots=True)
class FrameService:
    """What a server does for those who connect.

    Attributes:
        handler: Answers the requests of all connections.
        operations: The operations that it answers beside the hello, by code.
        token: The secret that every connection has to prove in its hello; None asks for none.
        secret: The secret that a peer has to prove to count as a process of the cluster; None treats all as clients.
        tokens: Other tokens that it accepts, with their roles; none by default.
        limits: Bounds of every connection.
        on_gone: Called for every peer that disconnects after its hello.
        answered: Gives what answers statements of a peer before they become requests; None where nothing does.
    """

    handler: Handler
    operations: Mapping[int, OperationBase]
    token: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)
    tokens: TokenBook = field(default_factory=TokenBook)
    limits: Limits = field(default_factory=Limits)
    on_gone: Callable[[PeerInfo], None] | None = None
    answered: Callable[[], Answered | None] = lambda: None


@dataclass(frozen=True, slots=True)
class AcceptedConnections:
    """The connections of one server.

    Attributes:
        held: The bytes that they hold together.
        open: All of them.
        unproven: Those without a good hello, in the order in which they came.
        tasks: What they work on; it may outlive them.
    """

    held: PayloadBudget
    open: set[ServerConnection] = field(default_factory=set)
    unproven: dict[ServerConnection, None] = field(default_factory=dict)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class ServerConnection(FrameReceiver):
    """Reads frames, hands them to the handler, writes its answers.

    Args:
        service: What the server does.
        accepted: All connections of the server; it adds itself.
        refusal: The answer to any hello; None to judge it.
    """

    def __init__(self, service: FrameService, accepted: AcceptedConnections, refusal: Error | None = None) -> None:
        super().__init__(HANDSHAKE_LIMITS, is_stranger=True)
        self._service = service
        self._handler = service.handler
        self._operations = service.operations
        self._limits = service.limits
        self._accepted = accepted
        self._tasks = accepted.tasks
        self._held = accepted.held
        self._refusal = refusal
        self._counted = 0  # bytes of the frame that is arriving
        self._is_held_up = False
        self._streams: set[asyncio.Task[None]] = set()
        self._abandonable: dict[int, asyncio.Task[None]] = {}  # by the id of the request
        self._in_flight = 0
        self._waiting: deque[Frame] = deque()
        self._trace: bytes | None = None  # the header of the frame before a request that is traced
        self._name = ""  # of this server, once it has said hello
        self._gone = asyncio.Event()
        self._peer: PeerInfo | None = None  # None until a good hello
        self._allowed: dict[int, OperationBase] = {}  # what the peer may request, as far as it has requested it
        self._answered: Answered | None = None  # until a good hello of a peer that may make any short request
        self._refused = False
        self._has_said_all = False  # nothing more can be sent: answers that come later are dropped
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport
        self._outbox: SendBuffer

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports only look like one
        self._outbox = SendBuffer(self._transport, self._limits.write_buffer_bytes_max)
        connected = transport.get_extra_info("socket")
        if connected is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
            # A peer whose machine failed does not close the connection: the data sent to it, at least signs of life,
            # then time out.
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)
        self._accepted.open.add(self)
        unproven = self._accepted.unproven
        unproven[self] = None
        if len(unproven) > self._limits.unproven_max:
            oldest = next(iter(unproven))
            del unproven[oldest]
            oldest._transport.abort()
        self._timer = self._loop.call_later(
            self._limits.hello_timeout_s,
            self._refuse,
            ProtocolError(f"no hello within {self._limits.hello_timeout_s:g} s"),
        )

    def pause_writing(self) -> None:
        self._outbox.pause()
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._outbox.resume()
        while self._waiting and self._outbox.is_clear and not self._refused:
            self._take(self._waiting.popleft())
        self._read_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._refused = self._has_said_all = True
        self._gone.set()
        self._outbox.abandon()
        self._drop_waiting()
        self._held.given_up(self, self._counted)
        self._counted = 0
        if self._timer is not None:
            self._timer.cancel()
        self._accepted.open.discard(self)
        self._accepted.unproven.pop(self, None)
        for task in (*self._streams, *self._abandonable.values()):
            task.cancel()  # nobody is left to take the pieces; an iterator may otherwise wait for its next one for ever
        if self._peer is not None and self._service.on_gone is not None:
            self._service.on_gone(self._peer)

    # -- for the server

    def tell_alive(self) -> None:
        """Tell the peer, if it waits for an answer, that this side is at work."""
        if self._in_flight and self._peer is not None and not self._refused and self._outbox.is_clear:
            self._write(FrameKind.ALIVE, b"")

    def access_changed(self, tokens: TokenBook) -> None:
        """Work out anew what the peer may do; hang up, with a word, if its token is not valid any more."""
        if self._peer is None or self._peer.token is None:
            return
        token = tokens.current(self._peer.token)
        if token is None:
            self._refuse(AuthenticationError(f"the token {self._peer.token_id!r} was revoked: use another one"))
        else:
            self._act_as(replace(self._peer, token=token, rights=tokens.rights(token)))

    def _act_as(self, peer: PeerInfo) -> None:
        self._peer = peer
        is_short = peer.role is Role.CLIENT and peer.token_role >= _SHORT_ROLE
        self._answered = self._service.answered() if is_short else None

    def _expire(self, token: GrantedToken) -> None:
        self._refuse(AuthenticationError(f"the token {token.id!r} has expired: connect with another one"))

    async def close(self) -> None:
        """Drop the connection at once."""
        self._transport.abort()
        await self._gone.wait()

    # -- for the bound on what is held

    def hold_up(self) -> None:
        self._is_held_up = True
        self._transport.pause_reading()

    def go_on(self) -> None:
        self._is_held_up = False
        self._read_on()

    def give_way(self) -> None:
        message = (
            f"no byte of a frame has arrived for {self._limits.stalled_s:g} s, and others wait for the"
            " memory that it takes: send it again, with fewer bytes"
        )
        self._refuse(LimitExceededError(message, limit="held_bytes_max", retry_safe=True))
        self._transport.abort()

    def _read_on(self) -> None:
        if self._outbox.is_clear and not self._is_held_up and not self._transport.is_closing():
            self._transport.resume_reading()

    def _drop_waiting(self) -> None:
        size = sum(len(frame.payload) for frame in self._waiting)
        self._waiting.clear()
        if size:
            self._held.release(size)

    # -- frames in

    def buffer_updated(self, nbytes: int) -> None:
        answered = self._answered
        if (
            answered is not None
            and self._read[_OPERATION_AT] in _SHORT_CODES
            and self._decoder.collecting is None  # the stream stands between two frames
            and not self._decoder.partial
            and self._outbox.is_clear
            and not (self._refused or self._waiting or self._trace is not None)
        ):
            assert self._peer is not None
            answer = answered(bytes(self._read[:nbytes]), self._peer)
            if answer is not None:
                self._transport.write(answer)
                return
        super().buffer_updated(nbytes)

    def payload_grew(self, size: int) -> None:
        self._counted += size
        self._held.arrived(self, size)

    def frame_arrived(self, frame: Frame) -> bool:
        if frame.payload:
            counted, self._counted = self._counted, 0
            self._held.completed(self, len(frame.payload) - counted)
        if self._refused:
            self._held.release(len(frame.payload))
        elif self._waiting or not self._outbox.is_clear:
            self._waiting.append(frame)
        elif frame.kind is FrameKind.REQUEST and self._peer is not None:  # nearly every frame
            if not self._answer(frame, self._peer) and frame.payload:
                self._held.release(len(frame.payload))
        else:
            self._take(frame)
        return not self._refused

    def frames_failed(self, error: Error) -> None:
        self._refuse(error)

    def _take(self, frame: Frame) -> None:
        is_kept = False
        if frame.kind is FrameKind.REQUEST:
            if self._peer is None:
                self._greet(frame)
            else:
                is_kept = self._answer(frame, self._peer)
        elif frame.kind is FrameKind.CANCEL and self._peer is not None:
            task = self._abandonable.get(frame.request_id)
            if task is not None:
                task.cancel()
        elif frame.kind is FrameKind.TRACE and self._peer is not None:
            self._trace = frame.header
        elif frame.kind is FrameKind.NOTIFY and self._peer is not None:
            self._notify(frame, self._peer)
        else:
            self._refuse(
                ProtocolError(f"a client may not send {frame.kind.name}" + ("" if self._peer else " before its hello"))
            )
        if frame.payload and not is_kept:
            self._held.release(len(frame.payload))

    def _greet(self, frame: Frame) -> None:
        service, accepted = self._service, self._accepted
        try:
            if self._refusal is not None:
                raise self._refusal
            proven = check_hello(frame, service.token, service.secret, service.tokens)
        except Error as error:
            self._refuse(error, frame.request_id)
            return
        accepted.unproven.pop(self, None)
        if len(accepted.open) - len(accepted.unproven) > self._limits.connections_max:
            message = (
                f"the server keeps at most {self._limits.connections_max} connections open: close some, or raise"
                " connections_max"
            )
            self._refuse(LimitExceededError(message, limit="connections_max", retry_safe=True), frame.request_id)
            return
        if self._timer is not None:
            self._timer.cancel()
        self.read_more()
        host, port, *_ = self._transport.get_extra_info("peername") or ("?", 0)
        connection_id = next(_ids)
        token = proven.token
        peer = PeerInfo(
            connection_id,
            f"{host}:{port}",
            proven.client,
            service.token is not None,
            proven.role,
            proven.session or f"connection {connection_id}",
            token,
            service.tokens.rights(token),
        )
        self._decoder.limits = self._limits
        self._act_as(peer)
        if token is not None and token.expires is not None:
            self._timer = self._loop.call_later(max(token.expires - time.time(), 0.0), self._expire, token)
        self._answer(frame, peer)

    def _checked(self, frame: Frame, peer: PeerInfo) -> OperationBase:
        """The operation of a frame, if its sender may request it.

        Raises:
            ProtocolError: There is no such operation here.
            AuthenticationError: Its sender may not request the operation, or the role of its token does not allow it.
        """
        operation = self._operations.get(frame.operation)
        if operation is None or (operation.reply is None) is not (frame.kind is FrameKind.NOTIFY):
            raise ProtocolError(
                f"this server has no operation {frame.operation} for a {frame.kind.name} frame: does the address belong"
                " to a member where a controller is meant, or the other way round?"
            )
        if peer.role not in operation.callers:
            raise AuthenticationError(
                f"{operation.title!r} may be asked by {' or '.join(sorted(operation.callers))} of this cluster only,"
                f" and {peer.address} has said hello as {peer.role.value}; nothing was done"
            )
        if peer.token_role < operation.role:
            raise AuthenticationError(
                f"{operation.title!r} needs a token with the role {operation.role.title!r}, and the token"
                f" {peer.token_id!r} of this connection has the role {peer.token_role.title!r}; nothing was done"
            )
        if frame.kind is FrameKind.REQUEST:
            self._allowed[frame.operation] = operation  # the peer stays who it is for as long as it is connected
        return operation

    def _answer(self, frame: Frame, peer: PeerInfo) -> bool:
        """Answer a request, now or in a task of its own; whether the latter, which then holds the payload."""
        request_id = frame.request_id
        trace, self._trace, traced = self._trace, None, None
        if self._in_flight >= self._limits.requests_in_flight_max:
            message = (
                f"{self._in_flight} requests of this connection are in flight: wait for answers, open another"
                " connection, or raise requests_in_flight_max"
            )
            self._send_error(request_id, LimitExceededError(message, limit="requests_in_flight_max", retry_safe=True))
            return False
        try:
            operation = self._allowed.get(frame.operation) or self._checked(frame, peer)
            request = Request(operation, operation.requests.decode(frame.header), frame.payload, peer)
            if trace is None:
                reply = self._handler.handle(request)
            else:
                traced = TracedRequest(trace, self._name, operation)
                reply = traced.handle(self._handler, request)
        except Exception as error:
            self._send_error(request_id, error)
            return False
        if isinstance(reply, Reply):
            self._send_reply(FrameKind.RESPONSE, request_id, operation, reply)
            return False
        if type(reply) is asyncio.Future and traced is None and not operation.is_abandonable:
            # A write that waits for its copies: its answer needs no task that waits as well.
            self._in_flight += 1
            reply.add_done_callback(partial(self._settled, request_id, operation, len(request.payload)))
            return True
        task = self._loop.create_task(
            self._finish(request_id, operation, reply),
            name=f"answer {operation.title}",
            context=None if traced is None else traced.context,
        )
        if traced is not None:
            task.add_done_callback(traced.ended)
        self._in_flight += 1
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        if isinstance(reply, Coroutine):
            task.add_done_callback(
                lambda _: reply.close()
            )  # of a task that is cancelled before it begins, it would never be awaited
        if operation.is_abandonable:
            self._abandonable[request_id] = task
            task.add_done_callback(lambda _: self._abandonable.pop(request_id, None))
        if not isinstance(reply, Awaitable):
            self._streams.add(task)
            task.add_done_callback(self._streams.discard)
        if request.payload:
            size = len(request.payload)
            task.add_done_callback(lambda _: self._held.release(size))
        return True

    def _notify(self, frame: Frame, peer: PeerInfo) -> None:
        try:
            operation = self._checked(frame, peer)
            self._handler.notify(Request(operation, operation.requests.decode(frame.header), frame.payload, peer))
        except Exception:
            _log.exception("the notice of operation %d from %s failed", frame.operation, peer.address)

    # -- frames out

    async def _finish(
        self, request_id: int, operation: OperationBase, reply: Awaitable[Reply[Any]] | AsyncIterator[Reply[Any]]
    ) -> None:
        """Await an answer that was not there at once, and send it when the peer has room."""
        try:
            if isinstance(reply, Awaitable):
                last = await reply
            else:
                last = None
                await self._stream(request_id, operation, reply)
        except Exception as error:
            self._send_error(request_id, error)
            return
        await self._outbox.clear.wait()
        if last is None:
            self._write(FrameKind.RESPONSE, b"", b"", request_id)  # the pieces have said everything
        else:
            self._send_reply(FrameKind.RESPONSE, request_id, operation, last)

    def _settled(
        self, request_id: int, operation: OperationBase, payload_bytes: int, done: asyncio.Future[Reply[Any]]
    ) -> None:
        """Send the answer that a future has, once it is done."""
        self._in_flight -= 1
        if payload_bytes:
            self._held.release(payload_bytes)
        if done.cancelled():
            return
        error = done.exception()
        if error is None:
            self._send_reply(FrameKind.RESPONSE, request_id, operation, done.result())
        elif isinstance(error, Exception):
            self._send_error(request_id, error)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._in_flight -= 1
        self._tasks.discard(task)

    async def _stream(self, request_id: int, operation: OperationBase, replies: AsyncIterator[Reply[Any]]) -> None:
        try:
            async for reply in replies:
                await self._outbox.clear.wait()
                if self._transport.is_closing():
                    return
                self._send_reply(FrameKind.PART, request_id, operation, reply)
                await asyncio.sleep(
                    0
                )  # neither a ready iterator nor a full socket suspends: others get their turn here
        finally:
            closing = getattr(replies, "aclose", None)
            if closing is not None:
                await closing()

    def _send_reply(self, kind: FrameKind, request_id: int, operation: OperationBase, reply: Reply[Any]) -> None:
        message = reply.message
        if type(message) is Greeting:
            self._name = message.member or CONTROLLER
            token = None if self._peer is None else self._peer.token
            message = msgspec.structs.replace(
                message,
                limits=FrameLimits(self._limits.frame_bytes_max, self._limits.header_bytes_max),
                is_limited=self._peer is not None and self._peer.rights is not None,
                expires_in_s=None if token is None or token.expires is None else token.expires - time.time(),
                takes_traces=is_installed(),
            )
        try:
            self._write(kind, operation.replies.encode(message), reply.payload, request_id)
        except Error as error:
            self._send_error(request_id, error)

    def _send_error(self, request_id: int, error: Exception) -> None:
        record_error(error)
        if not isinstance(error, Error):
            _log.error("request %d failed with an error that is not ours", request_id, exc_info=error)
        try:
            self._write(FrameKind.ERROR, _failures.encode(Failure.of(error)), b"", request_id)
        except Error as unsendable:
            reduced = InternalError(f"an error could not be sent: {unsendable.message}; it was: {str(error)[:10_000]}")
            self._write(FrameKind.ERROR, _failures.encode(Failure.of(reduced)), b"", request_id)

    def _write(self, kind: FrameKind, header: bytes, payload: Payload = b"", request_id: int = _NO_REQUEST) -> None:
        buffers = encode_frame(kind, header, payload, self._limits, request_id=request_id)
        if not self._has_said_all and not self._transport.is_closing():
            self._outbox.write(buffers)

    def _refuse(self, error: Error, request_id: int = _NO_REQUEST) -> None:
        """Send an error and close the connection.

        Data that the peer still sends is read and dropped for a moment: closing on unread bytes would reset the
        connection and lose the error.
        """
        if self._refused:
            return
        self._refused = True
        self._drop_waiting()
        self._send_error(request_id, error)
        if self._timer is not None:
            self._timer.cancel()
        if self._outbox.is_clear:
            with contextlib.suppress(OSError, NotImplementedError):
                self._transport.write_eof()
                self._has_said_all = True
        self._timer = self._loop.call_later(_LINGER_S, self._transport.abort)
