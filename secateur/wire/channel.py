"""A blocking connection, for clients."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from secateur.errors import AuthenticationError, DeadlineError, InterfaceError, MemberLostError, ProtocolError, UnreachableError, from_wire
from secateur.wire.frames import Frame, FrameDecoder, FrameKind, Payload, encode_frame
from secateur.wire.handshake import HELLO, ClusterIdentity, Hello, peer_limits
from secateur.wire.limits import Limits
from secateur.wire.messages import Answer

__all__ = ["Channel"]

_READ_BYTES: Final = 64 << 10


class Channel:
    """One TCP connection to a :class:`~secateur.wire.server.FrameServer`, opened at the first request and again after it broke.

    Thread-safe: one request at a time, others wait; while a stream is being read, others are refused.
    After an error that the server sent, the channel is usable; after a timeout or a broken connection it is
    disconnected, and the next request connects anew. It never repeats a request by itself.

    Args:
        host: Host name or address.
        port: Port.
        token: The secret of the cluster, if it has one.
        client: A name for the server's logs.
        timeout_s: Seconds to wait for the connection, and for more of an answer unless the request says otherwise; None waits for ever.
        limits: Bounds on frames, both ways; the server's, when tighter, are held too.
        identity: What to prove to be; None for a client.
    """

    _socket: socket.socket | None = None  # on the class, for a channel whose __init__ was called wrongly

    def __init__(
        self,
        host: str,
        port: int,
        *,
        token: str | None = None,
        client: str | None = None,
        timeout_s: float | None = 30.0,
        limits: Limits | None = None,
        identity: ClusterIdentity | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.hello = Answer({})
        """The server's answer to the hello of the present connection."""
        self._hello = Hello(token, client or f"python pid {os.getpid()}", identity)
        self._timeout_s = timeout_s
        self._limits = limits or Limits()
        self._send_limits = self._limits
        self._lock = threading.Lock()
        self._streaming = False
        self._decoder = FrameDecoder(self._limits)
        self._frames: Iterator[Frame] = iter(())
        self._last_id = 0
        self._closed = False

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def connect(self) -> Answer:
        """Connect now unless connected; returns the server's answer to hello.

        Raises:
            UnreachableError: Nobody answers there.
            AuthenticationError: The token is missing or wrong.
            ProtocolError: Something answers that is not a server of ours.
        """
        with self._lock:
            self._ready()
            return self.hello

    def request(self, op: str, args: dict[str, Any] | None = None, payload: Payload = b"", *, timeout_s: float | None = None) -> Answer:
        """Ask and wait for the whole answer.

        Args:
            op: The operation.
            args: Its arguments, plain values.
            payload: Bytes to go with it.
            timeout_s: Seconds to wait; None takes the channel's.

        Raises:
            Error: Whatever the server answered.
            UnreachableError: Nobody answers there; nothing was sent.
            MemberLostError: The connection broke; whether the request was carried out is unknown.
            DeadlineError: No answer in time; whether the request was carried out is unknown.
            LimitExceededError: The request is larger than the limits allow; nothing was sent.
            SerializationError: An argument does not travel; nothing was sent.
        """
        with self._lock:
            self._ready()
            frames = list(self._exchange(op, args, payload, timeout_s))
        if len(frames) == 1:
            return Answer(frames[0].header, (frames[0].payload,) if frames[0].payload else ())
        header = {name: value for frame in frames for name, value in frame.header.items()}
        return Answer(header, tuple(frame.payload for frame in frames if frame.payload))

    def stream(self, op: str, args: dict[str, Any] | None = None, payload: Payload = b"", *, timeout_s: float | None = None) -> Iterator[Answer]:
        """Ask and yield each piece of the answer as it arrives. The channel is taken until the iterator ends or is closed; leaving it early disconnects.

        Raises:
            Error: As :meth:`request`; ``timeout_s`` bounds the wait for each piece.
        """
        with self._lock:
            self._ready()
            self._streaming = True
        try:
            for frame in self._exchange(op, args, payload, timeout_s):
                yield Answer(frame.header, (frame.payload,) if frame.payload else ())
        finally:
            self._streaming = False

    def close(self) -> None:
        """Disconnect for good. May be called twice, and from another thread to end a request that waits."""
        self._closed = True
        connected = self._socket
        if connected is not None:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._disconnect()

    def __del__(self) -> None:
        self._disconnect()  # a channel that is dropped hangs up, without a ResourceWarning from inside of it

    def _ready(self) -> None:
        if self._closed:
            raise InterfaceError(f"the channel to {self.address} is closed")
        if self._streaming:
            raise InterfaceError(f"a streamed answer from {self.address} is being read: read it to its end, close it, or use another channel")
        if self._socket is None:
            self._connect()

    def _exchange(self, op: str, args: dict[str, Any] | None, payload: Payload, timeout_s: float | None) -> Iterator[Frame]:
        self._last_id += 1
        request_id = self._last_id
        buffers = encode_frame(FrameKind.REQUEST, {**(args or {}), "id": request_id, "op": op}, payload, self._send_limits)
        whole = False  # unless an answer is read to its end, the next one on this connection would be mistaken for it
        try:
            self._set_timeout(timeout_s)
            for buffer in buffers:
                self._connected.sendall(buffer)
            while True:
                frame = self._next_frame()
                answered = frame.header.pop("id", None)
                if frame.kind is FrameKind.ERROR:
                    whole = answered == request_id
                    raise from_wire(frame.header)
                if answered != request_id:
                    raise ProtocolError(f"{self.address} answered request {answered!r} while {request_id} was asked")
                if frame.kind is FrameKind.RESPONSE:
                    whole = True
                    yield frame
                    return
                if frame.kind is not FrameKind.PART:
                    raise ProtocolError(f"{self.address} answered with a {frame.kind.name} frame")
                yield frame
        except TimeoutError as error:
            waited = self._timeout_s if timeout_s is None else timeout_s
            raise DeadlineError(
                f"{self.address} did not answer {op!r} within {waited:g} s; it may still be carried out: ask again or pass a longer timeout",
                address=self.address,
            ) from error
        except OSError as error:
            if self._closed:
                raise InterfaceError(f"the channel to {self.address} was closed while {op!r} was waiting for its answer") from error
            raise MemberLostError(f"the connection to {self.address} broke while {op!r} was waiting for its answer: {error}", address=self.address) from error
        finally:
            if not whole:
                self._disconnect()

    @property
    def _connected(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionError("not connected")
        return self._socket

    def _connect(self) -> None:
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        try:
            self._socket = socket.create_connection((self.host, self.port), timeout=self._timeout_s)
        except OSError as error:
            raise UnreachableError(
                f"nobody answers at {self.address} ({error}): check that the cluster runs and that this is the address it printed",
                address=self.address,
            ) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._decoder = FrameDecoder(self._limits)
        self._frames = iter(())
        self._send_limits = self._limits
        remaining = None if deadline is None else max(deadline - time.monotonic(), 0.001)
        try:
            (frame,) = self._exchange(HELLO, self._hello.args(), b"", remaining)
        except AuthenticationError:
            self._disconnect()
            raise
        except (DeadlineError, MemberLostError) as error:
            raise ProtocolError(
                f"{self.address} accepted the connection but did not answer our hello: does the address belong to another service?", address=self.address
            ) from error
        self.hello = Answer(frame.header, (frame.payload,) if frame.payload else ())
        self._send_limits = peer_limits(frame.header, self._limits)

    def _set_timeout(self, timeout_s: float | None) -> None:
        wanted = self._timeout_s if timeout_s is None else timeout_s
        if self._connected.gettimeout() != wanted:
            self._connected.settimeout(wanted)

    def _next_frame(self) -> Frame:
        while True:
            for frame in self._frames:
                return frame
            target = self._decoder.target()
            if target is None:
                data = self._connected.recv(_READ_BYTES)
                self._frames = self._decoder.feed(data)
                count = len(data)
            else:
                count = self._connected.recv_into(target)
                whole = self._decoder.filled(count)
                self._frames = iter(() if whole is None else (whole,))
            if not count:
                raise ConnectionError("the peer closed it")

    def _disconnect(self) -> None:
        connected, self._socket = self._socket, None
        if connected is not None:
            connected.close()
