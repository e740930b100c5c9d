"""CREATE and DROP TYPE at the controller. As with views, the members hear of it first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from secateur.cluster.controller.catalog import Catalog
from secateur.cluster.controller.cluster_state import ClusterState
from secateur.partitioning.types.named_type import NamedType


class TypeCommands:
    """Carries out what concerns named types. Lives on the controller's event loop.

    Args:
        state: The catalog.
        adopt: Tells the members of another catalog, and takes it over: no member runs a plan that was made of a type as
            it was before.
    """

    def __init__(self, state: ClusterState, adopt: Callable[[Catalog], Awaitable[None]]) -> None:
        self._state = state
        self._adopt = adopt

    async def create(self, named: NamedType, *, or_replace: bool, if_not_exists: bool) -> None:
        """Give a type a name.

        Raises:
            ProgrammingError: The name is taken.
        """
        async with self._state.changing:
            if if_not_exists and named.name.casefold() in self._state.catalog.types:
                return
            await self._adopt(self._state.catalog.with_type(named, or_replace=or_replace))

    async def drop(self, name: str, *, if_exists: bool) -> None:
        """Forget the name of a type.

        Raises:
            ProgrammingError: There is no such type, or a column of a table has it.
        """
        async with self._state.changing:
            if if_exists and name.casefold() not in self._state.catalog.types:
                return
            await self._adopt(self._state.catalog.without_type(name))
