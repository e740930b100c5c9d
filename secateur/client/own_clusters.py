"""The clusters that this process has started: the random secrets, and how their connections are encrypted.

Their secrets stay in the process: only it may connect to them by address alone, as ``cluster.connect()`` does. A secret
that the user chose is not kept here; the user may pass it on.
"""

from __future__ import annotations

from typing import Final

from secateur.wire.tls import Tls

_tokens: Final[dict[str, str]] = {}
_tls: Final[dict[str, Tls | None]] = {}


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


def own_token(host: str, port: int) -> str | None:
    """The secret of the cluster of this process that listens there; None when it is none of these."""
    return _tokens.get(f"{host}:{port}")


def is_own(host: str, port: int) -> bool:
    """Whether a cluster of this process listens there."""
    return f"{host}:{port}" in _tls


def own_tls(host: str, port: int) -> Tls | None:
    """How connections to the cluster of this process that listens there are encrypted; None if they are not."""
    return _tls.get(f"{host}:{port}")
