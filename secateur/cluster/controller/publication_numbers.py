"""Which publication of a table was the last: a member whose rows lack one that was acknowledged must not come back.

A controller knows the number once a member has told it that it has published. Until then the load is in doubt: the
members decide it, and all that live decide the same (:mod:`secateur.cluster.termination_protocol`). If all of them are
lost before that is known, no client has been told of an outcome. Then the first member that comes back decides: it has
every publication that was acknowledged, and perhaps the one in doubt.

What each member was told is kept beyond its end: one that comes back with the last copy of a partition takes no part in
loads meanwhile, so it is compared with what there was when it left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final

from secateur.cluster.controller.recovery import newest_publications
from secateur.errors import Error
from secateur.protocol.recovery import GetReport, LastLoad, MemberReport

_ASK_AGAIN_S: Final = 0.1
_NOBODY: Final[frozenset[str]] = frozenset()


class PublicationNumbers:
    """Keeps the numbers that members were told. Lives on the controller's event loop.

    Args:
        ask: Asks a member for its report.
        is_member: Whether a member is in the cluster.

    Attributes:
        last: The newest number that was given to a load, of any table.
    """

    def __init__(
        self, ask: Callable[[str, GetReport], Awaitable[MemberReport]], is_member: Callable[[str], bool]
    ) -> None:
        self._ask = ask
        self._is_member = is_member
        self.last = 0
        self._newest: dict[int, int] = {}
        self._in_doubt: dict[int, frozenset[str]] = {}  # the members that decide, by table
        self._told: dict[str, dict[int, LastLoad]] = {}  # since a member has come, also of those that have left

    def following(self) -> int:
        """The number of the next load."""
        self.last += 1
        return self.last

    def newest(self, origin: int) -> int:
        """The number of the last publication that is known to be made; 0 for none."""
        return self._newest.get(origin, 0)

    @property
    def are_in_doubt(self) -> bool:
        """Whether there is a table of which the last publication may have been made or not."""
        return bool(self._in_doubt)

    def last_loads(self, owners: Collection[str]) -> Mapping[str, Mapping[int, LastLoad]]:
        """The last load of each table that members were told to publish before they left; forgets those of all others.

        Args:
            owners: The members that have left as the last owners of partitions.
        """
        self._told = {
            member: told for member, told in self._told.items() if member in owners or self._is_member(member)
        }
        return {owner: self.told(owner) for owner in owners}

    def told(self, member: str) -> Mapping[int, LastLoad]:
        """The last load of each table that a member was told to publish since it has come."""
        return self._told.get(member, {})

    def came(self, member: str) -> None:
        """Forget what a member was told, as it is let in again: its rows count as current from now on."""
        self._told.pop(member, None)

    def taken_over(
        self,
        reports: Mapping[str, MemberReport],
        members: Iterable[str],
        last_loads: Mapping[str, Mapping[int, LastLoad]],
    ) -> None:
        """Go on from what members tell a controller that starts anew.

        Args:
            reports: Their reports.
            members: The members of the record, which have taken part in everything that was published.
            last_loads: The last loads of the members that had left before, from the record.
        """
        newest = newest_publications(reports)
        self._newest.update((origin, load.number) for origin, load in newest.items())
        self._told = {
            **{owner: dict(loads) for owner, loads in last_loads.items()},
            **{m: dict(newest) for m in members},
        }
        for member, report in reports.items():
            for held in report.tables:
                if held.has_load_in_doubt:
                    self._in_doubt[held.origin] = self._in_doubt.get(held.origin, _NOBODY) | {member}

    def made(self, origin: int, number: int, load_id: str = "", members: Iterable[str] = ()) -> None:
        """A member has told that it has published, or has come back as the only one that can say.

        Args:
            origin: The table, by the id with which it was created.
            number: The number of the publication.
            load_id: The load.
            members: All that had prepared it; those that have ended since have it on disk.
        """
        self._newest[origin] = number
        self._in_doubt.pop(origin, None)
        for member in members:
            self._told.setdefault(member, {})[origin] = LastLoad(number, load_id)

    def maybe_made(self, origin: int) -> None:
        """Members were sent the order to publish, and all were lost before one of them answered."""
        self._in_doubt[origin] = _NOBODY

    def pass_doubt(self, origin: int) -> None:
        """All members of a table with partitions are away: go on behind a load of it that these have made or not.

        A member that comes back has a number that is not above this one. Versions of its change feed would go back, and
        readers miss changes, if it went on from that before the load.
        """
        if origin in self._in_doubt:
            self.made(origin, self.following())

    def forget(self, origin: int) -> None:
        """A table was dropped; its id never comes again."""
        self._newest.pop(origin, None)
        self._in_doubt.pop(origin, None)
        for told in self._told.values():
            told.pop(origin, None)

    def is_current(self, origin: int, number: int, *, has_holders: bool) -> bool:
        """Whether a member that comes back has all that was acknowledged, and nothing that was refused.

        Args:
            origin: The table, by the id with which it was created.
            number: The number of the last publication there.
            has_holders: Whether members of the cluster have the rows. What is in doubt is for these to decide.
        """
        newest = self.newest(origin)
        if origin in self._in_doubt:
            return number >= newest and not has_holders
        return number == newest or not newest  # of 0, it may be that nobody has told

    async def settled(self) -> None:
        """Return when the members that decide loads in doubt have done so, or are lost."""
        while deciding := sorted(filter(self._is_member, _NOBODY.union(*self._in_doubt.values()))):
            for member in deciding:
                await self._hear(member)
            if self.are_in_doubt:
                await asyncio.sleep(_ASK_AGAIN_S)

    async def _hear(self, member: str) -> None:
        try:
            report = await self._ask(member, GetReport())
        except Error:
            return  # it is asked again, unless it is lost
        for held in report.tables:
            if not held.has_load_in_doubt and member in self._in_doubt.get(held.origin, _NOBODY):
                self.made(held.origin, held.published)
