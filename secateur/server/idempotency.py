"""Idempotency keys: a request that is sent again is answered with what the first one has made.

Source: the IETF draft "The Idempotency-Key HTTP Header Field".
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from starlette.exceptions import HTTPException

from secateur.server.limits import ServerLimits

_HEADER: Final = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class _Made:
    body: bytes
    task: asyncio.Future[str]
    time_s: float


class IdempotencyKeys:
    """Remembers the ids of what requests with a key have made. Lives on one event loop.

    Args:
        limits: How many keys are remembered, and for how long.
    """

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._made: OrderedDict[tuple[bytes, str, str], _Made] = OrderedDict()

    async def once(
        self, caller: bytes, path: str, key: str | None, body: bytes, make: Callable[[], Awaitable[str]]
    ) -> str:
        """Make something, unless a request with this key has; its id.

        A failure makes nothing: the next request with the key tries again. Requests that come at once wait for the
        first, whose making goes on when its caller goes away.

        Args:
            caller: Who asks, as the digest of a token; keys of different callers are different.
            path: Where the request goes; keys of different paths are different.
            key: The key of the request; None always makes something new.
            body: What the request says.
            make: Makes it.

        Raises:
            HTTPException: The key has come with another body: status 422.
            Error: Why it could not be made.
        """
        if key is None:
            return await make()
        self._forget_old()
        digest = hashlib.sha256(body).digest()
        made = self._made.get((caller, path, key))
        if made is not None and made.body != digest:
            raise HTTPException(422, f"the {_HEADER} {key!a} has come with another body: each request needs a new one")
        if made is None:
            made = self._made[caller, path, key] = _Made(digest, asyncio.ensure_future(make()), time.monotonic())
            made.task.add_done_callback(lambda task: self._forget_failure((caller, path, key), task))
        return await asyncio.shield(made.task)

    def _forget_failure(self, place: tuple[bytes, str, str], task: asyncio.Future[str]) -> None:
        if task.cancelled() or task.exception() is not None:
            found = self._made.get(place)
            if found is not None and found.task is task:
                del self._made[place]

    def _forget_old(self) -> None:
        oldest_s = time.monotonic() - self._limits.keys_kept_s
        while self._made:
            place, first = next(iter(self._made.items()))
            if not first.task.done() or (first.time_s > oldest_s and len(self._made) < self._limits.keys_max):
                return
            del self._made[place]
