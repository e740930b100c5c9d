"""ALTER TABLE on one member: the two phases of :mod:`secateur.cluster.controller.alteration`.

When ranges are cut out of the catch-all, it may contain rows of them, and further rows may be on their way into it.
When columns change, no change may be on its way that was made for those of before. Therefore the writes of the table
wait from the check until the member uses the new table; other changes of ranges block no writes. The latch is held
under a lease (:mod:`secateur.cluster.write_latch`): when the controller is gone, the members commit what one of them
has committed, and give up everything else.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar

import numpy as np
from msgspec import structs

from secateur.cluster.write_latch import LoadLeases, WriteLatch
from secateur.errors import LoadFailedError, SchemeError
from secateur.partitioning.tables.table import TableDef, TableDefinition
from secateur.protocol.catalog import AbortAlter, CommitAlter, PrepareAlter
from secateur.protocol.codec import decode
from secateur.protocol.message import Acknowledged
from secateur.storage.altered_rows import VersionedRows
from secateur.storage.load_registry import LoadOutcome
from secateur.storage.member_store import MemberStore
from secateur.storage.snapshot import PartitionSnapshot
from secateur.wire import PeerInfo, Reply, Request

R = TypeVar("R")

_OUTCOMES_MAX: Final = 1_000
_DECODED_HERE_MAX: Final = 64 << 10
"""Bytes of a definition that the event loop decodes itself: fractions of a millisecond."""
_ABORTED: Final = LoadOutcome(published=False, rows=0)
_COMMITTED: Final = LoadOutcome(published=True, rows=0)


@dataclass(slots=True)
class _Change:
    table: TableDef
    partitions: tuple[int, ...]
    rows: Mapping[int, VersionedRows] = field(default_factory=dict)
    is_prepared: bool = False


class Alterations:
    """The changes of tables that a member is about to make, by id, and how the last ones ended.

    Args:
        adopt: Called with the table once it has changed.
    """

    def __init__(self, store: MemberStore, adopt: Callable[[TableDef], None]) -> None:
        self._store = store
        self._adopt = adopt
        self._changes: dict[str, _Change] = {}
        self._outcomes: OrderedDict[str, LoadOutcome] = OrderedDict()

    def begin(self, load_id: str, table: TableDef, partitions: tuple[int, ...]) -> None:
        """A change is about to be prepared.

        Raises:
            LoadFailedError: It has ended.
        """
        if load_id in self._outcomes:
            raise self.given_up()
        self._changes[load_id] = _Change(table, partitions)

    def prepared(self, load_id: str, rows: Mapping[int, VersionedRows] = MappingProxyType({})) -> None:
        """A change is prepared, with the rows of each partition if they get other columns: nothing can fail any more.

        Raises:
            LoadFailedError: It has ended meanwhile.
        """
        change = self._changes.get(load_id)
        if change is None:
            raise self.given_up()
        change.rows = rows
        change.is_prepared = True

    def outcome(self, load_id: str) -> LoadOutcome | None:
        """The outcome of a change here; None when it has not ended."""
        return self._outcomes.get(load_id)

    def is_prepared(self, load_id: str) -> bool:
        """Whether a change is prepared here and has not ended."""
        change = self._changes.get(load_id)
        return change is not None and change.is_prepared

    def publish(self, load_id: str, number: int = 0, rows: int = 0) -> None:
        """Take the new table of a change over. Nothing happens when it is not prepared."""
        if self.is_prepared(load_id):
            change = self._changes.pop(load_id)
            self._store.alter_table(change.table, change.partitions, change.rows)
            self._adopt(change.table)
            self._end(load_id, _COMMITTED)

    def abort(self, load_id: str) -> None:
        """Forget a change, and refuse it from now on; nothing happens to what has ended."""
        self._changes.pop(load_id, None)
        if load_id not in self._outcomes:
            self._end(load_id, _ABORTED)

    def follow(self, table: TableDef) -> None:
        """Take over the columns that were altered while this member was away, if it has the table as it was before.

        It has the ranges of before then, which may have changed as well.

        Raises:
            NullKeyError: A disk has lost what made a column NOT NULL.
        """
        before = None if table.succession is None else self._store.find(table.succession.before)
        if before is None or self._store.find(table.table_id):
            return
        followed = structs.replace(table, scheme_or_reference=before.scheme, version=before.version)
        self._store.alter_table(followed, self._store.hosted(before.table_id))
        self._adopt(followed)

    def under_way(self) -> list[str]:
        """The ids of the changes that have not ended."""
        return list(self._changes)

    @staticmethod
    def given_up() -> LoadFailedError:
        """The error for a change that has ended before the controller said so."""
        return LoadFailedError(
            "ALTER TABLE was aborted, because the members received nothing from the controller for too long: nothing"
            " was changed, try again"
        )

    def _end(self, load_id: str, outcome: LoadOutcome) -> None:
        self._outcomes[load_id] = outcome
        if len(self._outcomes) > _OUTCOMES_MAX:
            self._outcomes.popitem(last=False)


class MemberAlterations:
    """Answers ``prepare_alter``, ``commit_alter`` and ``abort_alter``. Lives on the member's event loop.

    Args:
        latch: Finds the latch of a table's writes by the table's id.
        executor: Threads for reading the catch-all, and for making rows with other columns.
        changes: The changes that are prepared, and those that have ended.
        level: Returns once all copies have every change of a table's partitions that are this member's, whose writes
            have ended.
    """

    def __init__(
        self,
        store: MemberStore,
        latch: Callable[[int], WriteLatch],
        executor: Executor,
        changes: Alterations,
        leases: LoadLeases,
        level: Callable[[int], Awaitable[None]],
    ) -> None:
        self._store = store
        self._latch = latch
        self._executor = executor
        self._changes = changes
        self._leases = leases
        self._level = level

    async def prepare(self, request: Request[PrepareAlter]) -> Reply[Acknowledged]:
        """First phase.

        Raises:
            SchemeError: The catch-all has rows of a range that is to be added.
            NullKeyError: A column is to be NOT NULL, and has NULLs.
            UnknownTableError: The table is not here.
            TopologyChangedError: A copy lacks rows or changes.
            LoadFailedError: The members have given the change up.
        """
        asked = request.message
        table = await resolved_table(asked.table, self._executor)
        load_id, partitions = asked.load_id, tuple(asked.partitions)
        succession = table.succession
        if succession is not None and self._store.find(table.table_id) is None:
            before = self._store.table(succession.before)
            self._changes.begin(load_id, table, partitions)
            await self._close(load_id, before, request.peer)
            await self._level(before.table_id)
            rows = await self._in_thread(self._store.altering(table, partitions))
            self._changes.prepared(load_id, rows)
            return Reply(Acknowledged())
        cuts = cuts_catch_all(self._store.table(table.table_id), table)
        self._changes.begin(load_id, table, partitions)
        if cuts:
            await self._close(load_id, table, request.peer)
            rest = {
                number: self._store.partition(table.table_id, number).snapshot()
                for number in partitions
                if table.scheme.is_catch_all(number)
            }
            await self._in_thread(partial(check_catch_all, table, rest))
        self._changes.prepared(load_id)
        return Reply(Acknowledged())

    async def _close(self, load_id: str, table: TableDef, peer: PeerInfo) -> None:
        await self._leases.close(load_id, table.table_id, self._latch(table.table_id), peer.connection_id)

    async def _in_thread(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def follow(self, table: TableDef) -> None:
        """As :meth:`Alterations.follow`."""
        self._changes.follow(table)

    async def commit(self, request: Request[CommitAlter]) -> Reply[Acknowledged]:
        """Second phase: take the new table over.

        Raises:
            LoadFailedError: The members have given the change up.
        """
        load_id = request.message.load_id
        await self._leases.decided(load_id)
        outcome = self._changes.outcome(load_id)
        if outcome is not None and not outcome.published:
            raise self._changes.given_up()
        self._changes.publish(load_id)
        self._leases.release(load_id)
        return Reply(Acknowledged())

    def controller_replaced(self) -> None:
        """Another controller has taken over: it begins anew what the one before had prepared, or gives it up.

        A late order of the one before is refused then. The members themselves decide changes that close a latch.
        """
        for load_id in self._changes.under_way():
            if not self._leases.holds(load_id):
                self._changes.abort(load_id)

    async def abort(self, request: Request[AbortAlter]) -> Reply[Acknowledged]:
        """Forget a preparation; nothing happens when there is none."""
        self._changes.abort(request.message.load_id)
        self._leases.release(request.message.load_id)
        return Reply(Acknowledged())


async def resolved_table(definition: bytes, executor: Executor) -> TableDef:
    """The table of an encoded :class:`~secateur.partitioning.tables.table.TableDefinition`.

    With many ranges that takes its time, which the event loop does not have.
    """
    if len(definition) <= _DECODED_HERE_MAX:
        return _resolved(definition)
    return await asyncio.get_running_loop().run_in_executor(executor, _resolved, definition)


def _resolved(definition: bytes) -> TableDef:
    table = decode(definition, TableDefinition).table
    table.scheme.resolve()
    return table


def cuts_catch_all(before: TableDef, after: TableDef) -> bool:
    """Whether ranges are added that take keys from a catch-all which stays."""
    old, new = before.scheme.range, after.scheme.range
    if (
        old is None
        or new is None
        or old.catch_all is None
        or new.catch_all is None
        or old.catch_all.ordinal != new.catch_all.ordinal
    ):
        return False
    return new.ordinals_used > old.ordinals_used


def check_catch_all(table: TableDef, rest: Mapping[int, PartitionSnapshot]) -> None:
    """Refuse ranges whose rows the catch-all has. Costs the partition function of its rows.

    To move these rows would have a statement that defines ranges copy an unknown amount of data.
    """
    found = sum(
        int(np.count_nonzero(table.scheme.partitions_of(snapshot.table) != number)) for number, snapshot in rest.items()
    )
    if found:
        raise SchemeError(
            f"table {table.name}: the DEFAULT PARTITION has {found} row{'s' if found > 1 else ''} of the ranges to be"
            " added, and rows do not move by themselves: nothing was changed. Read these rows, DELETE them, add the"
            " ranges, and load them again",
            table=table.name,
            rows=found,
        )
