"""Changes of the catalog that give no member a table: members hear of views, types and external tables first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from secateur.cluster.controller.catalog import Catalog
from secateur.cluster.controller.cluster_state import ClusterState
from secateur.connectors.external.connector import connector_carries_code
from secateur.errors import LimitExceededError, PartitionLostError, SerializationError, TopologyChangedError
from secateur.partitioning.pruning.row_predicate import OpenPredicate
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import Column, ExternalTable, TableDef
from secateur.protocol.catalog import (
    AdoptViews,
    DescribeConnector,
    ExternalTableAnswer,
    GetExternalTable,
    ListedPartitions,
    ListExternalPartitions,
)
from secateur.wire import Reply, Request


async def change_catalog(state: ClusterState, change: Callable[[Catalog], Catalog]) -> None:
    """Take over another catalog, for which no member has to make or change a table.

    **Invariant**: once the catalog has changed, no member runs a plan that was made of a view, a type or an external
    table as it was before: every member that stays has received the change by then, and the lease of every other member
    has ended.

    Args:
        state: The catalog, and the way to the members.
        change: Makes the new catalog of that of now; the same one for no change.

    Raises:
        Error: As ``change``.
    """
    async with state.changing:
        before = state.catalog
        after = change(before)
        if after.adopted_ids != before.adopted_ids:
            await tell(state, after)
        if after is not before:
            state.catalog = after


async def tell(state: ClusterState, catalog: Catalog) -> None:
    """Tell every member that stays of the views, types and external tables of a catalog."""
    known = AdoptViews(catalog.version, catalog.adopted_ids)
    await state.call_all(lambda _: known)
    await state.all_reached()


_CONNECTOR_BYTES_MAX: Final = 4 << 20
_LIST_WAIT_S: Final = 60.0


class ExternalTableCommands:
    """Carries out what concerns external tables. Lives on the controller's event loop.

    Args:
        allow_code: Whether connectors may be code.
    """

    def __init__(self, state: ClusterState, *, allow_code: bool) -> None:
        self._state = state
        self._allow_code = allow_code

    async def create(
        self,
        name: str,
        connector: bytes,
        *,
        if_not_exists: bool = False,
        or_replace: bool = False,
        is_authenticated: bool,
        sql: str | None = None,
    ) -> None:
        """Make an external table. A member asks its connector for the columns.

        Raises:
            TableExistsError: The name is taken.
            SerializationError: The connector is code, which the cluster does not accept from this client.
            LimitExceededError: It is too large.
            Error: What the connector raises.
        """
        if len(connector) > _CONNECTOR_BYTES_MAX:
            raise LimitExceededError(
                f"the connector of table {name} has {len(connector):,} bytes, at most {_CONNECTOR_BYTES_MAX:,} are"
                " allowed: let it open its data where it reads them, and keep them out of its attributes",
                limit="connector_bytes",
            )
        if connector_carries_code(connector) and not (self._allow_code and is_authenticated):
            raise SerializationError(
                f"the connector of table {name} is code, and this cluster accepts no code: start it with"
                " allow_code=True and a token, or use a connector that is delivered with secateur"
            )
        with_table = partial(Catalog.with_external_table, or_replace=or_replace, if_not_exists=if_not_exists)
        catalog = self._state.catalog
        if with_table(catalog, _described(name, (), connector, "", sql)) is catalog:
            return
        described = await self._state.call(self._member(), DescribeConnector(name, connector))
        kept = connector if described.settled is None else described.settled
        table = _described(name, described.columns, kept, described.title, sql)
        await change_catalog(self._state, lambda catalog: with_table(catalog, table))

    def get(self, request: Request[GetExternalTable]) -> Reply[ExternalTableAnswer]:
        """An external table for a member that is about to read it.

        Raises:
            TopologyChangedError: It was dropped or replaced.
        """
        return Reply(ExternalTableAnswer(self._of_id(request.message.table_id)))

    def list_partitions(
        self, loop: asyncio.AbstractEventLoop, table_id: int, predicate: OpenPredicate, params: Sequence[Any] | None
    ) -> ListedPartitions:
        """List partitions at a member; waits for it, in a thread other than the loop's."""
        asked = ListExternalPartitions(self._of_id(table_id), predicate, None if params is None else list(params))
        listing = asyncio.run_coroutine_threadsafe(self._state.call(self._member(), asked), loop)
        try:
            return listing.result(_LIST_WAIT_S)
        finally:
            listing.cancel()

    def _of_id(self, table_id: int) -> ExternalTable:
        for table in self._state.catalog.external_tables.values():
            if table.table.table_id == table_id:
                return table
        raise TopologyChangedError(
            "an external table that the statement reads was replaced or dropped since it was planned: plan it again"
        )

    def _member(self) -> str:
        members = self._state.topology.member_ids
        if not members:
            raise PartitionLostError("no member is left to read an external table")
        return members[0]


def _described(name: str, columns: tuple[Column, ...], connector: bytes, title: str, sql: str | None) -> ExternalTable:
    table = TableDef(name, 0, columns, (), PartitionScheme(), backups=0, replicated=True)
    return ExternalTable(table, connector, title, sql)
