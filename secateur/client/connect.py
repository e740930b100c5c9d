"""How a client finds its cluster."""

from __future__ import annotations

import os
from typing import Final

from secateur.client.address import parse_address
from secateur.client.dbapi.connection import Connection
from secateur.client.own_clusters import own_token
from secateur.client.session import Session
from secateur.errors import InterfaceError

__all__ = ["ADDRESS_VARIABLE", "TOKEN_VARIABLE", "connect", "token_for"]

ADDRESS_VARIABLE: Final = "SECATEUR_ADDRESS"
TOKEN_VARIABLE: Final = "SECATEUR_TOKEN"


def connect(address: str | None = None, token: str | None = None, timeout_s: float | None = None) -> Connection:
    """Connect to a cluster.

    Args:
        address: ``secateur://host:port``, as ``cluster.address`` gives it; left out, the variable ``SECATEUR_ADDRESS``
            says it.
        token: The secret of the cluster, ``cluster.token``. Left out, it is known for a cluster that this process
            started without naming a secret; else the variable ``SECATEUR_TOKEN`` says it. ``""`` sends none, whatever
            the variable says.
        timeout_s: Seconds to wait for each part of an answer, whatever the cluster is doing meanwhile; None, the
            default, waits as long as whoever works on it shows signs of life. A process that is dead or silent is
            noticed within seconds in any case. ``SET statement_timeout`` bounds whole statements.

    Raises:
        InterfaceError: The address is not of that form, or nothing says it.
        UnreachableError: Nobody answers there.
        AuthenticationError: The token is missing or wrong.
        ProtocolError: Something answers that is not a cluster of ours.
    """
    found = os.environ.get(ADDRESS_VARIABLE) if address is None else address
    if found is None:
        raise InterfaceError(
            f"the address of the cluster is missing: pass cluster.address, or set {ADDRESS_VARIABLE} in the environment"
        )
    host, port = parse_address(found)
    return Connection(Session(host, port, token=token_for(host, port, token), timeout_s=timeout_s))


def token_for(host: str, port: int, given: str | None) -> str | None:
    """The secret to prove at a cluster: the given one, else that of a cluster of this process, else that of the
    environment. None when there is none.
    """
    if given is not None:
        return given or None
    return own_token(host, port) or os.environ.get(TOKEN_VARIABLE) or None
