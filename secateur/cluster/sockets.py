"""The sockets inside a cluster: addresses of its processes, and servers and callers made from its settings."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from secateur.cluster.settings import ClusterSettings
from secateur.errors import Error
from secateur.protocol.message import Role
from secateur.protocol.operations import OperationBase
from secateur.wire import FrameService, Handler, PeerInfo, TokenBook, hello, signed_token_verifier
from secateur.wire.connection import Answered
from secateur.wire.peer import Peer
from secateur.wire.server import ALIVE_S, FrameServer

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


def listening(
    handler: Handler,
    operations: Mapping[int, OperationBase],
    settings: ClusterSettings,
    own_address: ProcessAddress,
    *,
    on_gone: Callable[[PeerInfo], None],
    port: int = 0,
    answered: Callable[[], Answered | None] = lambda: None,
) -> FrameServer:
    """The server of a controller or member, not started yet.

    Args:
        handler: Answers the requests.
        operations: Those that it answers, by code.
        settings: The settings of the cluster: its secrets and limits.
        own_address: Where it listens.
        on_gone: Called when a connection has ended.
        port: 0 takes any free one.
        answered: Gives what answers statements before they become requests; None where nothing does.

    Raises:
        ProgrammingError: The keys of ``settings.jwt`` cannot be used.
    """
    verifier = None if settings.jwt is None else signed_token_verifier(settings.jwt)
    tokens = TokenBook(is_complete=False, verifier=verifier)
    service = FrameService(
        handler, operations, settings.token, settings.secret, tokens, settings.limits, on_gone, answered
    )
    alive_s = min(ALIVE_S, settings.member_silence_s / 4)
    return FrameServer(service, host=own_address.bind_host, port=port, alive_s=alive_s, tls=settings.tls)


def peer_at(
    host: str,
    port: int,
    settings: ClusterSettings,
    *,
    name: str,
    role: Role,
    timeout_s: float | None = None,
    on_broken: Callable[[Error], None] | None = None,
) -> Peer:
    """A connection to a controller or member, opened at the first request.

    Args:
        host: Host name or address.
        port: Port.
        settings: The settings of the cluster: its secrets and limits.
        name: How this side calls itself in logs.
        role: The role that this side proves.
        timeout_s: Seconds of silence after which the other side is taken for lost; None takes those that the cluster
            has to come up.
        on_broken: Called when a connection has broken over which notices were sent.
    """
    return Peer(
        host,
        port,
        hello(settings.token, name, settings.identity(role)),
        timeout_s=settings.start_timeout_s if timeout_s is None else timeout_s,
        limits=settings.limits,
        on_broken=on_broken,
        tls=settings.tls,
    )
