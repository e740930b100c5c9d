"""Changes that a member has made lately, by the id that the client gave each: a change that is asked for again is not made again.

A client whose connection breaks cannot know whether its ``UPDATE t SET v = v + 1`` was carried out. It asks again under the same id, and whoever holds the
partition then knows: the primary made the change or did not, and a backup that took its place has the id with the copy of the rows.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["Applied", "ChangeBook"]

_KEPT_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Applied:
    """A change that was made here.

    Attributes:
        rows: Rows written or removed.
        confirmed: Ends when the backups have it.
        sent_bytes: Bytes sent to the backups.
    """

    rows: int
    confirmed: Awaitable[object]
    sent_bytes: int = 0


class ChangeBook:
    """Outcomes by id, the oldest forgotten first. Lives on the member's event loop.

    Args:
        kept_max: Outcomes kept.
    """

    def __init__(self, kept_max: int = _KEPT_MAX) -> None:
        self._outcomes: OrderedDict[str, asyncio.Future[int]] = OrderedDict()
        self._kept_max = kept_max

    async def once(self, change_id: str, make: Callable[[], Awaitable[Applied]]) -> int:
        """Make a change and wait for its backups; if that was asked for before, wait for what becomes of it.

        Args:
            change_id: Given by the client.
            make: Makes the change. When it raises, nothing was changed, and asking again tries again.

        Returns:
            Rows written or removed.

        Raises:
            Error: As ``make``, or that a backup has not confirmed a change that was made; asking again says the same.
        """
        known = self._outcomes.get(change_id)
        if known is not None:
            return await asyncio.shield(known)
        outcome = self._enter(change_id)
        try:
            applied = await make()
        except BaseException as error:
            self._outcomes.pop(change_id, None)
            _fail(outcome, error)
            raise
        try:
            await applied.confirmed
        except BaseException as error:
            _fail(outcome, error)
            raise
        outcome.set_result(applied.rows)
        return applied.rows

    def note(self, change_id: str, rows: int) -> None:
        """Remember a change that this member has as a backup."""
        if change_id not in self._outcomes:
            self._enter(change_id).set_result(rows)

    def _enter(self, change_id: str) -> asyncio.Future[int]:
        outcome = self._outcomes[change_id] = asyncio.get_running_loop().create_future()
        if len(self._outcomes) > self._kept_max:
            self._outcomes.popitem(last=False)
        return outcome


def _fail(outcome: asyncio.Future[int], error: BaseException) -> None:
    if isinstance(error, asyncio.CancelledError):
        outcome.cancel()
        return
    outcome.set_exception(error)
    outcome.exception()  # looked at: mostly nobody else waits for it
