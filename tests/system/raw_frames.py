"""Requests that no client of ours would send, over a bare socket."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any, Self

import msgspec

from secateur.cluster import Cluster
from secateur.protocol import Failure, Hello, Operation, OperationBase, Role, decode, encode, pack
from secateur.wire import Frame, FrameDecoder, FrameKind, Limits, encode_frame

__all__ = ["RawConnection", "header_of", "required_fields"]


class RawConnection:
    """A connection that has said hello and sends any bytes.

    Args:
        cluster: The cluster.
        address: ``host:port`` of its controller or of a member.
        role: What to prove to be.
        token: What to prove in place of the token of the cluster.
    """

    def __init__(self, cluster: Cluster, address: str, role: Role = Role.CLIENT, token: str | None = None) -> None:
        host, _, port = address.removeprefix("secateur://").rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        self._decoder = FrameDecoder(Limits())
        self._frames: list[Frame] = []
        secret = None if role is Role.CLIENT else cluster._settings.secret
        claimed = None if role is Role.CLIENT else role.value
        proof = cluster._settings.token if token is None else token
        try:
            self.ask(Operation.HELLO, encode(Hello(token=proof, role=claimed, secret=secret)))
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, operation: OperationBase, header: bytes, payload: bytes = b"") -> bytes:
        """Send a request and return the header of its answer; see :meth:`answer`."""
        return self.answer(operation, header, payload).header

    def answer(self, operation: OperationBase, header: bytes, payload: bytes = b"") -> Frame:
        """Send a request and return its answer.

        Raises:
            Error: Whatever the server answered.
            EOFError: It hung up.
        """
        frame = encode_frame(FrameKind.REQUEST, header, payload, operation=operation.code, request_id=1)
        self._socket.sendall(b"".join(frame))
        while True:
            answer = self._read()
            if answer.kind is FrameKind.ERROR:
                raise decode(answer.header, Failure).to_error()
            if answer.kind is FrameKind.RESPONSE:
                return answer

    def _read(self) -> Frame:
        while not self._frames:
            data = self._socket.recv(1 << 16)
            if not data:
                raise EOFError
            self._frames.extend(self._decoder.feed(data))
        return self._frames.pop(0)


def header_of(operation: OperationBase, args: dict[str, Any]) -> bytes:
    """Return the header of a request with any values for its fields.

    A field that is not given is left out, or None where fields have no names.
    """
    names: Sequence[str] = operation.request.__struct_fields__
    if operation.request.__struct_config__.array_like:
        return pack([args.get(name) for name in names])
    return pack({name: args[name] for name in names if name in args})


def required_fields(operation: OperationBase) -> list[str]:
    """The fields of a request that have no default value."""
    return [field.name for field in msgspec.structs.fields(operation.request) if field.required]
