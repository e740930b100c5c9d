"""Connects a client to its cluster.

The random secrets of clusters that this process has started stay in it: only it may connect to them by address alone,
as ``cluster.connect()`` does. A secret that the user chose is not kept here; the user may pass it on. A cluster has a
secret by default, because any process of the machine can reach a loopback port, and could submit functions there.
"""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import urlsplit

from secateur.client.dbapi.connection import Connection
from secateur.client.execution.retry_policy import CONNECT_TIMEOUT_S, REFUSED_S
from secateur.client.session import Commits, Session
from secateur.errors import InterfaceError
from secateur.wire import BLOCKING, Tls, Waits

_SCHEME: Final = "secateur"


def parse_address(address: str) -> tuple[str, int]:
    """Read ``secateur://host:port``; an IPv6 host stands in brackets.

    Raises:
        InterfaceError: The text has another form; the message explains the problem.
    """
    if not isinstance(address, str):
        raise _wrong(address, f"is a {type(address).__name__}")
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _wrong(address, f"does not parse ({error})") from error
    if parts.scheme != _SCHEME or not address.lower().startswith(f"{_SCHEME}://"):
        raise _wrong(address, f"does not start with {_SCHEME}://")
    if parts.username is not None or parts.password is not None:
        raise _wrong(f"{_SCHEME}://...@{host}:{port}", "names a user; pass the secret as token=")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise _wrong(address, "has text after the port")
    if not host:
        raise _wrong(address, "has no host")
    if not port:
        raise _wrong(address, "has no port")
    return host, port


def _wrong(address: object, reason: str) -> InterfaceError:
    return InterfaceError(
        f"address {address!r} {reason}: use the form {_SCHEME}://host:port, such as cluster.address gives"
    )


ADDRESS_VARIABLE: Final = "SECATEUR_ADDRESS"
TOKEN_VARIABLE: Final = "SECATEUR_TOKEN"
TLS_CA_VARIABLE: Final = "SECATEUR_TLS_CA"


def connect(
    address: str | None = None,
    token: str | None = None,
    timeout_s: float | None = None,
    connect_timeout_s: float | None = None,
    *,
    tls: Tls | None = None,
    autocommit_only: bool = False,
) -> Connection:
    """Connect to a cluster.

    Args:
        address: ``secateur://host:port``, as ``cluster.address`` gives it; the default is the variable
            ``SECATEUR_ADDRESS``.
        token: The secret of the cluster, ``cluster.token``. By default that of a cluster that this process started
            without naming a secret, or else the variable ``SECATEUR_TOKEN``. ``""`` sends none, whatever the variable
            is.
        timeout_s: Seconds to wait for each part of an answer, whatever the cluster is doing meanwhile; None, the
            default, waits as long as the working process shows signs of life. A process that is dead or silent is
            noticed within seconds in any case. ``SET statement_timeout`` bounds whole statements.
        connect_timeout_s: Seconds to wait if no process answers at the address: while a controller starts anew, there
            is none. 0 fails at once. By default 10, or 1.5 for an address that refuses connections and at which this
            process has found no cluster before.
        tls: How to encrypt the connection, and whom to trust, for a cluster that was started with ``tls=``. By default
            as a cluster of this process was started, or else the variable ``SECATEUR_TLS_CA``, which names the file
            of ``Tls(ca=...)``.
        autocommit_only: Whether to accept ``BEGIN``, ``COMMIT`` and ``ROLLBACK``, for tools that send them around each
            statement. There are no transactions all the same: every statement commits by itself, and ``ROLLBACK`` is
            refused once a statement has changed something since ``BEGIN``. By default all of them are refused.

    Raises:
        InterfaceError: The address has another form, or is missing.
        UnreachableError: The cluster cannot be reached.
        AuthenticationError: The token is missing or wrong, the certificate is not accepted, or the cluster speaks TLS
            alone.
        ProtocolError: The process that answers is not a secateur cluster.
    """
    return Connection(
        open_session(address, token, timeout_s, connect_timeout_s, tls=tls, autocommit_only=autocommit_only)
    )


def open_session(
    address: str | None = None,
    token: str | None = None,
    timeout_s: float | None = None,
    connect_timeout_s: float | None = None,
    *,
    tls: Tls | None = None,
    autocommit_only: bool = False,
    waits: Waits = BLOCKING,
) -> Session:
    """Open the session of a connection. The arguments and errors are those of :func:`connect`, and its ``waits``."""
    found = os.environ.get(ADDRESS_VARIABLE) if address is None else address
    if found is None:
        raise InterfaceError(
            f"the address of the cluster is missing: pass cluster.address, or set {ADDRESS_VARIABLE} in the environment"
        )
    host, port = parse_address(found)
    known = token_for(host, port, token)
    encryption = tls_for(host, port, tls)
    is_new = connect_timeout_s is None and f"{host}:{port}" not in _tls and (host, port) not in _reached
    session = Session(
        *(host, port),
        token=known,
        timeout_s=timeout_s,
        connect_timeout_s=CONNECT_TIMEOUT_S if connect_timeout_s is None else connect_timeout_s,
        refused_s=REFUSED_S if is_new else None,
        tls=encryption,
        waits=waits,
    )
    _reached.add((host, port))
    if autocommit_only:
        session.commits = Commits()
    return session


def tls_for(host: str, port: int, given: Tls | None) -> Tls | None:
    """Return the TLS for a cluster: the given one, that of a cluster of this process, or that of the environment."""
    if given is not None:
        return given
    if (place := f"{host}:{port}") in _tls:
        return _tls[place]
    authorities = os.environ.get(TLS_CA_VARIABLE)
    return Tls(ca=authorities) if authorities else None


def token_for(host: str, port: int, given: str | None) -> str | None:
    """Return the token for a cluster: the given one, that of a cluster of this process, or that of the environment."""
    if given is not None:
        return given or None
    return _tokens.get(f"{host}:{port}") or os.environ.get(TOKEN_VARIABLE) or None


_tokens: Final[dict[str, str]] = {}
"""The secrets of clusters of this process, by ``host:port``."""
_tls: Final[dict[str, Tls | None]] = {}
"""The encryption of connections to all clusters of this process; None for a plain one."""
_reached: Final[set[tuple[str, int]]] = set()


def remember_token(address: str, token: str) -> None:
    """A cluster has come up at ``host:port``."""
    _tokens[address] = token


def remember_tls(address: str, tls: Tls | None) -> None:
    """A cluster has come up at ``host:port``, with TLS or without."""
    _tls[address] = tls


def forget_cluster(address: str) -> None:
    """The cluster at ``host:port`` has ended. Nothing happens when it is not known."""
    _tokens.pop(address, None)
    _tls.pop(address, None)
