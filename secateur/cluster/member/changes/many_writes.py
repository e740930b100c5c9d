"""Many writes that come in one frame: those of a few rows are made together, on the event loop.

Each is what it would be in a frame of its own: rows of one partition, visible at once, under an id of its own. The
first that cannot be made without waiting ends the answer, and its client makes it and those behind it otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias

from secateur.cluster.member.changes.writes import MemberWrites
from secateur.errors import Error
from secateur.protocol.changes import ChangedRows, RowCount
from secateur.protocol.many import ChangedMany, WriteMany
from secateur.wire import Reply, Request

__all__ = ["CHANGES_PER_TURN", "Made", "ManyWrites", "confirmed"]

CHANGES_PER_TURN: Final = 32
"""Changes of few rows in one turn of the event loop, which then reads other frames: about two milliseconds."""

Made: TypeAlias = (
    Reply[ChangedRows] | asyncio.Future[Reply[ChangedRows]] | Reply[RowCount] | asyncio.Future[Reply[RowCount]]
)
"""The answer of a change that was made: there, or once all copies have the change."""


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
        made: list[Made] = []
        for number, (partition, rows) in enumerate(asked.writes):
            if number and number % CHANGES_PER_TURN == 0:
                await asyncio.sleep(0)
            try:
                answer = self._writes.written_now(asked.table_id, partition, asked.mode, asked.id_of(number), rows)
            except Error:
                break  # nothing was written; to be said of a write of its own, which may be repeated
            if answer is None:
                break
            made.append(answer)
        return Reply(await confirmed(made))


async def confirmed(made: Sequence[Made]) -> ChangedMany:
    """What is said of changes, in their order, once all copies have them or are not waited for any longer."""
    waiting = [answer for answer in made if not isinstance(answer, Reply)]
    if waiting:
        await asyncio.gather(*waiting, return_exceptions=True)
    rows: list[int] = []
    for answer in made:
        if not isinstance(answer, Reply):
            if answer.exception() is not None:
                break
            rows.append(answer.result().message.rows)
        else:
            rows.append(answer.message.rows)
    return ChangedMany(rows, len(made) - len(rows))
