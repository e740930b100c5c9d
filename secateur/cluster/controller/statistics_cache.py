"""The statistics cache: the controller keeps the statistics of all tables for the planner.

Members collect statistics in the background: after loads, and when the rows written since the last time are more than a
fifth of the table, or when a member reports an estimate that was badly wrong and any row was written since. A member is
asked about one table at a time, and about the same table again only after ten times as
long as the last answer took, so statistics cost a member at most a tenth of its time, however often its tables change.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from secateur.cluster.controller.recovery import first_of
from secateur.cluster.peers import MemberCaller
from secateur.errors import Error
from secateur.partitioning.tables.statistics import StatisticsSnapshot, TableStatistics, total
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.catalog import LookAtStatistics

_log = logging.getLogger(__name__)
_STALE_SHARE: Final = 0.2
_REST_FACTOR: Final = 9.0
_MISS_REST_FACTOR: Final = 99.0
"""The rest after statistics that were collected only because of a wrong estimate and taught nothing: uneven values make
estimates wrong whatever is collected."""
_ARRIVAL_WAIT_S: Final = 0.5
"""The longest that a statement waits for statistics that are being collected; members need some 15 ms a column, however
many rows they have."""


class StatisticsCache:
    """Collects and keeps the statistics. Lives on the controller's event loop.

    Args:
        served: The table of an id, and the partitions of which each member is the primary, each row once; None when
            there is no such table any more.
        clock: Seconds since some moment.
        sleep: Waits for seconds of that clock.
    """

    def __init__(
        self,
        members: MemberCaller,
        served: Callable[[int], tuple[TableDef, Mapping[str, Sequence[int]]] | None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._members = members
        self._served = served
        self._clock = clock
        self._sleep = sleep
        self._statistics_snapshot = StatisticsSnapshot()
        self._written: defaultdict[int, float] = defaultdict(float)
        self._counted: dict[tuple[str, int], int] = {}
        self._missed: set[int] = set()
        self._counted_misses: dict[tuple[str, int], int] = {}
        self._rest_until_s: dict[int, float] = {}
        self._miss_rest_until_s: dict[int, float] = {}
        self._working: asyncio.Task[None] | None = None
        self._collecting: dict[int, float] = {}
        self._refreshed = asyncio.Event()

    def start_anew(self, epoch: int, tables: Iterable[int]) -> None:
        """Collect the statistics of all tables: an earlier controller had them.

        Args:
            epoch: The epoch of this controller; the versions of earlier ones are lower.
            tables: The ids of the tables.
        """
        self._statistics_snapshot = StatisticsSnapshot(version=first_of(epoch))
        for table_id in tables:
            self.replaced(table_id)

    @property
    def arriving(self) -> frozenset[int]:
        """The tables of which there are no statistics, or no longer useful ones, and new ones are being collected."""
        if self._working is None or self._working.done():
            return frozenset()
        now_s = self._clock()
        soon = [each for each in self._written.items() if self._rest_until_s.get(each[0], 0.0) <= now_s]
        return frozenset(
            table_id for table_id, rows in (*soon, *self._collecting.items()) if rows > self._rows(table_id)
        )

    async def arrived(self, tables: frozenset[int] | None) -> None:
        """Wait for those of :attr:`arriving` that are among some tables, but not for long.

        Args:
            tables: Their ids; None for all tables.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_ARRIVAL_WAIT_S):
                while self.arriving if tables is None else not self.arriving.isdisjoint(tables):
                    await self._refreshed.wait()

    @property
    def statistics_snapshot(self) -> StatisticsSnapshot:
        """The statistics of this moment; a frozen value."""
        return self._statistics_snapshot

    @property
    def version(self) -> int:
        """The version of the statistics of this moment."""
        return self._statistics_snapshot.version

    def replaced(self, table_id: int) -> None:
        """All rows of a table are other ones now."""
        self._written[table_id] = float("inf")
        self._work_soon()

    def written(self, table_id: int, rows: float) -> None:
        """Rows of a table were added, replaced or removed."""
        self._written[table_id] += rows
        self._work_soon()

    def counted(self, member_id: str, written: Mapping[int, int], misses: Mapping[int, int] | None = None) -> None:
        """A member reports, since it started, the rows written to each of its tables other than by loads.

        Args:
            member_id: The member.
            written: These rows, by table id.
            misses: How many estimates of statements that it coordinated were badly wrong, by table id.
        """
        for table_id, rows in written.items():
            before = self._counted.get((member_id, table_id), 0)
            self._counted[member_id, table_id] = rows
            served = self._served(table_id) if rows > before else None
            if served is not None:
                table, by_member = served
                copies = len(by_member) if table.replicated else min(1 + table.backups, len(by_member))
                self._written[table_id] += (rows - before) / copies
        now_s = self._clock()
        for table_id, count in (misses or {}).items():
            if count > self._counted_misses.get((member_id, table_id), 0) and self._served(table_id) is not None:
                self._counted_misses[member_id, table_id] = count
                # Without a row written since, new statistics would be the same.
                if self._written.get(table_id) and now_s >= self._miss_rest_until_s.get(table_id, 0.0):
                    self._missed.add(table_id)
        self._work_soon()

    def forget(self, table_id: int) -> None:
        """A table was dropped; its id never comes again."""
        self._written.pop(table_id, None)
        self._rest_until_s.pop(table_id, None)
        self._counted = {key: rows for key, rows in self._counted.items() if key[1] != table_id}
        self._missed.discard(table_id)
        self._miss_rest_until_s.pop(table_id, None)
        self._counted_misses = {key: count for key, count in self._counted_misses.items() if key[1] != table_id}
        self._statistics_snapshot = self._statistics_snapshot.without_table(table_id)

    def member_left(self, member_id: str) -> None:
        """A member has left: what it has counted says nothing about one that comes in its place."""
        self._counted = {key: rows for key, rows in self._counted.items() if key[0] != member_id}
        self._counted_misses = {key: count for key, count in self._counted_misses.items() if key[0] != member_id}

    async def refresh(self, table_id: int) -> TableStatistics | None:
        """Look at a table now; None when there is no such table any more.

        Raises:
            Error: A member answers with an error, or cannot be reached. The earlier statistics stay.
        """
        served = self._served(table_id)
        if served is None:
            self.forget(table_id)
            return None
        table, by_member = served
        self._missed.discard(table_id)
        written = self._collecting[table_id] = self._written.pop(table_id, 0.0)
        try:
            answers = await asyncio.gather(
                *(
                    self._members.call(member, LookAtStatistics(table_id, list(partitions)))
                    for member, partitions in by_member.items()
                    if partitions
                )
            )
            statistics = total(table, [answer.summary for answer in answers])
            self._statistics_snapshot = self._statistics_snapshot.with_table(statistics)
        except BaseException:
            self._written[table_id] += written
            raise
        finally:
            self._collecting.pop(table_id, None)
            self._refreshed.set()
            self._refreshed = asyncio.Event()
        return self._statistics_snapshot.of(table_id)

    async def close(self) -> None:
        """Give up what is under way."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)

    def _due(self) -> list[int]:
        return [
            table_id for table_id, rows in self._written.items() if table_id in self._missed or self._is_stale(table_id)
        ]

    def _is_stale(self, table_id: int) -> bool:
        return self._written.get(table_id, 0.0) > _STALE_SHARE * self._rows(table_id)

    def _rows(self, table_id: int) -> int:
        known = self._statistics_snapshot.of(table_id)
        return 0 if known is None else known.rows

    def _work_soon(self) -> None:
        if (self._working is None or self._working.done()) and self._due():
            self._working = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        """Refresh the statistics of the tables that are due, one after the other.

        A table whose members do not answer has its turn when they do again.
        """
        while due := self._due():
            now_s = self._clock()
            table_id = min(due, key=lambda due_id: self._rest_until_s.get(due_id, 0.0))
            rest_s = self._rest_until_s.get(table_id, 0.0) - now_s
            if rest_s > 0:
                await self._sleep(rest_s)
                continue
            only_missed, version = not self._is_stale(table_id), self.version
            try:
                await self.refresh(table_id)
            except Error as error:
                _log.info("the statistics of table %d stay as they are for now: %s", table_id, error)
                return
            ended_s = self._clock()
            self._rest_until_s[table_id] = ended_s + _REST_FACTOR * (ended_s - now_s)
            if only_missed and self.version == version:
                self._miss_rest_until_s[table_id] = ended_s + _MISS_REST_FACTOR * (ended_s - now_s)
