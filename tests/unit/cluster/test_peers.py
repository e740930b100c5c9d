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
from secateur.wire import FrameServer, Reply, Request


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
        FrameServer(silent, MEMBER_OPERATIONS, secret=settings.secret),
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
