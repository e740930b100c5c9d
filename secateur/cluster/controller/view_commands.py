"""CREATE and DROP VIEW at the controller: first at the members, then in the catalog."""

from __future__ import annotations

import asyncio

from secateur.cluster.controller.catalog import Catalog
from secateur.cluster.controller.cluster_state import ClusterState
from secateur.planner.views import ViewDef
from secateur.protocol.catalog import AdoptViews


class ViewCommands:
    """Carries out what concerns views. Lives on the controller's event loop.

    Args:
        state: The catalog, and the way to the members.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    async def create(self, view: ViewDef, *, or_replace: bool, if_not_exists: bool) -> None:
        """Give a query a name.

        Raises:
            TableExistsError: The name is taken.
        """
        async with self._state.changing:
            if if_not_exists and view.name.casefold() in self._state.catalog.views:
                return
            await self.adopt(self._state.catalog.with_view(view, or_replace=or_replace)[0])

    async def drop(self, name: str, *, if_exists: bool) -> None:
        """Forget a view.

        Raises:
            UnknownTableError: There is no such view; or it is a table.
        """
        async with self._state.changing:
            if (
                if_exists
                and name.casefold() not in self._state.catalog.views
                and self._state.catalog.find(name) is None
            ):
                return
            await self.adopt(self._state.catalog.without_view(name)[0])

    async def adopt(self, catalog: Catalog) -> None:
        """Take over other views or external tables.

        **Invariant**: once the catalog has changed, no member runs a plan that was made of a view or an external
        table as it was before: every member that stays has received the change by then, and the lease of every other
        member has ended.
        """
        await self.tell(catalog)
        self._state.catalog = catalog

    async def tell(self, catalog: Catalog) -> None:
        """Tell every member that stays of the views and external tables of a catalog."""
        known = AdoptViews(catalog.version, catalog.adopted_ids)
        await asyncio.gather(
            *(self._state.call(member_id, known) for member_id in self._state.topology.member_ids),
            return_exceptions=True,
        )
        await self._state.all_reached()
