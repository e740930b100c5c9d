"""Members that come and go, as the controller's state sees them."""

from __future__ import annotations

import asyncio

from secateur.cluster.controller import ClusterState, MemberJoined, MemberLost
from secateur.cluster.lease import LeaseTimes
from secateur.cluster.peers import Peers
from secateur.partitioning.topology import MemberAddress, Topology


class _ProbedPeers(Peers):
    """Whoever is probed is gone, once it is said so."""

    def __init__(self) -> None:
        self.is_probed = asyncio.Event()
        self.answer = asyncio.Event()

    def update(self, topology: Topology) -> None:
        pass

    async def is_gone(self, member_id: str, timeout_s: float) -> bool:
        self.is_probed.set()
        await self.answer.wait()
        return True


def test_a_process_that_comes_back_is_not_removed_for_the_one_before() -> None:
    async def main() -> None:
        peers = _ProbedPeers()
        state = ClusterState(peers, lambda _: None, LeaseTimes(5.0))
        state.apply(MemberJoined(MemberAddress("m1", "127.0.0.1", 7000)))
        first = asyncio.create_task(state.check_member("m1"))
        await peers.is_probed.wait()
        state.apply(MemberLost("m1"))  # another probe was quicker
        state.apply(MemberJoined(MemberAddress("m1", "127.0.0.1", 7001)))
        peers.answer.set()
        await first
        assert state.topology.member_ids == ("m1",)
        await state.check_member("m1")
        assert state.topology.member_ids == ()
        await state.close()

    asyncio.run(main())
