"""CREATE, DROP and ALTER TABLE at the controller: owners first, then every member, and only then the catalog.

A table, a range, or a column exists only once every member has it: a command that fails leaves nothing behind, and no
client can write to something that a member does not know. A member that turns out to be lost on the way is left out,
and the survivors are asked again; so are all if members are told to leave on the way, since those get nothing new.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import pyarrow as pa
from msgspec import structs

from secateur.cluster.controller.access_commands import (
    check_columns,
    check_replacement,
    with_renamed,
    without_grants,
    without_table,
)
from secateur.cluster.controller.alteration import alter_table
from secateur.cluster.controller.catalog import encoded_table
from secateur.cluster.controller.cluster_state import GONE, ClusterState
from secateur.cluster.controller.loads import LoadPublisher
from secateur.cluster.controller.membership import (
    OwnersForgotten,
    RangesChanged,
    TableCreated,
    group_after,
    group_of_new,
)
from secateur.cluster.controller.statistics_cache import StatisticsCache
from secateur.cluster.controller.table_use import closed, closed_if_unused
from secateur.errors import DiskError, Error, MemberLostError, ProtocolError, TopologyChangedError
from secateur.partitioning.schemes.range_changes import RangeChange, alter_ranges, with_cells
from secateur.partitioning.schemes.scheme import RANGES_INLINE_MAX, PartitionScheme
from secateur.partitioning.tables.alteration import Altered, ColumnChange, altered
from secateur.partitioning.tables.table import Succession, TableDef
from secateur.partitioning.topology.owner_routing import copies_of
from secateur.partitioning.types.python_column import canonical_column
from secateur.protocol.catalog import CatchUp, CreateStoredTable, DropStoredTable
from secateur.wire import ShortTable, encode_rows, travels_short

_log = logging.getLogger(__name__)

_TRIES_MAX: Final = 5
"""Attempts at a command during which members are lost or their connections break."""


class TableCommands:
    """Carries out what concerns whole tables. Lives on the controller's event loop.

    Args:
        loads: The loads, none of which may be published while their table changes.
        loading: Shared by what publishes loads, and held alone while copies are built or a member joins.
        executor: Where large schemes are computed.
    """

    def __init__(
        self,
        state: ClusterState,
        loads: LoadPublisher,
        loading: Callable[[], AbstractAsyncContextManager[None]],
        statistics: StatisticsCache,
        executor: Executor,
    ) -> None:
        self._state = state
        self._loads = loads
        self._loading = loading
        self._statistics = statistics
        self._executor = executor

    async def create(self, table: TableDef, *, if_not_exists: bool, or_replace: bool = False) -> None:
        """Give a table its id and owners, and inform the members; a replaced table is dropped once the new one exists.

        Raises:
            TableExistsError: The name is taken.
            NotSupportedError: The name has a schema in front.
            PartitionLostError: No member is left.
        """
        if table.scheme.range is not None and len(table.scheme.range.ranges) > RANGES_INLINE_MAX:
            # With many ranges this takes its time, which the event loop does not have.
            await asyncio.get_running_loop().run_in_executor(self._executor, _resolved, table.scheme)
        async with self._state.changing:
            replaced = self._state.catalog.find(table.name)
            if if_not_exists and replaced is not None:
                return
            if replaced is not None and or_replace:
                check_replacement(self._state.access, replaced)
            for tries_left in reversed(range(_TRIES_MAX)):
                catalog, created = self._state.catalog.with_table(self._in_group(table), or_replace=or_replace)
                if await self._create_at_members(created, is_last=not tries_left):
                    break
            else:
                raise _unsettled(f"CREATE TABLE {table.name}")
            self._state.catalog = catalog
            if replaced is not None:
                await self._forget(replaced)

    async def drop(self, name: str, *, if_exists: bool) -> None:
        """Forget a table everywhere.

        Raises:
            UnknownTableError: There is no such table; or it is a view.
        """
        async with self._state.changing:
            if (
                if_exists
                and self._state.catalog.find(name) is None
                and name.casefold() not in self._state.catalog.views
            ):
                return
            catalog, table = self._state.catalog.without_table(name)
            access = without_grants(self._state.access, table)
            if access is not self._state.access:
                self._state.access = access
                await self._state.all_reached()
            self._state.catalog = catalog
            await self._forget(table)

    async def drop_unused(self, name: str, table_id: int) -> bool:
        """Forget a table that was created for rows which did not come; one that somebody has begun to use stays.

        Args:
            name: The name of the table.
            table_id: Its id, as its creator knows it.

        Returns:
            Whether the table is not there any more.

        Raises:
            Error: A member could not be asked; the table stays.
        """
        async with self._loads.exclusive(table_id), self._state.changing:
            for tries_left in reversed(range(_TRIES_MAX)):
                table = self._state.catalog.find(name)
                if table is None or table.table_id != table_id:
                    return True
                try:
                    async with closed_if_unused(self._state, table) as is_unused:
                        if is_unused:
                            self._state.catalog, table = self._state.catalog.without_table(name)
                            await self._forget(table)
                        return is_unused
                except GONE:
                    if not tries_left:
                        raise
        raise _unsettled(f"the drop of {name}")

    async def alter(self, name: str, changes: Sequence[RangeChange]) -> None:
        """Change the ranges of a table: all the changes, or an error and none.

        Raises:
            UnknownTableError: There is no such table.
            SchemeError: The changes do not fit its ranges as they are now, or a range is to be added whose rows the
                catch-all has.
            PartitionLostError: No member is left.
        """
        table = self._state.catalog.table(name)
        async with self._loads.exclusive(table.table_id), self._state.changing:
            before = self._state.catalog.table(name)
            types = {column.name: column.type for column in before.columns}
            change = partial(
                alter_ranges, before.scheme, changes, types=types, primary_key=before.primary_key, table=before.name
            )
            await self._change_ranges(before, change)

    async def alter_columns(self, name: str, changes: Sequence[ColumnChange]) -> None:
        """Change the columns of a table, or its name: all the changes, or an error and none.

        Writes wait meanwhile. First those that are on their way come to an end: a copy that cannot make one is counted
        out, for which the catalog must not be changing. Then the table is changed at the members.

        Raises:
            UnknownTableError, UnknownColumnError: There is no such table or column.
            TableExistsError: The new name is taken.
            SchemeError: The changes do not fit the columns as they are now.
            NullKeyError: A column is to be NOT NULL, and has NULLs.
            PartitionLostError: A partition has no owner now.
            TopologyChangedError: Members were lost again and again.
        """
        for tries_left in reversed(range(_TRIES_MAX)):
            table = self._state.catalog.table(name)
            try:
                async with (
                    self._loading(),
                    self._loads.exclusive(table.table_id),
                    closed(self._state, table),
                    self._state.changing,
                ):
                    if self._state.catalog.find(name) is table:
                        await self._alter_at_members(table, changes)
                        return
            except (*GONE, TopologyChangedError) as error:
                member_id = error.details.get("member")
                if isinstance(member_id, str):
                    await self._state.still_there(member_id)
                if not tries_left:
                    raise
        raise _unsettled(f"ALTER TABLE {name}")

    async def _alter_at_members(self, before: TableDef, changes: Sequence[ColumnChange]) -> None:
        state, done = self._state, altered(before, changes, datetime.now(UTC))
        if done.table == before:
            return
        check_columns(state.access, before, done.table)
        if not before.replicated:
            live = before.scheme.live_partitions().tolist()
            owners = state.topology.ownership(before.scheme.affinity_group()).owners_of(live) if live else ()
            state.topology.check_live(owners)
        after = structs.replace(
            done.table,
            table_id=state.catalog.last_table_id + 1,
            version=before.version + 1,
            created_as=before.origin,
            succession=Succession(before.table_id, done.sources, _filling(done)),
        )
        state.spend_id(after.table_id)
        catalog = state.catalog.with_altered(before, after)
        state.changing_table = after  # so that a controller that starts anew can complete the change
        await state.all_reached()
        try:
            await alter_table(self._state, after, self._hosted(after, state.topology.member_ids))
        except BaseException:
            state.changing_table = None
            raise
        state.catalog = catalog
        state.access = with_renamed(state.access, before, after)
        self._loads.altered(before.table_id)
        self._statistics.forget(before.table_id)

    async def make_ranges(self, name: str, table_id: int, cells: Sequence[Any]) -> None:
        """Make the ranges for rows that are about to be written to a table with EVERY.

        The new ranges take no rows from existing ones; loads therefore need not wait.

        Args:
            name: The name of the table.
            table_id: Its id, as the sender of the rows knows it.
            cells: The numbers of the ranges.

        Raises:
            UnknownTableError: There is no such table.
            TopologyChangedError: The name belongs to another table now.
            ProtocolError: ``cells`` are no numbers.
        """
        async with self._state.changing:
            table = self._state.catalog.table(name)
            if table.table_id != table_id:
                raise TopologyChangedError(
                    f"table {table.name} was dropped and created again while rows were on their way to it",
                    table=table.name,
                )
            if not all(type(cell) is int for cell in cells):
                raise ProtocolError("make_ranges: cells are numbers")
            await self._change_ranges(table, partial(with_cells, table.scheme, cells, table=table.name))

    def _in_group(self, table: TableDef) -> TableDef:
        """A table in the affinity group that suits it now."""
        if table.replicated:
            return table
        group = group_of_new(self._state.topology, table.scheme, f"{self._state.catalog.last_table_id + 1}.1")
        return (
            table
            if group == table.scheme.structure()
            else structs.replace(table, scheme_or_reference=table.scheme.in_group(group))
        )

    async def _create_at_members(self, table: TableDef, *, is_last: bool) -> bool:
        """Give a table owners and tell the members; False when one was out of reach, lost or told to leave meanwhile.

        Then the id is spent, and those that are left are to be asked anew. The owners count only once every member has
        the table, so that nothing is left of a table that could not be created. They are those that the members were
        told: a member that is told too little of what it owns has no rows of the rest.

        Raises:
            Error: A member refuses the table; or it is out of reach, with ``is_last``.
        """
        definition = await encoded_table(table)
        event = TableCreated(table)
        before, leaving = self._state.topology, self._state.leaving
        topology = self._state.after(event)
        self._state.spend_id(table.table_id)
        outcomes = await self._state.call_all(
            lambda member_id: CreateStoredTable(definition, copies_of(topology, table, member_id))
        )
        failures = [outcome for outcome in outcomes.values() if isinstance(outcome, BaseException)]
        # Nothing is awaited between this look at what the owners depend on and their becoming owners.
        if not failures and self._state.topology is before and self._state.leaving == leaving:
            await self._state.advance(event)
            return True
        await self._drop_at_members(table)
        refusals = [failure for failure in failures if is_last or not isinstance(failure, GONE)]
        if refusals:
            raise refusals[0]
        return False

    async def _change_ranges(self, before: TableDef, change: Callable[[], PartitionScheme]) -> None:
        # With many ranges this takes its time, which the event loop does not have.
        scheme = await asyncio.get_running_loop().run_in_executor(self._executor, lambda: _resolved(change()))
        if scheme is before.scheme:
            return
        for tries_left in reversed(range(_TRIES_MAX)):
            if await self._change_at_members(before, scheme, is_last=not tries_left):
                break
        else:
            raise _unsettled(f"the change of ranges of {before.name}")
        await self._forget_owners(before.scheme.affinity_group())

    async def _change_at_members(self, before: TableDef, scheme: PartitionScheme, *, is_last: bool) -> bool:
        """Give new ranges owners and tell the members; False when one of them was out of reach, or lost meanwhile.

        Then nothing was changed, and those that are left are to be asked anew.

        Raises:
            Error: A member refuses the change; or it is out of reach, with ``is_last``.
        """
        taken = {
            other.scheme.affinity_group()
            for other in self._state.catalog.tables()
            if not other.replicated and other.table_id != before.table_id
        }
        unique = f"{before.table_id}.{before.version + 1}"
        scheme = scheme.in_group(group_after(self._state.topology, before.scheme, scheme, taken, unique))
        catalog, after = self._state.catalog.with_scheme(before.name, scheme)
        self._state.changing_table = after  # so that a controller that starts anew can complete the change
        await self._state.advance(RangesChanged(before.scheme, scheme))
        try:
            await alter_table(self._state, after, self._hosted(after, self._state.topology.member_ids))
        except MemberLostError as lost:
            await self._state.still_there(lost.details["member"])
            await self._give_up_change(after)
            if is_last:
                raise
            return False
        except BaseException:
            await self._give_up_change(after)
            raise
        self._state.catalog = catalog
        return True

    def _hosted(self, table: TableDef, members: Iterable[str]) -> dict[str, list[int]]:
        return {member_id: copies_of(self._state.topology, table, member_id) for member_id in members}

    async def _give_up_change(self, table: TableDef) -> None:
        """A table keeps the ranges that it has in the catalog."""
        self._state.changing_table = None
        await self._forget_owners(table.scheme.affinity_group())

    async def settle_change(self, after: TableDef, versions: Mapping[str, int]) -> None:
        """Complete or give up a change of a table that an earlier controller had begun.

        It is completed if a member has made it already: then all had prepared it.

        Args:
            after: The table as it is to be.
            versions: The version of the table at each member.
        """
        async with self._state.changing:
            if after.version not in versions.values():
                await self._give_up_change(after)
                return
            before = next(table for table in self._state.catalog.tables() if table.origin == after.origin)
            behind = [member_id for member_id, version in versions.items() if version < after.version]
            if after.table_id != before.table_id:
                # They were started anew. Their copies are not compared with those of members that have another table.
                await self.follow(after, behind)
                self._state.catalog = self._state.catalog.with_altered(before, after)
                return
            await alter_table(self._state, after, self._hosted(after, behind))
            self._state.catalog = self._state.catalog.with_scheme(after.name, after.scheme)[0]
            await self._forget_owners(before.scheme.affinity_group())

    async def follow(self, table: TableDef, behind: Collection[str]) -> None:
        """Have members take over what others have altered of a table.

        One that cannot is no member any more: it would be an owner of what it does not have. Its disk has lost what
        made the change possible, such as that of the NULLs in a column that is NOT NULL now. One that cannot write has
        it in memory, and writes everything as soon as it can.
        """
        catching_up = CatchUp(await encoded_table(table), (), is_current=True)
        outcomes = await self._state.call_all(lambda _: catching_up, behind)
        for member_id, error in outcomes.items():
            if isinstance(error, DiskError):
                _log.warning("member %s has not written ALTER TABLE %s yet: %s", member_id, table.name, error)
            elif isinstance(error, Error):
                _log.warning("member %s does not follow ALTER TABLE %s: %s", member_id, table.name, error)
                self._state.condemn(member_id)
            elif isinstance(error, BaseException):
                raise error

    async def settle_tables(self, known: Mapping[str, Iterable[int]]) -> None:
        """Remove what is left of commands that an earlier controller had not completed, or not acknowledged.

        Args:
            known: The ids of the tables that each member knows.
        """
        async with self._state.changing:
            tables = {table.table_id for table in self._state.catalog.tables()}
            left_over = {table_id for ids in known.values() for table_id in ids} - tables
            await asyncio.gather(
                *(
                    self._state.call(member_id, DropStoredTable(table_id))
                    for member_id, ids in known.items()
                    if not self._state.is_condemned(member_id)  # it keeps what it could not follow
                    for table_id in left_over.intersection(ids)
                ),
                return_exceptions=True,
            )
            self._state.spend_id(max([self._state.catalog.last_table_id, *left_over]))
            for group in tuple(self._state.topology.owners):
                await self._forget_owners(group)

    async def _forget(self, table: TableDef) -> None:
        """Forget what there was of a table that the catalog does not have any more.

        Every member keeps the catalog without it first: a controller that starts anew must not take the table for one
        without rows.
        """
        await self._state.all_reached()
        await self._drop_at_members(table)
        self._state.access = without_table(self._state.access, table.origin)
        self._loads.forget(table)
        self._statistics.forget(table.table_id)
        await self._forget_owners(table.scheme.affinity_group())

    async def _forget_owners(self, group: str) -> None:
        if all(table.replicated or table.scheme.affinity_group() != group for table in self._state.catalog.tables()):
            await self._state.advance(OwnersForgotten(group))

    async def _drop_at_members(self, table: TableDef) -> None:
        """Have every member that stays forget a table.

        Once that has returned, one that does not stay answers for it no more either: its lease has ended.
        """
        await self._state.call_all(lambda _: DropStoredTable(table.table_id))
        await self._state.all_reached()


def _filling(done: Altered) -> bytes:
    """The row of the values that new columns have in the rows that are there."""
    new = [column for column, source in zip(done.table.columns, done.sources, strict=True) if source is None]
    if not new:
        return b""
    types, values = [column.type for column in new], [[done.fill[column.name]] for column in new]
    if travels_short(types):
        return bytes(encode_rows(ShortTable(values, 1)))
    arrays = list(map(canonical_column, values, types))
    return bytes(encode_rows(pa.Table.from_arrays(arrays, names=[column.name for column in new])))


def _unsettled(what: str) -> TopologyChangedError:
    return TopologyChangedError(
        f"{what}: members were lost or told to leave again and again while it was carried out; nothing was changed,"
        " try again"
    )


def _resolved(scheme: PartitionScheme) -> PartitionScheme:
    scheme.resolve()
    scheme.structure()
    return scheme
