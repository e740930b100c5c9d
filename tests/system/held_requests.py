"""Requests that are held up at a process of an embedded cluster."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from secateur.cluster import Cluster
from secateur.errors import MemberLostError
from secateur.protocol import OperationBase
from secateur.wire import Reply, Request

__all__ = ["Held"]


class Held:
    """Requests for one operation of one process that arrive and are not carried out, as if the process stood still in
    front of them.

    Args:
        cluster: The cluster.
        ops: The handlers of the process.
        op: The operation.
        is_made: Whether they are carried out all the same, and their answers held up.
    """

    def __init__(
        self,
        cluster: Cluster,
        ops: dict[OperationBase, Callable[[Request[Any]], Any]],
        op: OperationBase,
        *,
        is_made: bool = False,
    ) -> None:
        self.arrived = threading.Event()
        self._loop = cluster._runtime._loop  # type: ignore[attr-defined]
        self._ops, self._op, self._original = ops, op, ops[op]
        self._dropped = self._loop.run(self._event())
        self._is_lost = True
        self._is_made = is_made
        ops[op] = self._hold

    async def _event(self) -> asyncio.Event:
        return asyncio.Event()

    async def _hold(self, request: Request[Any]) -> Reply[Any]:
        if self._is_made:
            await self._answer(request)
        self.arrived.set()
        await self._dropped.wait()
        if self._is_lost:
            raise MemberLostError("what was held up was lost")
        return await self._answer(request)

    async def _answer(self, request: Request[Any]) -> Reply[Any]:
        reply = self._original(request)
        return reply if isinstance(reply, Reply) else await reply

    def drop(self) -> None:
        """What is held up is lost; what comes from now on is carried out."""

        async def drop() -> None:
            self._ops[self._op] = self._original
            self._dropped.set()

        self._loop.run(drop())

    def release(self) -> None:
        """What is held up, and what comes from now on, is carried out."""
        self._is_lost = False
        self.drop()
