"""A controller that cannot take over says so to whoever waits for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from secateur.cluster.controller import Takeover
from secateur.cluster.lease import LeaseTimes
from secateur.errors import Error, InternalError
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.protocol import ClusterRecord, MemberReport

M1 = MemberAddress("m1", "127.0.0.1", 1)
NOT_READ: Any = None
"""Of what the controller knows, nothing is looked at before the record of the one before was read."""


def test_a_record_that_cannot_be_read_is_an_error_for_everybody_who_waits() -> None:
    record = ClusterRecord(1, 3, Topology(3, (M1,), {}), b"no state of a controller")

    async def scenario() -> None:
        takeover = Takeover(
            *(NOT_READ,) * 6,
            lease_times=LeaseTimes(5.0),
            begin=NOT_READ,
            settle_streams=NOT_READ,
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
