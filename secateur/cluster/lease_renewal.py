"""The controller's side of latch leases: renews them as long as it works on the changes that closed the latches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from secateur.cluster.peers import MemberCaller
from secateur.cluster.termination_protocol import LEASE_RENEWED_S
from secateur.protocol.changes import HoldLoad

_log = logging.getLogger(__name__)


@asynccontextmanager
async def renewed(caller: MemberCaller, members: Iterable[str], lease: HoldLoad) -> AsyncIterator[None]:
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


async def _renew(caller: MemberCaller, member: str, lease: HoldLoad) -> None:
    while True:
        await asyncio.sleep(LEASE_RENEWED_S)
        try:
            await caller.call(member, lease)
        except Exception as error:  # the next one may arrive
            _log.info("the lease of %s was not renewed at %s: %s", lease.load_id, member, error)
