"""How a client finds its cluster."""

from __future__ import annotations

from secateur.client.address import parse_address
from secateur.client.connection import Connection
from secateur.client.session import Session

__all__ = ["connect"]


def connect(address: str, token: str | None = None, timeout_s: float | None = 30.0) -> Connection:
    """Connect to a cluster.

    Args:
        address: ``secateur://host:port``, as ``cluster.address`` gives it.
        token: The secret that the cluster was started with, if it was.
        timeout_s: Seconds to wait for a connection, and for an answer to go on; None waits for ever.

    Raises:
        InterfaceError: The address is not of that form.
        UnreachableError: Nobody answers there.
        AuthenticationError: The token is missing or wrong.
        ProtocolError: Something answers that is not a cluster of ours.
    """
    host, port = parse_address(address)
    return Connection(Session(host, port, token=token, timeout_s=timeout_s))
