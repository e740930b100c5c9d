"""The controller's side of latch leases: renews them as long as it works on the changes that closed the latches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol, TypeVar

from secateur.cluster.termination_protocol import LEASE_RENEWED_S
from secateur.errors import Error
from secateur.protocol.changes import HoldLoad
from secateur.protocol.message import Message

__all__ = ["HoldCaller", "renewed"]

R = TypeVar("R")


class HoldCaller(Protocol):
    """How the controller speaks to members."""

    def call(self, member_id: str, message: Message[R]) -> Coroutine[Any, Any, R]:
        """Send a housekeeping request and return what the answer says."""
        ...


@asynccontextmanager
async def renewed(caller: HoldCaller, members: Iterable[str], lease: HoldLoad) -> AsyncIterator[None]:
    """While what is known by an id may have closed latches, renew their leases at these members.

    Args:
        caller: How to reach the members.
        members: Their ids.
        lease: The request that renews a lease.
    """
    loop = asyncio.get_running_loop()
    renewing = [loop.create_task(_renew(caller, member, lease)) for member in members]
    try:
        yield
    finally:
        for task in renewing:
            task.cancel()


async def _renew(caller: HoldCaller, member: str, lease: HoldLoad) -> None:
    while True:
        await asyncio.sleep(LEASE_RENEWED_S)
        with suppress(Error):  # the next one may arrive
            await caller.call(member, lease)
