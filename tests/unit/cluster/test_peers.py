"""Connections to members: what a request gets whose member leaves while it waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from secateur.cluster import ClusterSettings
from secateur.cluster.peers import Peers
from secateur.errors import InterfaceError, MemberLostError
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.protocol import MEMBER_OPERATIONS, Greeting, HoldLoad, Operation, Role
from secateur.wire import FrameServer, FrameService, Reply, Request


class Silent:
    """Greets, and answers nothing else."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def handle(self, request: Request[Any]) -> Reply[Any]:
        if request.operation is not Operation.HELLO:
            self.asked.set()
            await asyncio.Event().wait()
        return Reply(Greeting())

    def notify(self, request: Request[Any]) -> None:
        raise NotImplementedError


async def ask_and(*, leave: bool) -> None:
    settings, silent = ClusterSettings(), Silent()
    server, peers = (
        FrameServer(FrameService(silent, MEMBER_OPERATIONS, secret=settings.secret)),
        Peers("test", Role.CONTROLLER, settings),
    )
    await server.start()
    try:
        peers.update(Topology(1, (MemberAddress("m1", server.host, server.port),), {}))
        asking = asyncio.create_task(peers.call("m1", HoldLoad("l")))
        await silent.asked.wait()
        if leave:
            peers.update(Topology(2, (), {}))
        else:
            await peers.close()
        await asking
    finally:
        await peers.close()
        await server.stop()


def test_a_member_that_leaves_before_it_answers_is_lost() -> None:
    with pytest.raises(MemberLostError, match="member m1 left the cluster before it answered 'hold_load'"):
        asyncio.run(ask_and(leave=True))


def test_closing_the_connections_is_no_loss_of_members() -> None:
    with pytest.raises(InterfaceError, match="closed by this side"):
        asyncio.run(ask_and(leave=False))


def test_messages_to_a_member_whose_process_is_another_one_are_lost() -> None:
    async def main() -> list[tuple[str, str]]:
        settings, lost = ClusterSettings(), []
        server = FrameServer(FrameService(Silent(), MEMBER_OPERATIONS, secret=settings.secret))
        peers = Peers("m2", Role.MEMBER, settings, lambda member, error: lost.append((member, str(error))))
        await server.start()
        try:
            address = MemberAddress("m1", server.host, server.port)
            peers.update(Topology(1, (address,), {}))
            peers.peer("m1")
            peers.update(Topology(2, (address,), {}))
            assert lost == []
            peers.update(Topology(3, (MemberAddress("m1", server.host, server.port + 1),), {}))
            peers.peer("m1")
            peers.update(Topology(4, (), {}))  # a member that leaves is no news of the connections
        finally:
            await peers.close()
            await server.stop()
        return lost

    assert asyncio.run(main()) == [("m1", "another process has come back as member m1")]
