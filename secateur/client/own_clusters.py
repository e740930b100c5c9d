"""The clusters that this process has started with a random secret.

Their secrets stay in the process: only it may connect to them by address alone, as ``cluster.connect()`` does. A secret
that the user chose is not kept here; the user may pass it on.
"""

from __future__ import annotations

from typing import Final

__all__ = ["forget_token", "own_token", "remember_token"]

_tokens: Final[dict[str, str]] = {}


def remember_token(address: str, token: str) -> None:
    """A cluster has come up at ``host:port``."""
    _tokens[address] = token


def forget_token(address: str) -> None:
    """The cluster at ``host:port`` has ended. Nothing happens when it is not known."""
    _tokens.pop(address, None)


def own_token(host: str, port: int) -> str | None:
    """The secret of the cluster of this process that listens there; None when it is none of these."""
    return _tokens.get(f"{host}:{port}")
