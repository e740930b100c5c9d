"""Answers of loads and changes that a client asks for again under the id of the load, because the first was lost.

The load is published at most once. A client says that it asks again, so that the first request costs nothing more.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from secateur.errors import LoadFailedError, MemberLostError, PartitionLostError
from secateur.protocol.changes import GetLoadOutcome, LoadOutcomeAnswer

R = TypeVar("R")

_KEPT_MAX: Final = 1_000
_ASK_AGAIN_S: Final = 0.1


class LoadAnswers:
    """Remembers these answers. Lives on the controller's event loop.

    Args:
        ask: Asks a member for the outcome of a load.
        members: Gives the ids of the members.
        settled: Returns when what was in doubt at a change of controllers is decided, and this one knows how: a member
            that comes back later must not have another outcome than the client was told.
    """

    def __init__(
        self,
        ask: Callable[[str, GetLoadOutcome], Coroutine[Any, Any, LoadOutcomeAnswer]],
        members: Callable[[], Sequence[str]],
        settled: Callable[[], Awaitable[None]],
    ) -> None:
        self._ask = ask
        self._members = members
        self._settled = settled
        self._answers: OrderedDict[str, asyncio.Future[Any]] = OrderedDict()

    async def once(
        self, load_id: str, *, is_repeat: bool, work: Callable[[], Coroutine[Any, Any, R]], answer: Callable[[int], R]
    ) -> R:
        """Publish a load, unless that was done before; then return its answer.

        Args:
            load_id: The load.
            is_repeat: Whether the client asks again.
            work: Publishes it.
            answer: The answer for a load of which only the number of rows is known; -1 for not even that.

        Raises:
            LoadFailedError: It was asked for before, and not published; it never will be.
            Error: As ``work``.
        """
        if is_repeat:
            before = self._answers.get(load_id)
            if before is not None:
                try:
                    return await asyncio.shield(before)
                except asyncio.CancelledError:
                    if not before.cancelled():
                        raise
            return answer(await self.rows_published(load_id))
        task = asyncio.ensure_future(work())
        self._answers[load_id] = task
        if len(self._answers) > _KEPT_MAX:
            self._answers.popitem(last=False)
        return await task

    async def rows_published(self, load_id: str) -> int:
        """The rows of a published load; -1 if nobody knows how many. Members that are asked do not prepare it any more.

        Raises:
            LoadFailedError: It was not published, and never will be.
            PartitionLostError: No member is left that could say.
        """
        await self._settled()
        while True:
            members = self._members()
            if not members:
                raise PartitionLostError(
                    f"no member is left that could say whether load {load_id} was published: read the table when one"
                    " has come back",
                    load_id=load_id,
                )
            outcomes = await asyncio.gather(
                *(self._ask(member, GetLoadOutcome(load_id)) for member in members), return_exceptions=True
            )
            told = [outcome for outcome in outcomes if isinstance(outcome, LoadOutcomeAnswer)]
            if published := [outcome.rows for outcome in told if outcome.is_published]:
                return max(published)
            failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
            unexpected = [error for error in failed if not isinstance(error, MemberLostError)]
            if unexpected:
                raise unexpected[0]
            if not failed and not any(outcome.is_in_doubt for outcome in told):
                raise LoadFailedError(
                    f"load {load_id} was aborted, because its controller ended before it was published; nothing was"
                    " changed",
                    load_id=load_id,
                    is_aborted=True,
                )
            await asyncio.sleep(_ASK_AGAIN_S)
