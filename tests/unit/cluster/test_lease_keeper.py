"""The first lease of a member, which may be removed from the cluster before it has one."""

from __future__ import annotations

import asyncio

import pytest

from secateur.cluster import ClusterSettings
from secateur.cluster.member import LeaseKeeper
from secateur.errors import MemberLostError
from secateur.partitioning.topology import MemberAddress
from secateur.storage import MemberStore


async def _stopped_while_it_waits(*, is_cancelled: bool) -> None:
    """Start a keeper that gets no answer, and stop it; also cancel who waits for it, if that is wanted."""
    is_asked = asyncio.Event()
    connections: list[asyncio.StreamWriter] = []

    def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        is_asked.set()

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    keeper = LeaseKeeper(
        "m1",
        ClusterSettings(members=1),
        f"{host}:{port}",
        lambda: MemberAddress("m1", host, port, "node"),
        MemberStore().lease,
        lambda: None,
        lambda: None,
    )
    starting = asyncio.ensure_future(keeper.start())
    await is_asked.wait()
    if is_cancelled:
        starting.cancel()
    await keeper.stop()
    for writer in connections:
        writer.close()
    server.close()
    await starting


def test_who_waits_for_a_member_that_is_stopped_learns_so_and_may_start_another() -> None:
    with pytest.raises(MemberLostError, match="m1 was stopped while it waited for its first lease"):
        asyncio.run(_stopped_while_it_waits(is_cancelled=False))


def test_who_is_cancelled_while_it_waits_for_a_lease_is_cancelled() -> None:
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_stopped_while_it_waits(is_cancelled=True))
