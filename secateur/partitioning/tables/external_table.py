"""The description of one external table: its rows are elsewhere, and a connector reads them."""

from __future__ import annotations

import msgspec

from secateur.partitioning.tables.table import TableDef


class ExternalTable(msgspec.Struct, frozen=True):
    """An external table.

    Attributes:
        table: Its name, id and columns, each of which may be NULL. It has no primary key: its rows need not be unique.
            The planner treats it as replicated, because any member can get its rows.
        connector: The encoded connector.
        title: The connector in words, for EXPLAIN and errors.
        sql: The statement that makes it; None for a connector of the user's.
    """

    table: TableDef
    connector: bytes
    title: str
    sql: str | None = None

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.table.name
