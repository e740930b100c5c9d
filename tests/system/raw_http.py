"""A server of HTTP whose connections break, stay silent, or answer what no secateur answers."""

from __future__ import annotations

import socket
import threading
from types import EllipsisType, TracebackType
from typing import Self


class RawHttp:
    """Answers one request for each entry, on a connection of its own.

    Args:
        bodies: For each request the body of its answer; None hangs up after the request, and ``...`` never answers.
        kind: The media type of the bodies.
    """

    def __init__(self, *bodies: bytes | EllipsisType | None, kind: str = "application/json") -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._bodies = bodies
        self._kind = kind
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.seen: list[str] = []
        """The first line of each request."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for connection in self._open:
            connection.close()

    def _serve(self) -> None:
        for body in self._bodies:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.seen.append(_first_line(connection))
            match body:
                case None:
                    connection.close()
                case bytes():
                    head = f"HTTP/1.1 200 OK\r\nContent-Type: {self._kind}\r\nContent-Length: {len(body)}\r\n"
                    connection.sendall(f"{head}Connection: close\r\n\r\n".encode() + body)
                    connection.close()
                case _:
                    self._open.append(connection)


def _first_line(connection: socket.socket) -> str:
    """Read one request with its body, so that closing the connection does not reset it."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, rest = data.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
    )
    while len(rest) < length:
        rest += connection.recv(65536)
    return head.split(b"\r\n")[0].decode()
