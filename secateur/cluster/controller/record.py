"""The controller's state as the record that members keep for it; see :mod:`secateur.protocol.recovery`.

A consensus log among the members would need a majority for each change. Here the controller is the only one that
changes the state, and members may be lost one after the other without stopping the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from secateur.cluster.controller.catalog import Catalog, encoded_table
from secateur.cluster.controller.leaving import Leaving
from secateur.cluster.controller.stream_batches import StreamBatches
from secateur.partitioning.tables.table import TableDef, TableDefinition
from secateur.planner.views import ViewDef
from secateur.protocol.codec import decode, encode
from secateur.protocol.pruning import Pruning
from secateur.protocol.recovery import ControllerState, LastLoad
from secateur.protocol.tokens import GrantedToken


@dataclass(frozen=True, slots=True, eq=False)
class RestOfState:
    """The state of the controller but for members and owners; the fields are those of :class:`ControllerState`."""

    catalog: Catalog
    changing: TableDef | None
    changing_for: str | None
    pruning: Pruning
    last_member: int
    done: tuple[str, ...]
    streams: StreamBatches
    tokens: tuple[GrantedToken, ...]
    leaving: Leaving
    last_loads: Mapping[str, Mapping[int, LastLoad]]


class RecordEncoder:
    """Encodes the state of the controller; tables that have not changed are encoded once."""

    def __init__(self) -> None:
        self._tables: dict[int, tuple[TableDef, bytes]] = {}  # by the identity of the table, which is kept with it
        self._last: tuple[RestOfState, bytes] | None = None
        self._lock = asyncio.Lock()

    async def encoded(self, rest: RestOfState) -> bytes:
        """The bytes of a :class:`~secateur.protocol.recovery.ControllerState`."""
        async with self._lock:
            if self._last is None or self._last[0] is not rest:
                self._last = rest, encode(await self._state(rest))
            return self._last[1]

    async def _state(self, rest: RestOfState) -> ControllerState:
        catalog, changing = rest.catalog, rest.changing
        wanted = [*catalog.tables(), *(() if changing is None else (changing,))]
        known = {id(table): entry for table in wanted if (entry := self._tables.get(id(table))) is not None}
        for table in wanted:
            if id(table) not in known:
                known[id(table)] = table, await encoded_table(table)
        self._tables = known
        return ControllerState(
            catalog_version=catalog.version,
            last_table_id=catalog.last_table_id,
            book=catalog.book,
            tables=tuple(known[id(table)][1] for table in catalog.tables()),
            changing=None if changing is None else known[id(changing)][1],
            changing_for=rest.changing_for,
            views=tuple(encode(view) for view in catalog.views.values()),
            external_tables=tuple(catalog.external_tables.values()),
            types=tuple(catalog.types.values()),
            pruning=rest.pruning,
            last_member=rest.last_member,
            done=rest.done,
            streams=rest.streams.entries,
            tokens=rest.tokens,
            draining=tuple(sorted(rest.leaving.draining)),
            drained=tuple(sorted(rest.leaving.drained)),
            last_loads=rest.last_loads,
        )


def catalog_of(state: ControllerState) -> Catalog:
    """The tables and views of a record."""
    tables = [decode(table, TableDefinition).table for table in state.tables]
    views = [decode(view, ViewDef) for view in state.views]
    return Catalog(
        version=state.catalog_version,
        last_table_id=state.last_table_id,
        by_name=MappingProxyType({table.name.casefold(): table for table in tables}),
        views=MappingProxyType({view.name.casefold(): view for view in views}),
        external_tables=MappingProxyType({table.name.casefold(): table for table in state.external_tables}),
        types=MappingProxyType({named.name.casefold(): named for named in state.types}),
        book=state.book,
    )


def changing_of(state: ControllerState) -> TableDef | None:
    """The table of a record whose ranges were being changed, as it is to be."""
    return None if state.changing is None else decode(state.changing, TableDefinition).table
