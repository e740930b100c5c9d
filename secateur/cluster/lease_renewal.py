"""The controller's side of the leases of latches: it says again and again that it still works on what has closed
them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from secateur.cluster.load_leases import LEASE_RENEWED_S
from secateur.errors import Error

__all__ = ["HoldCaller", "renewed"]


class HoldCaller(Protocol):
    """How the controller speaks to members."""

    def call(self, member_id: str, op: str, args: dict[str, Any]) -> Coroutine[Any, Any, dict[str, Any]]:
        """Send a housekeeping request and return the answer's header."""
        ...


@asynccontextmanager
async def renewed(caller: HoldCaller, members: Iterable[str], op: str, load_id: str) -> AsyncIterator[None]:
    """While what is known by an id may have closed latches, renew their leases at these members.

    Args:
        caller: How to reach the members.
        members: Their ids.
        op: The request that renews a lease, such as ``load_hold``.
        load_id: The id under which the latches were closed.
    """
    loop = asyncio.get_running_loop()
    renewing = [loop.create_task(_renew(caller, member, op, load_id)) for member in members]
    try:
        yield
    finally:
        for task in renewing:
            task.cancel()


async def _renew(caller: HoldCaller, member: str, op: str, load_id: str) -> None:
    while True:
        await asyncio.sleep(LEASE_RENEWED_S)
        with suppress(Error):  # the next one may arrive
            await caller.call(member, op, {"load_id": load_id})
