"""Publications of replicated tables that are visible here and that other members may not have made yet.

Every member answers reads of a replicated table from its own copy, and members publish a load one after the other. An
answer with its rows waits until all members have them: whoever reads next, at whichever member, must not find the rows
of before.

Readers are not stopped before the first member publishes: that would need no message of the controller, but all of them
would wait for the slowest member that prepares a large load.

The controller tells when all have published. If it does not, because it is gone or its word was lost, the members are
asked.

**Invariant**: when an answer with the rows of a publication is sent, no member answers with those of before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from secateur.cluster.peers import MemberCaller
from secateur.errors import Error, InterfaceError, OperationalError, TopologyChangedError
from secateur.protocol.changes import GetPublication, PublishedEverywhere
from secateur.protocol.message import Acknowledged
from secateur.wire import Reply, Request

_TOLD_WITHIN_S: Final = 0.2
_PAUSE_S: Final = 0.1


class _Publication:
    """One that is visible here.

    Attributes:
        number: Its number.
        confirmed: Set when all members have made it.
        is_asked: Whether the members are being asked for it.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.confirmed = asyncio.Event()
        self.is_asked = False


class UnconfirmedPublications:
    """Knows these publications, and waits for them. Lives on the member's event loop. It is false while there is none.

    Args:
        members: How to reach the other members.
        other_ids: Gives their ids, as of the newest topology.
        start: Begins to ask them, in the background.
        wait_max_s: Seconds that a reader waits.
    """

    def __init__(
        self,
        members: MemberCaller,
        other_ids: Callable[[], Sequence[str]],
        start: Callable[[Coroutine[Any, Any, None]], None],
        wait_max_s: float,
    ) -> None:
        self._members = members
        self._other_ids = other_ids
        self._start = start
        self._wait_max_s = wait_max_s
        self._by_table: dict[int, _Publication] = {}

    def __bool__(self) -> bool:
        return bool(self._by_table)

    def __contains__(self, table_id: int) -> bool:
        return table_id in self._by_table

    def made(self, table_id: int, number: int) -> None:
        """A load of a replicated table has become visible here. All members have those before it."""
        self._confirm(table_id)
        if self._other_ids():
            self._by_table[table_id] = _Publication(number)

    def told(self, request: Request[PublishedEverywhere]) -> Reply[Acknowledged]:
        """The controller reports that all members have published a load."""
        known = self._by_table.get(request.message.table_id)
        if known is not None and known.number <= request.message.number:
            self._confirm(request.message.table_id)
        return Reply(Acknowledged())

    async def wait(self, table_id: int) -> None:
        """Return once all members have what is visible of a table here now.

        Raises:
            TopologyChangedError: They do not have it for too long; to be read again.
        """
        seen = self._by_table.get(table_id)
        if seen is None:
            return
        try:
            async with asyncio.timeout(_TOLD_WITHIN_S):
                await seen.confirmed.wait()
            return
        except TimeoutError:
            if not seen.is_asked:
                seen.is_asked = True
                self._start(self._ask(table_id, seen))
        try:
            async with asyncio.timeout(self._wait_max_s):
                await seen.confirmed.wait()
        except TimeoutError as error:
            raise TopologyChangedError(
                "the statement has read rows of a replicated table that not all members have published for"
                f" {self._wait_max_s:g} s; try again"
            ) from error

    def _confirm(self, table_id: int) -> None:
        known = self._by_table.pop(table_id, None)
        if known is not None:
            known.confirmed.set()

    async def _ask(self, table_id: int, publication: _Publication) -> None:
        while not publication.confirmed.is_set():
            asking = (self._has(member, table_id, publication.number) for member in self._other_ids())
            if all(await asyncio.gather(*asking)):
                if self._by_table.get(table_id) is publication:
                    self._confirm(table_id)
                return
            await asyncio.sleep(_PAUSE_S)

    async def _has(self, member: str, table_id: int, number: int) -> bool:
        """Whether a member cannot answer any more with rows from before a publication."""
        try:
            return (await self._members.call(member, GetPublication(table_id))).number >= number
        except (OperationalError, InterfaceError) as error:
            return isinstance(error.__cause__, ConnectionRefusedError)
        except Error:  # it has no such table any more
            return True
