"""The limits of a connection, which both of its ends enforce."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a connection; passing one is a :class:`~secateur.errors.LimitExceededError`, not an out-of-memory.

    Attributes:
        frame_bytes_max: Largest payload of one frame.
        header_bytes_max: Largest header of one frame; SQL text and parameters are sent in headers.
        connections_max: Connections after a valid hello that one server keeps open.
        unproven_max: Connections before it that one server keeps open; beyond that the oldest is dropped.
        held_bytes_max: Bytes of payloads that one server holds, over all connections, while they arrive and while their
            requests are processed. Above it, connections in the middle of a frame are not read from until there is
            room; data that is stored or queued is counted there, not here.
        stalled_s: Seconds without a byte after which a connection in the middle of a frame is dropped, when others wait
            for room.
        requests_in_flight_max: Requests of one connection that may be waiting for their answers.
        write_buffer_bytes_max: Unsent bytes of one connection above which its requests wait until the peer has read.
        hello_timeout_s: Seconds that a new connection has for its hello.
    """

    frame_bytes_max: int = 1 << 30
    header_bytes_max: int = 16 << 20
    connections_max: int = 4096
    unproven_max: int = 512
    held_bytes_max: int = 2 << 30
    stalled_s: float = 10.0
    requests_in_flight_max: int = 1024
    write_buffer_bytes_max: int = 4 << 20
    hello_timeout_s: float = 5.0


HANDSHAKE_LIMITS = Limits(frame_bytes_max=0, header_bytes_max=64 << 10)
"""The limits before a valid hello: an unauthenticated peer cannot make the server allocate more than this."""
