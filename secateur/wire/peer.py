"""An asyncio connection for members and controllers: many requests in flight on one socket."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar, cast

from secateur import errors
from secateur.protocol.codec import Codec
from secateur.protocol.hello import Greeting, Hello
from secateur.protocol.message import Failure, Message, Notice
from secateur.protocol.operations import OperationBase, operation_of
from secateur.tracing import is_traced
from secateur.wire.buffers import FrameReceiver, SendBuffer
from secateur.wire.frames import REQUEST_ID_MAX, Frame, FrameKind, Limits, Payload, encode_frame
from secateur.wire.handshake import hello, peer_limits
from secateur.wire.messages import Answer, trace_frame
from secateur.wire.tls import Tls, client_context, handshake_error

R = TypeVar("R")

_log = logging.getLogger(__name__)
_failures: Final[Codec[Failure]] = Codec(Failure)


class Peer:
    """A connection to a :class:`~secateur.wire.server.FrameServer`.

    It is opened at the first request, and again after it broke.

    To be used on one event loop. Requests are answered in any order; notifications arrive in the order sent. It never
    repeats a request.

    Args:
        host: Host name or address.
        port: Port.
        said: What it says first: who asks, with a proof.
        timeout_s: Seconds without a sign of life after which the peer counts as silent, while it owes an answer and
            while the connection is made; None waits for ever. A request with a time-out of its own waits for that long
            at most, whether there are signs or not.
        limits: Bounds on frames, both ways.
        on_broken: Called when a connection has broken over which notices were sent: they may not have arrived.
        tls: How to encrypt the connection, and whom to trust; None for a server without TLS.
    """

    def __init__(
        self,
        host: str,
        port: int,
        said: Hello | None = None,
        *,
        timeout_s: float | None = 30.0,
        limits: Limits | None = None,
        on_broken: Callable[[errors.Error], None] | None = None,
        tls: Tls | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._hello = hello() if said is None else said
        self._timeout_s = timeout_s
        self._limits = limits or Limits()
        self._on_broken = on_broken
        self._tls = tls
        self._link: _Link | None = None
        self._connecting: asyncio.Task[_Link] | None = None
        self._closed = False

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    async def request(
        self, message: Message[R], payload: Payload = b"", *, timeout_s: float | None = None
    ) -> Answer[R]:
        """Send a request and wait for the whole answer.

        Raises:
            Error: The error that the server sent.
            UnreachableError: The server cannot be reached; nothing was sent.
            MemberLostError: The connection broke; whether the request was carried out is unknown.
            DeadlineError: No answer in time; whether the request was carried out is unknown. The request is cancelled
                at
                the peer.
            LimitExceededError: The request is larger than the limits allow; nothing was sent.
            SerializationError: A value in it cannot be serialized; nothing was sent.
        """
        operation = operation_of(message)
        link = await self._connected()
        request_id = link.ask(operation, operation.requests.encode(message), payload)
        header = b""
        parts: list[memoryview] = []
        try:
            while True:
                frame = await self._answer(link, request_id, operation, timeout_s)
                header = frame.header or header  # behind several pieces comes a frame that only ends them
                if frame.payload:
                    parts.append(frame.payload)
                if frame.kind is FrameKind.RESPONSE:
                    return Answer(operation.replies.decode(header), tuple(parts))
        except (asyncio.CancelledError, errors.DeadlineError):
            link.give_up(request_id)
            raise
        finally:
            link.forget(request_id)

    def ask_now(self, message: Message[R], payload: Payload, heard: Callable[[R | errors.Error], None]) -> bool:
        """Send a request in this turn of the loop, if the connection is open: without a task that waits for the answer.

        Args:
            message: The request. Its answer is a message without a payload.
            payload: Bytes to go with it.
            heard: Called once, with the message of the answer or the error that :meth:`request` would raise. It may
                not raise.

        Returns:
            Whether it was sent; if not, ``heard`` is never called, and :meth:`request` opens a connection.

        Raises:
            LimitExceededError, SerializationError: As :meth:`request`; nothing was sent.
        """
        link = self._link
        if link is None or link.failure is not None or self._closed:
            return False
        operation = operation_of(message)
        _Hearing(link, operation, operation.requests.encode(message), payload, self._timeout_s, heard)
        return True

    async def notify(self, notice: Notice, payload: Payload = b"") -> None:
        """Send a one-way message; waits only while the peer does not read.

        Raises:
            UnreachableError: The server cannot be reached; nothing was sent.
            MemberLostError: The connection broke while waiting.
        """
        link = await self._connected()
        await link.writable()
        operation = operation_of(notice)
        link.on_broken = self._broken
        link.send(FrameKind.NOTIFY, operation.requests.encode(notice), payload, operation=operation.code)

    async def close(self) -> None:
        """Disconnect for good; requests in flight fail, also those that wait for a connection. May be called twice."""
        self._closed = True
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.cancel()
            await asyncio.wait([connecting])
        link, self._link = self._link, None
        if link is not None:
            await link.close(errors.InterfaceError(f"the connection to {self.address} was closed by this side"))

    def _broken(self, error: errors.Error) -> None:
        if not self._closed and self._on_broken is not None:
            self._on_broken(error)

    async def _answer(self, link: _Link, request_id: int, operation: OperationBase, timeout_s: float | None) -> Frame:
        loop = asyncio.get_running_loop()
        waited = self._timeout_s if timeout_s is None else timeout_s
        since_s = loop.time()
        while True:
            try:
                async with asyncio.timeout_at(None if waited is None else since_s + waited):
                    return await link.answer(request_id)
            except TimeoutError as error:
                if timeout_s is None and link.heard_s > since_s:
                    since_s = link.heard_s
                    continue
                raise _too_late(self.address, operation, waited or 0.0) from error

    async def _connected(self) -> _Link:
        link = self._link
        if link is not None and link.failure is None:
            return link
        if self._closed:
            raise errors.InterfaceError(f"the connection to {self.address} is closed")
        if self._connecting is None:  # one connection, however many requests wait for it
            self._connecting = asyncio.get_running_loop().create_task(self._open(), name=f"connect to {self.address}")
            self._connecting.add_done_callback(self._opened)
        connecting = self._connecting
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            if not connecting.cancelled():
                raise
            raise errors.InterfaceError(f"the connection to {self.address} was closed by this side") from None

    def _opened(self, connecting: asyncio.Task[_Link]) -> None:
        if self._connecting is connecting:
            self._connecting = None
        if not connecting.cancelled() and connecting.exception() is None:
            self._link = connecting.result()

    async def _open(self) -> _Link:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout_s):
                _, link = await loop.create_connection(
                    lambda: _Link(self.address, self._limits),
                    self.host,
                    self.port,
                    ssl=None if self._tls is None else client_context(self._tls),
                    server_hostname=None if self._tls is None else self._tls.server_name or self.host,
                )
        except ssl.SSLError as error:
            raise handshake_error(self.address, error) from error
        except (OSError, TimeoutError) as error:
            raise errors.UnreachableError(
                f"no process answers at {self.address} ({error}): check that the process there lives",
                address=self.address,
                refused=isinstance(error, ConnectionRefusedError),
            ) from error
        operation = operation_of(self._hello)
        request_id = link.ask(operation, operation.requests.encode(self._hello), b"")
        try:
            async with asyncio.timeout(self._timeout_s):
                frame = await link.answer(request_id)
        except (TimeoutError, errors.MemberLostError) as error:
            await link.close(errors.ProtocolError("no hello"))
            raise errors.UnreachableError(
                f"{self.address} accepted the connection but did not answer the hello: the process there is"
                " stopped, overloaded or about to end",
                address=self.address,
            ) from error
        except BaseException:
            await link.close(errors.ProtocolError("no hello"))
            raise
        link.forget(request_id)
        link.greeted(operation.replies.decode(frame.header))
        return link


def _too_late(address: str, operation: OperationBase, waited_s: float) -> errors.DeadlineError:
    return errors.DeadlineError(
        f"{address} did not answer {operation.title!r} within {waited_s:g} s; it may still be carried out",
        address=address,
    )


class _Answers(Protocol):
    """A queue for the answers to one request."""

    def put_nowait(self, answer: Frame | errors.Error, /) -> None:
        """The next piece of the answer, or the error that ends it."""


class _Hearing:
    """A request whose answer is passed to a function; made when it is sent."""

    __slots__ = ("_heard", "_link", "_operation", "_request_id", "_timeout_s", "since_s")

    def __init__(
        self,
        link: _Link,
        operation: OperationBase,
        header: bytes,
        payload: Payload,
        timeout_s: float | None,
        heard: Callable[[Any], None],
    ) -> None:
        self._link = link
        self._operation = operation
        self._heard = heard
        self._timeout_s = timeout_s
        self._request_id = link.ask(operation, header, payload, self)
        self.since_s = 0.0
        """Since when the peer owes the answer, on the clock of the loop."""
        if timeout_s is not None:
            link.hear_in_time(self._request_id, self, timeout_s)

    def put_nowait(self, answer: Frame | errors.Error, /) -> None:
        if isinstance(answer, errors.Error):
            self._end(answer)
        elif answer.kind is FrameKind.RESPONSE:
            try:
                message = self._operation.replies.decode(answer.header)
            except errors.Error as error:
                self._end(error)
            else:
                self._end(message)

    def waited(self) -> None:
        """The answer has not come in time."""
        assert self._timeout_s is not None
        self._link.give_up(self._request_id)
        self._end(_too_late(self._link.address, self._operation, self._timeout_s))

    def _end(self, outcome: Any) -> None:
        self._link.forget(self._request_id)
        try:
            self._heard(outcome)
        except Exception:  # it would break the connection, on which others wait for their answers
            _log.exception("what has heard the answer to %s failed", self._operation.title)


class _Link(FrameReceiver):
    """One TCP connection of a Peer, from connect to the first failure."""

    def __init__(self, address: str, limits: Limits) -> None:
        super().__init__(limits)
        self.failure: errors.Error | None = None
        self.on_broken: Callable[[errors.Error], None] = lambda _: None
        self.heard_s = 0.0
        """The time of the peer's last sign of life, on the clock of the loop."""
        self.address = address
        self._limits = limits
        self._send_limits = limits
        self._takes_traces = False
        self._answers: dict[int, _Answers] = {}
        self._gone = asyncio.Event()
        self._hearings: dict[int, _Hearing] = {}  # those that have a time-out, which all have the same one
        self._hearing_timer: asyncio.TimerHandle | None = None
        self._last_id = 0
        self._transport: asyncio.Transport
        self._outbox: SendBuffer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports only look like one
        self._outbox = SendBuffer(self._transport, self._limits.write_buffer_bytes_max)

    def frames_failed(self, error: errors.Error) -> None:
        self._fail(error)

    def pause_writing(self) -> None:
        self._outbox.pause()

    def resume_writing(self) -> None:
        self._outbox.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        self._fail(
            errors.MemberLostError(
                f"the connection to {self.address} broke: {exc or 'the peer closed it'}", address=self.address
            )
        )

    def greeted(self, greeting: Greeting) -> None:
        self._send_limits, self._takes_traces = peer_limits(greeting, self._limits), greeting.takes_traces

    def ask(self, operation: OperationBase, header: bytes, payload: Payload, answers: _Answers | None = None) -> int:
        """Send a request; its answers go to ``answers``, or are awaited with :meth:`answer`, until :meth:`forget`."""
        if len(self._answers) >= self._limits.requests_in_flight_max:
            raise errors.LimitExceededError(
                f"{len(self._answers)} requests to {self.address} are in flight: wait for answers or raise"
                " requests_in_flight_max",
                limit="requests_in_flight_max",
                retry_safe=True,
            )
        self._last_id = self._last_id % REQUEST_ID_MAX + 1
        self.send(FrameKind.REQUEST, header, payload, operation=operation.code, request_id=self._last_id)
        self._answers[self._last_id] = asyncio.Queue[Frame | errors.Error]() if answers is None else answers
        return self._last_id

    async def answer(self, request_id: int) -> Frame:
        """The next piece of the answer."""
        queue = self._answers[request_id]
        assert isinstance(queue, asyncio.Queue)
        if self.failure is not None and queue.empty():
            raise self.failure
        got: Frame | errors.Error = await queue.get()
        if isinstance(got, errors.Error):
            raise got
        return got

    def hear_in_time(self, request_id: int, hearing: _Hearing, timeout_s: float) -> None:
        """Give a request up when its answer has not come in time.

        One timer looks after all: to set one takes longer than to send a small request, and hardly any ever goes off.
        """
        loop = asyncio.get_running_loop()
        hearing.since_s = loop.time()
        self._hearings[request_id] = hearing
        if self._hearing_timer is None:
            self._hearing_timer = loop.call_later(timeout_s, self._hear_late, timeout_s)

    def _hear_late(self, timeout_s: float) -> None:
        """Some answer may be late; other signs of life of the peer count, as for those that wait for an answer."""
        loop = asyncio.get_running_loop()
        self._hearing_timer, now_s = None, loop.time()
        for hearing in list(self._hearings.values()):
            hearing.since_s = max(hearing.since_s, self.heard_s)
            if hearing.since_s + timeout_s <= now_s:
                hearing.waited()
        if self._hearings and self.failure is None:
            first_s = min(hearing.since_s for hearing in self._hearings.values())
            self._hearing_timer = loop.call_at(first_s + timeout_s, self._hear_late, timeout_s)

    def forget(self, request_id: int) -> None:
        self._answers.pop(request_id, None)
        self._hearings.pop(request_id, None)

    def give_up(self, request_id: int) -> None:
        """Cancel a request whose answer is no longer needed."""
        if self.failure is None:
            self.send(FrameKind.CANCEL, b"", b"", request_id=request_id)

    def send(
        self, kind: FrameKind, header: bytes, payload: Payload, *, operation: int = 0, request_id: int = 0
    ) -> None:
        buffers = encode_frame(kind, header, payload, self._send_limits, operation=operation, request_id=request_id)
        if self.failure is not None:
            raise self.failure
        if kind is FrameKind.REQUEST and self._takes_traces and is_traced() and (trace := trace_frame()):
            buffers[0] = trace + buffers[0]
        self._outbox.write(buffers)

    async def writable(self) -> None:
        await self._outbox.clear.wait()
        if self.failure is not None:
            raise self.failure

    async def close(self, reason: errors.Error) -> None:
        self._fail(reason)
        await self._gone.wait()

    def frame_arrived(self, frame: Frame) -> bool:
        request_id = frame.request_id
        queue = self._answers.get(request_id)
        match frame.kind:
            case FrameKind.ALIVE:
                self.heard_s = asyncio.get_running_loop().time()
            case FrameKind.ERROR if queue is None:
                if not request_id:  # an error of the connection, not of a request that was given up
                    self._fail(_failures.decode(frame.header).to_error())
            case FrameKind.ERROR if queue is not None:
                queue.put_nowait(_failures.decode(frame.header).to_error())
            case FrameKind.RESPONSE | FrameKind.PART:
                if queue is not None:
                    queue.put_nowait(frame)
            case kind:
                self._fail(
                    errors.ProtocolError(
                        f"{self.address} sent a {kind.name} frame to the side that asks", address=self.address
                    )
                )
        return True

    def _fail(self, error: errors.Error) -> None:
        if self.failure is not None:
            return
        self.failure = error
        if self._hearing_timer is not None:
            self._hearing_timer.cancel()
            self._hearing_timer = None
        for answers in tuple(self._answers.values()):
            answers.put_nowait(error)
        self._outbox.abandon()
        self._transport.abort()
        self.on_broken(error)
