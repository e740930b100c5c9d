"""What a controller that starts anew finds out about the batches that the one before had begun."""

from __future__ import annotations

import asyncio

from secateur.cluster import ClusterSettings
from secateur.cluster.controller import ClusterState, StreamBatches, StreamPublisher
from secateur.cluster.lease import LeaseTimes
from secateur.cluster.peers import Peers
from secateur.errors import LoadFailedError, UnreachableError
from secateur.protocol import PublishedBatch, Role, StreamBatch


def test_a_batch_of_which_nobody_can_say_keeps_no_other_from_being_settled() -> None:
    """The controller did not take over then, and everybody waited for good."""

    async def published(load_id: str) -> int:
        if load_id == "unknown":
            raise UnreachableError("its member does not answer")
        if load_id == "aborted":
            raise LoadFailedError("it was aborted")
        return 5

    async def settled() -> dict[str, bool]:
        state = ClusterState(Peers("controller", Role.CONTROLLER, ClusterSettings()), lambda _: None, LeaseTimes(5.0))
        loads = ("unknown", "aborted", "published")
        state.streams = StreamBatches(tuple(PublishedBatch(1, StreamBatch(load, "q", 1), load) for load in loads))
        await StreamPublisher(state, published).settle()
        return {entry.load_id: entry.is_published for entry in state.streams.entries}

    assert asyncio.run(settled()) == {"unknown": False, "aborted": False, "published": True}
