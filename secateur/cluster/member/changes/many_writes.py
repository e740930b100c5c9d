"""Many writes that come in one frame: those of a few rows are made together, on the event loop.

Each is what it would be in a frame of its own: rows of one partition, visible at once, under an id of its own. The
first that cannot be made without waiting ends the answer, and its client makes it and those behind it otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias, TypeVar

from secateur.cluster.member.changes.writes import MemberWrites
from secateur.errors import Error
from secateur.protocol.changes import ChangedRows, RowCount
from secateur.protocol.many import ChangedMany, WriteMany
from secateur.wire import Reply, Request

T = TypeVar("T")

_PER_TURN: Final = 32
"""Changes of few rows in one turn of the event loop, which then reads other frames: about two milliseconds."""

Made: TypeAlias = (
    Reply[ChangedRows] | asyncio.Future[Reply[ChangedRows]] | Reply[RowCount] | asyncio.Future[Reply[RowCount]]
)
"""The answer of a change that was made: a reply, or a future that ends once all copies have the change."""


class ManyWrites:
    """Answers ``write_many`` requests. Lives on the member's event loop.

    Args:
        writes: Writes rows.
    """

    def __init__(self, writes: MemberWrites) -> None:
        self._writes = writes

    async def write(self, request: Request[WriteMany]) -> Reply[ChangedMany]:
        """Make the first writes, as many as take no waiting, and answer when all copies have them."""
        asked = request.message

        def make(number: int) -> Made | None:
            partition, rows = asked.writes[number]
            return self._writes.written_now(asked.table_id, partition, asked.mode, asked.id_of(number), rows)

        return Reply(await confirmed(await made_in_turns(len(asked.writes), make, self._writes.together)))


async def made_in_turns(
    count: int, make: Callable[[int], T | None], together: Callable[[], AbstractContextManager[None]]
) -> list[T]:
    """Make the first changes of a frame, some in each turn of the event loop, and return what ``make`` does.

    Args:
        count: How many changes the frame has.
        make: Makes the change with a number; returns None where that takes waiting, and raises an Error where it cannot
            be made: this one and those behind it are left to requests of their own, which say so and may be repeated.
        together: Sends the changes of one turn to their copies.
    """
    made: list[T] = []
    while len(made) < count:
        if made:
            await asyncio.sleep(0)
        with together():
            for number in range(len(made), min(len(made) + _PER_TURN, count)):
                try:
                    answer = make(number)
                except Error:
                    return made
                if answer is None:
                    return made
                made.append(answer)
    return made


async def confirmed(made: Sequence[Made]) -> ChangedMany:
    """Answer for changes in their order, once all copies have them or are not waited for any longer."""
    rows: list[int] = []
    for number, answer in enumerate(made):  # most are done as soon as the first one is: one message has them all
        if isinstance(answer, Reply):
            reply: Reply[Any] | None = answer
        else:
            if not answer.done():
                await asyncio.wait((answer,))
            reply = None if answer.exception() is not None else answer.result()
        if reply is not None and len(rows) == number:
            rows.append(reply.message.rows)
    return ChangedMany(rows, len(made) - len(rows))
