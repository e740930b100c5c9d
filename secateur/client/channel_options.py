"""What all sockets of a connection have in common, to whichever process they lead."""

from __future__ import annotations

from dataclasses import dataclass

from secateur.wire import Channel, Tls


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """The options that a user has connected with.

    Attributes:
        token: The secret of the cluster, if it has one.
        timeout_s: Seconds to wait for more of an answer; None waits as long as the process that works on it shows signs
            of life.
        tls: How connections are encrypted; None for a cluster without TLS.
    """

    token: str | None
    timeout_s: float | None
    tls: Tls | None

    def channel(self, host: str, port: int, *, timeout_s: float | None) -> Channel:
        """A channel to a process of the cluster, with another time-out; it connects at its first request."""
        return Channel(host, port, token=self.token, timeout_s=timeout_s, tls=self.tls)
