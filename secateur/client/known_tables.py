"""The definitions of tables that a connection has fetched, and what it knows of large schemes."""

from __future__ import annotations

from msgspec.structs import replace

from secateur.client.channel_pool import ChannelOptions
from secateur.client.member_calls import MemberCalls
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.catalog import GetTables
from secateur.wire import Channel


class KnownTables(MemberCalls):
    """Keeps definitions of tables until the catalog changes. Thread-safe.

    Args:
        controller: A channel to the controller, which is connected.
        options: What all channels have in common.
    """

    def __init__(self, controller: Channel, options: ChannelOptions) -> None:
        super().__init__(controller, options)
        self._known: dict[str, TableDef] = {}
        self._large: dict[str, TableDef] = {}  # the tables with large schemes, which statements name by reference
        self._outlined: dict[str, PartitionScheme] = {}  # the schemes of which this session learns ranges, by table

    def table(self, name: str, *, waits: bool = True) -> TableDef:
        """Fetch the definition of a table. One round trip.

        Args:
            name: Its name.
            waits: As for :meth:`ask`.

        Raises:
            UnknownTableError: There is no such table.
        """
        known = self._large.get(name.casefold())
        asked = GetTables(name, None if known is None else known.scheme.reference)
        (definition,) = self.ask(asked, waits=waits).message.tables
        table = definition.table
        if table.scheme.reference is not None:
            self._large[name.casefold()] = table
        return table

    def outlined_table(self, name: str, *, waits: bool = True) -> TableDef:
        """Fetch the definition of a table; of a large scheme without its ranges. One round trip.

        Args:
            name: Its name.
            waits: As for :meth:`ask`.

        Raises:
            UnknownTableError: There is no such table.
        """
        (definition,) = self.ask(GetTables(name, outlines=True), waits=waits).message.tables
        if definition.outline is not None:
            self._keep(definition.outline)
        return definition.table

    def known_table(self, name: str) -> TableDef:
        """The definition of a table that this session has; it may be old.

        Of a large scheme it has the ranges that this process knows; whoever needs more gets an
        :class:`~secateur.errors.UnknownRangesError`, see :meth:`when_known`. Costs a round trip only for a table whose
        definition the session does not have.

        Raises:
            UnknownTableError: There is no such table.
        """
        key = name.casefold()
        table = self._known.get(key)
        if table is None:
            table = self._known[key] = self.outlined_table(name)
        if table.scheme.partial is not None:
            table = self._known[key] = replace(table)  # reads its reference again
        return table

    def forget_tables(self) -> None:
        """Drop the definitions of :meth:`known_table`."""
        self._known = {}

    def _keep(self, scheme: PartitionScheme) -> None:
        """Keep what is known of the newest ranges of a table, also while no statement is prepared that uses it."""
        assert scheme.reference is not None
        table, _, _ = scheme.reference.rpartition(".")
        self._outlined[table] = scheme
