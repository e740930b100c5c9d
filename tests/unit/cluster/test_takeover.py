"""A controller that cannot take over says so to whoever waits for it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from secateur.cluster.controller import Takeover
from secateur.cluster.lease import LeaseTimes
from secateur.errors import Error, InternalError, UnreachableError
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.protocol import ClusterRecord, MemberReport

M1 = MemberAddress("m1", "127.0.0.1", 1)
NOT_READ: Any = None
STATE: Any = SimpleNamespace(times=LeaseTimes(5.0))
"""Of what the controller knows, nothing is looked at before the record of the one before was read."""


def test_a_record_that_cannot_be_read_is_an_error_for_everybody_who_waits() -> None:
    record = ClusterRecord(1, 3, Topology(3, (M1,), {}), b"no state of a controller")

    async def scenario() -> None:
        takeover = Takeover(
            STATE,
            *(NOT_READ,) * 4,
            is_over=False,
            is_cold_start=True,
        )
        waiting = asyncio.create_task(takeover.wait())
        running = asyncio.create_task(takeover.run())
        takeover.take_report(MemberReport(address=M1, record=record, holds_lease=False, is_restored=True))
        with pytest.raises(InternalError, match="cannot go on"):
            await asyncio.wait_for(waiting, 10)
        with pytest.raises(Error):
            await running
        with pytest.raises(InternalError, match="End its process"):
            await takeover.wait()
        assert not takeover.is_over

    asyncio.run(scenario())


class MovedMembers:
    """Members that have moved since an older record; while they are asked where that has them, a newer one comes."""

    def __init__(self) -> None:
        self.topology: Topology | None = None
        self.newer: Any = None
        self.asked: list[int] = []
        self.asked_again = asyncio.Event()

    def update(self, topology: Topology) -> None:
        self.topology = topology

    async def is_gone(self, member_id: str, patience_s: float) -> bool:
        assert self.topology is not None
        self.asked.append(self.topology.version)
        if self.topology.version == 3:
            self.newer()
            return True  # nobody listens at the address of then
        self.asked_again.set()
        return False

    async def call(self, member_id: str, message: Any) -> MemberReport:
        raise UnreachableError(f"{member_id} is far away")


def test_members_are_not_gone_because_nobody_is_where_an_older_record_has_them() -> None:
    m2, m2_before = MemberAddress("m2", "127.0.0.1", 2), MemberAddress("m2", "127.0.0.1", 12)
    older = ClusterRecord(1, 3, Topology(3, (m2_before,), {}), b"")
    newer = ClusterRecord(2, 1, Topology(1003, (M1, m2), {}), b"")

    async def scenario() -> None:
        members: Any = MovedMembers()
        takeover = Takeover(
            STATE,
            members,
            *(NOT_READ,) * 3,
            is_over=False,
            is_cold_start=False,
        )
        m3 = MemberAddress("m3", "127.0.0.1", 3)
        members.newer = lambda: takeover.take_report(
            MemberReport(address=M1, record=newer, holds_lease=True, is_restored=False)
        )
        takeover.take_report(MemberReport(address=m3, record=older, holds_lease=False, is_restored=True))
        running = asyncio.create_task(takeover.run())
        await asyncio.wait_for(members.asked_again.wait(), 10)
        assert members.asked == [3, 1003]
        assert not running.done()  # m2 holds a lease, and is waited for
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())
