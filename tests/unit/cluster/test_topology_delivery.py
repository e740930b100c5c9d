"""Topologies reach every member that stays, whatever becomes of a single try."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import pytest

from secateur.cluster.controller import TopologyDelivery
from secateur.errors import MemberLostError
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.protocol import Message

R = TypeVar("R")


class Members:
    """Members that act on a topology once some tries have failed."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)

    async def call(self, member_id: str, message: Message[R]) -> R:
        if self.failures:
            raise self.failures.pop()
        return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    "failure", [MemberLostError("the connection broke"), OSError("no route"), KeyError("m1")], ids=["ours", "os", "bug"]
)
def test_a_member_is_reached_whatever_error_an_earlier_try_ended_with(failure: Exception) -> None:
    async def rest() -> bytes:
        return b"the rest"

    async def run() -> None:
        delivery = TopologyDelivery(Members(failure), pause_s=0.0)
        delivery.send(Topology(2, (MemberAddress("m1", "127.0.0.1", 1),), {}), rest)
        try:
            async with asyncio.timeout(5):
                await delivery.reached()
        finally:
            await delivery.close()

    asyncio.run(run())
