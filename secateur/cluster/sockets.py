"""Servers and callers of connections inside a cluster, made from its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from secateur.cluster.process_address import ProcessAddress
from secateur.cluster.settings import ClusterSettings
from secateur.errors import Error
from secateur.protocol.message import Role
from secateur.protocol.operation import OperationBase
from secateur.wire import Handler, PeerInfo, TokenBook
from secateur.wire.peer import Peer
from secateur.wire.server import ALIVE_S, FrameServer


def listening(
    handler: Handler,
    operations: Mapping[int, OperationBase],
    settings: ClusterSettings,
    own_address: ProcessAddress,
    *,
    on_gone: Callable[[PeerInfo], None],
    port: int = 0,
    answered: Callable[[bytes], bytes | None] | None = None,
) -> FrameServer:
    """The server of a controller or member, not started yet.

    Args:
        handler: Answers the requests.
        operations: Those that it answers, by code.
        settings: The settings of the cluster: its secrets and limits.
        own_address: Where it listens.
        on_gone: Called when a connection has ended.
        port: 0 takes any free one.
        answered: Answers statements before they become requests; None where nothing does.
    """
    return FrameServer(
        handler,
        operations,
        host=own_address.bind_host,
        port=port,
        token=settings.token,
        secret=settings.secret,
        limits=settings.limits,
        on_gone=on_gone,
        alive_s=min(ALIVE_S, settings.member_silence_s / 4),
        tls=settings.tls,
        tokens=TokenBook(is_complete=False),
        answered=answered,
    )


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
        token=settings.token,
        client=name,
        timeout_s=settings.start_timeout_s if timeout_s is None else timeout_s,
        limits=settings.limits,
        identity=settings.identity(role),
        on_broken=on_broken,
        tls=settings.tls,
    )
