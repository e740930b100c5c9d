"""The addresses of a process of a cluster: the one on which it listens, and the one by which others reach it."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Final

EVERY_INTERFACE: Final = frozenset({"0.0.0.0", "::"})
_SOMEWHERE: Final = ("192.0.2.1", 9)
"""An address of another machine, to which nothing is sent (RFC 5737)."""


@dataclass(frozen=True, slots=True)
class ProcessAddress:
    """The addresses of one process.

    Attributes:
        bind_host: The address of the interface that it listens on.
        advertised_host: The address that it tells others.
        node: The machine that it runs on; the processes of one machine have the same. Copies of a partition are kept
            on different ones.
    """

    bind_host: str
    advertised_host: str
    node: str


LOOPBACK: Final = ProcessAddress("127.0.0.1", "127.0.0.1", "127.0.0.1")
"""The addresses of a process in a cluster whose processes and clients are all on one machine."""


def address_at(node: str, host: str | None) -> ProcessAddress:
    """The addresses of a process.

    Args:
        node: The address of its machine.
        host: The one to listen on, as :attr:`ClusterSettings.host <secateur.cluster.settings.ClusterSettings>`; None
            for that of the machine. ``0.0.0.0`` listens on every interface: others reach the process at ``node``.
    """
    bind_host = node if host is None else host
    return ProcessAddress(bind_host, node if bind_host in EVERY_INTERFACE else bind_host, node)


def machine_address() -> str:
    """The address of this machine, by which others reach it: that of the interface with the default route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_SOMEWHERE)  # chooses a route, and sends nothing
        except OSError:
            return LOOPBACK.node  # this machine has no network
        return str(probe.getsockname()[0])
