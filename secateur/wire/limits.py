"""The bounds that a connection holds, on both of its ends."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HANDSHAKE_LIMITS", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a connection; passing one is a :class:`~secateur.errors.LimitExceededError`, not an out-of-memory.

    Attributes:
        frame_bytes_max: Largest payload of one frame.
        header_bytes_max: Largest header of one frame; SQL text and parameters travel in headers.
        connections_max: Connections that one server keeps open, of those that have said hello.
        unproven_max: Connections that one server keeps open which have not; of more the oldest is dropped.
        held_bytes_max: Bytes of payloads that one server holds while they arrive and while their requests are worked
            on, of all connections together. Above it, connections in the middle of a frame are not read from until
            there is room; what is stored or queued counts there, not here.
        stalled_s: Seconds without a byte after which a connection in the middle of a frame is dropped, when others wait
            for room.
        requests_in_flight_max: Requests of one connection that may be waiting for their answers.
        write_buffer_bytes_max: Unsent bytes of one connection above which its requests wait until the peer has read.
        hello_timeout_s: Seconds that a new connection may take to say hello.
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
"""What a server accepts before a good hello: nobody unknown may make it allocate more than this."""
