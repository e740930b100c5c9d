"""A blocking connection to a server, for clients."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from secateur import errors
from secateur.forks import free_in_forks
from secateur.protocol.codec import DECODE_ERRORS, Codec
from secateur.protocol.hello import Greeting, Hello
from secateur.protocol.message import Failure, Message
from secateur.protocol.operations import OperationBase, operation_of
from secateur.tracing import is_configured, is_traced
from secateur.wire.frames import (
    HEAD_BYTES,
    REQUEST_ID_MAX,
    REQUEST_START,
    RESPONSE_START,
    SHORT_HEAD,
    Frame,
    FrameDecoder,
    FrameKind,
    Limits,
    Payload,
    encode_frame,
)
from secateur.wire.handshake import hello, peer_limits
from secateur.wire.messages import Answer, trace_frame
from secateur.wire.tls import Tls, client_context, handshake_error
from secateur.wire.waits import BLOCKING, TIMEOUTS, CallControl, Stream, Waits, wait_at_most

R = TypeVar("R")
T = TypeVar("T")

_failures: Final[Codec[Failure]] = Codec(Failure)

_READ_BYTES: Final = 64 << 10
_SHORT_BYTES_MAX: Final = 32 << 10
"""Headers up to this size are sent without a look at the limits of the peer."""
_SEND_BYTES: Final = 1 << 20
"""A piece of a large payload: the silence of a peer that does not read is measured for each."""
_CONNECT_S_MIN: Final = 0.001
SILENCE_S: Final = 5.0
"""Seconds that a peer may be silent while it owes an answer.

A working server sends a sign of life every second; see :data:`~secateur.wire.frames.FrameKind.ALIVE`.
"""


@dataclass(frozen=True, slots=True)
class SilenceRule:
    """When a silent peer counts as lost.

    Attributes:
        after_s: The seconds until then, also while the connection is made.
        is_awaited: Asked when the peer has been silent for so long while it owes an answer: whether it can still come,
            for at most ``SILENCE_S``; told what may end the request. None: it cannot.
    """

    after_s: float = SILENCE_S
    is_awaited: Callable[[CallControl | None], bool] | None = None


class Channel:
    """One TCP connection to a :class:`~secateur.wire.server.FrameServer`.

    It is opened at the first request, and again after it broke.

    Thread-safe: one request at a time, others wait. After an error that the server sent, the channel is usable; after
    a timeout or a broken connection it is disconnected, and the next request connects anew. It never repeats a request.
    In a process that was forked it is disconnected as well: the connection stays that of the parent.

    Args:
        host: Host name or address.
        port: Port.
        said: What it says first: who asks, with a proof.
        timeout_s: Seconds to wait for more of an answer unless the request has its own; None waits as long as the
            peer shows signs of life.
        silence: When a silent peer counts as lost.
        limits: Bounds on frames, both ways; the server's bounds also apply if they are tighter.
        tls: How to encrypt the connection, and whom to trust; None for a server without TLS.
        waits: What a request does while it waits.
    """

    _socket: Stream | None = None  # on the class, for a channel whose __init__ was called wrongly

    def __init__(
        self,
        host: str,
        port: int,
        said: Hello | None = None,
        *,
        timeout_s: float | None = None,
        silence: SilenceRule = SilenceRule(),
        limits: Limits | None = None,
        tls: Tls | None = None,
        waits: Waits = BLOCKING,
    ) -> None:
        self.host = host
        self.port = port
        self.hello = Greeting()
        """The server's answer to the hello of the present connection."""
        self._hello = hello() if said is None else said
        self._timeout_s = timeout_s
        self._silence_s = silence.after_s
        self._is_awaited = silence.is_awaited
        self._tls = tls
        self._limits = limits or Limits()
        self._send_limits = self._limits
        self._takes_traces = False
        self._wait_s = 0.0  # how long the socket waits for the next bytes; 0 before that was said
        self._waits = waits
        self._lock = waits.lock()
        # Of the request under way: what it asks, what may end it, and how long its answer may take.
        self._operation: OperationBase = operation_of(self._hello)
        self._control: CallControl | None = None
        self._wanted_s: float | None = None
        self._end_s: float | None = None
        # An answer that was not read to its end would be mistaken for the next one: its connection ends.
        self._is_owed = False
        # The connection while nothing is left to be read, and neither a time-out to be set nor a trace to be sent.
        self._at_rest: Stream | None = None
        self._decoder = FrameDecoder(self._limits)
        self._frames: Iterator[Frame] = iter(())
        self._last_id = 0
        self._closed = False
        free_in_forks(self)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def connect(self) -> Greeting:
        """Connect now unless connected; returns the server's answer to hello.

        Raises:
            UnreachableError: The server cannot be reached.
            AuthenticationError: The token is missing or wrong, or the certificate of the server is not accepted.
            ProtocolError: The process that answers is not a secateur server.
        """
        with self._lock:
            self._ready()
            return self.hello

    def request(
        self,
        message: Message[R],
        payload: Payload = b"",
        *,
        timeout_s: float | None = None,
        control: CallControl | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Answer[R]:
        """Send a request and wait for the whole answer.

        Args:
            message: The request.
            payload: Bytes to go with it.
            timeout_s: Seconds to wait, once for the connection if it has to be made, and once for the answer; None
                takes the channel's.
            control: Can end the call.
            meanwhile: Called once the request is sent, before the answer is read. It may ask over other channels, so
                that several servers work at the same time; it raises nothing of its own.

        Raises:
            Error: The error that the server sent, or the reason why ``control`` ended the call.
            UnreachableError: The server cannot be reached; nothing was sent.
            MemberLostError: The connection broke, or the peer was silent; whether the request was carried out is
                unknown.
            DeadlineError: No answer in time; whether the request was carried out is unknown.
            LimitExceededError: The request is larger than the limits allow; nothing was sent.
            SerializationError: A value in it cannot be serialized; nothing was sent.
        """
        operation = operation_of(message)
        header = operation.requests.encode(message)
        return self.exchange(operation, header, payload, timeout_s=timeout_s, control=control, meanwhile=meanwhile)

    def exchange(
        self,
        operation: OperationBase,
        header: bytes,
        payload: Payload = b"",
        *,
        timeout_s: float | None = None,
        control: CallControl | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Answer[Any]:
        """As :meth:`request`, for a message that is encoded already."""
        with self._lock:
            if control is not None:
                control.calls.append(self)
            self._control = control
            try:
                if control is not None and (control.ended is not None or control.deadline_s is not None):
                    control.check()
                connected = self._at_rest
                if (
                    connected is None
                    or payload
                    or timeout_s is not None
                    or (control is not None and control.deadline_s is not None)
                    or len(header) > _SHORT_BYTES_MAX
                ):
                    self._at_rest = None
                    if self._socket is None or self._closed:
                        self._ready_under(control, timeout_s)
                    self._write(operation, header, payload, timeout_s)
                    if meanwhile is not None:
                        meanwhile()
                    return self._read()
                # Nearly always: what _write and _read do stands here for a short request and a short answer, since each
                # function that is called costs as much as what it does. Any other answer is left to _read.
                self._operation, self._wanted_s, self._end_s, self._is_owed = operation, None, None, True
                self._last_id = request_id = self._last_id % REQUEST_ID_MAX + 1
                try:
                    connected.sendall(
                        SHORT_HEAD.pack(REQUEST_START, operation.code, request_id, len(header), 0) + header
                    )
                    if meanwhile is not None:
                        meanwhile()
                    try:
                        data = connected.recv(_READ_BYTES)
                    except TIMEOUTS:
                        data = self._received_late(connected.recv, _READ_BYTES)
                except OSError as error:
                    raise self._broken(error) from error
                try:
                    start, _, answered, header_bytes, payload_bytes = SHORT_HEAD.unpack_from(data)
                    is_whole = HEAD_BYTES + header_bytes == len(data) and not payload_bytes
                    if is_whole and start == RESPONSE_START and answered == request_id:
                        message = operation.replies.decode_small(data[HEAD_BYTES:])
                        self._is_owed = False
                        return Answer(message)
                except DECODE_ERRORS:
                    pass  # it is read again, and then said
                self._at_rest, self._frames = None, self._decoder.feed(data)
                return self._read()
            finally:
                if self._is_owed:
                    self._disconnect()
                self._control = None
                if control is not None:
                    control.calls.remove(self)
                    if control.ended is not None:
                        control.settle()

    def abort(self) -> None:
        """Close the connection from another thread than the one whose request waits.

        That request fails, and the next one connects anew.
        """
        connected = self._socket
        if connected is not None:
            with contextlib.suppress(OSError):
                if isinstance(connected, ssl.SSLSocket):  # of that below: else the other thread goes on unencrypted
                    socket.socket.shutdown(connected, socket.SHUT_RDWR)
                else:
                    connected.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Disconnect for good. May be called twice, and from another thread to end a request that waits."""
        self._closed = True
        self.abort()
        with self._lock:
            self._disconnect()

    def __del__(self) -> None:
        self._disconnect()  # a channel that is dropped hangs up, without a ResourceWarning from inside of it

    def _ready(self, timeout_s: float | None = None) -> None:
        """Connect unless connected."""
        if self._closed:
            raise errors.InterfaceError(f"the channel to {self.address} is closed")
        if self._socket is None:
            self._connect(timeout_s)

    def _ready_under(self, control: CallControl | None, timeout_s: float | None) -> None:
        """Connect for a call, which may be ended meanwhile.

        At its deadline it is. Who cancels it hangs up a connection that waits for the hello; one to a host that does
        not answer at all is given up after the silence that is allowed.
        """
        if control is None:
            self._ready(timeout_s)
            return
        if control.deadline_s is not None:
            left_s = max(control.deadline_s - time.monotonic(), _CONNECT_S_MIN)
            timeout_s = left_s if timeout_s is None else min(left_s, timeout_s)
        try:
            self._ready(timeout_s)
        except errors.UnreachableError as error:
            if (ended := control.error) is not None:
                raise ended from error
            raise
        control.check()

    def _write(
        self, operation: OperationBase, header: bytes, payload: Payload = b"", timeout_s: float | None = None
    ) -> None:
        """Send a request over the connection that there is, and note what its answer needs."""
        self._operation = operation
        self._last_id = request_id = self._last_id % REQUEST_ID_MAX + 1
        buffers = encode_frame(
            FrameKind.REQUEST, header, payload, self._send_limits, operation=operation.code, request_id=request_id
        )
        if self._takes_traces and is_traced() and (trace := trace_frame()):
            buffers[0] = trace + buffers[0]
        self._wanted_s = wanted_s = self._timeout_s if timeout_s is None else timeout_s
        self._end_s = None if wanted_s is None else time.monotonic() + wanted_s
        if self._control is not None and (deadline_s := self._control.deadline_s) is not None:
            self._end_s = deadline_s if self._end_s is None else min(self._end_s, deadline_s)
        self._is_owed = True
        try:
            if self._end_s is not None or self._wait_s != self._silence_s:
                self._wait()
            connected = self._socket
            assert connected is not None
            for buffer in buffers:
                if len(buffer) <= _SEND_BYTES:
                    connected.sendall(buffer)
                else:
                    _send_in_pieces(connected, buffer)
        except OSError as error:
            raise self._broken(error) from error

    def _read(self) -> Answer[Any]:
        """Read the answer to the request that was sent last."""
        request_id, decode = self._last_id, self._operation.replies.decode
        parts: list[Frame] = []
        try:
            if self._end_s is not None:
                self._wait()
            while True:
                frame = self._next_frame()
                answered = frame.request_id
                if frame.kind is FrameKind.ERROR:
                    self._is_owed = answered != request_id
                    raise _failures.decode(frame.header).to_error()
                if answered != request_id:
                    if frame.kind is FrameKind.ALIVE:
                        self._wait()
                        continue
                    raise errors.ProtocolError(
                        f"{self.address} answered request {answered!r} while {request_id} was asked"
                    )
                if frame.kind is FrameKind.RESPONSE:
                    self._is_owed = False
                    self._note_rest()
                    if not parts:
                        return Answer(decode(frame.header), (frame.payload,) if frame.payload else ())
                    parts.append(frame)
                    # Behind several pieces comes a frame that only ends them.
                    return Answer(decode(parts[-2].header), tuple([part.payload for part in parts if part.payload]))
                if frame.kind is not FrameKind.PART:
                    raise errors.ProtocolError(f"{self.address} answered with a {frame.kind.name} frame")
                parts.append(frame)
                if self._wanted_s is not None:
                    self._end_s = time.monotonic() + self._wanted_s
                    self._wait()
        except OSError as error:
            raise self._broken(error) from error

    def _broken(self, error: OSError) -> errors.Error:
        """The error of a request that was sent, and whose answer does not come."""
        op, wanted_s = self._operation.title, self._wanted_s
        if self._control is not None and (ended := self._control.error) is not None:
            return ended
        if not isinstance(error, TIMEOUTS):
            if self._closed:
                return errors.InterfaceError(
                    f"the channel to {self.address} was closed while {op!r} was waiting for its answer"
                )
            return errors.MemberLostError(
                f"the connection to {self.address} broke while {op!r} was waiting for its answer: {error}",
                address=self.address,
            )
        if wanted_s is not None and self._end_s is not None and time.monotonic() >= self._end_s:
            return errors.DeadlineError(
                f"{self.address} did not answer {op!r} within {wanted_s:g} s, the timeout_s of this connection; it"
                " may still be carried out: ask again or pass a longer timeout_s",
                address=self.address,
            )
        return errors.MemberLostError(
            f"{self.address} has been silent for {self._silence_s:g} s while {op!r} was waiting for its answer: the"
            " process there hangs, or the network to it; whether the request was carried out is not known",
            address=self.address,
        )

    def _connect(self, timeout_s: float | None) -> None:
        wait_s = min(bound for bound in (self._silence_s, self._timeout_s, timeout_s) if bound is not None)
        deadline = time.monotonic() + wait_s
        try:
            self._socket = self._waits.connect(self.host, self.port, wait_s)
        except OSError as error:
            raise errors.UnreachableError(
                f"no process answers at {self.address} ({error}): check that the cluster runs and that this"
                " is the address it printed",
                address=self.address,
                refused=isinstance(error, ConnectionRefusedError),
                silent=isinstance(error, TimeoutError),
            ) from error
        try:
            self._greet(self._socket, deadline)
        except BaseException:  # the next request says hello again
            self._disconnect()
            raise

    def _greet(self, connected: Stream, deadline_s: float) -> None:
        if self._tls is not None:
            try:
                context, name = client_context(self._tls), self._tls.server_name or self.host
                left_s = max(deadline_s - time.monotonic(), _CONNECT_S_MIN)
                self._socket = self._waits.encrypt(connected, context, name, left_s)
            except OSError as error:
                raise handshake_error(self.address, error) from error
        self._decoder = FrameDecoder(self._limits)
        self._frames = iter(())
        self._wait_s = 0.0
        self._send_limits, self._takes_traces = self._limits, False
        operation = operation_of(self._hello)
        remaining_s = max(deadline_s - time.monotonic(), _CONNECT_S_MIN)
        try:
            self._write(operation, operation.requests.encode(self._hello), timeout_s=remaining_s)
            self.hello = self._read().message
        except (errors.DeadlineError, errors.MemberLostError) as error:
            raise errors.UnreachableError(
                f"{self.address} accepted the connection but did not answer the hello: the process there is"
                " stopped, overloaded or about to end",
                address=self.address,
                silent=isinstance(error.__cause__, TIMEOUTS),
            ) from error
        self._at_rest = None  # before what follows was known
        self._send_limits = peer_limits(self.hello, self._limits)
        self._takes_traces = self.hello.takes_traces and is_configured()

    def _wait(self) -> None:
        """Set how long the next bytes may take: as long as silence may be, and at most until the request ends."""
        wait_s = self._silence_s
        if self._end_s is not None:
            wait_s = min(wait_s, self._end_s - time.monotonic())
            if wait_s <= 0:
                raise TimeoutError
        if self._wait_s != wait_s:
            assert self._socket is not None
            wait_at_most(self._socket, wait_s)
            self._wait_s = wait_s

    def _next_frame(self) -> Frame:
        decoder, connected = self._decoder, self._socket
        assert connected is not None
        while True:
            for frame in self._frames:
                return frame
            if decoder.collecting is None:
                data = self._received(connected.recv, _READ_BYTES)
                self._frames = decoder.feed(data)
                count = len(data)
            else:
                count = self._received(connected.recv_into, decoder.target())
                whole = decoder.filled(count)
                self._frames = iter(() if whole is None else (whole,))
            if not count:
                raise ConnectionError("the peer closed it")

    def _received(self, receive: Callable[[Any], T], wanted: Any) -> T:
        """What comes next; a peer that is silent may take longer while it is awaited.

        Raises:
            OSError: The connection broke, or nothing comes.
        """
        try:
            return receive(wanted)
        except TIMEOUTS:
            return self._received_late(receive, wanted)

    def _received_late(self, receive: Callable[[Any], T], wanted: Any) -> T:
        """As :meth:`_received`, behind the first silence."""
        silent_s = self._silence_s
        while True:
            self._wait()
            if self._is_awaited is None or silent_s >= SILENCE_S or not self._is_awaited(self._control):
                raise TimeoutError
            self._wait()  # to ask has taken its time
            try:
                return receive(wanted)
            except TIMEOUTS:
                silent_s += self._silence_s

    def _note_rest(self) -> None:
        """Note, behind an answer, whether the connection is as nearly every request is to find it."""
        if (
            self._timeout_s is not None
            or self._wait_s != self._silence_s
            or self._takes_traces
            or self._send_limits.header_bytes_max < _READ_BYTES  # which is at most that of this side
        ):
            return
        for frame in self._frames:  # a sign of life: the next request reads it
            self._frames = itertools.chain((frame,), self._frames)
            return
        if not self._decoder.partial and self._decoder.collecting is None:
            self._at_rest = self._socket

    def _disconnect(self) -> None:
        connected, self._socket, self._at_rest, self._is_owed = self._socket, None, None, False
        if connected is not None:
            connected.close()

    def _at_fork_reinit(self) -> None:
        """Let go of the connection without ending it, in a process that was forked: the parent goes on with it.

        If both asked over it, each could get the answer to a request of the other: they count their requests alike.
        """
        self._disconnect()


def _send_in_pieces(connected: Stream, buffer: bytes | memoryview) -> None:
    # sendall() applies one time-out to the whole call.
    whole = memoryview(buffer).cast("B")
    for start in range(0, len(whole), _SEND_BYTES):
        connected.sendall(whole[start : start + _SEND_BYTES])
