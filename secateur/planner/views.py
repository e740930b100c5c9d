"""The description of one view: a frozen value that the catalog keeps.

A view is a named query: a statement that names one is planned as if the query were in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from secateur.partitioning.tables.table import ExternalTable, TableDef
from secateur.partitioning.types.sql_text import quoted


@dataclass(frozen=True, slots=True)
class ViewRead:
    """One reference to a table in a view, those of the views in it among them.

    Attributes:
        table: The table's name.
        columns: Name and SQL type text of the columns that the view may need.
    """

    table: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ViewDef:
    """A view.

    Attributes:
        name: As written in CREATE VIEW; matched without regard to case.
        view_id: Never reused among views and tables: a view that is replaced gets another, so that no plan outlives
            the view that it was made of.
        query: The text of its query, as the user wrote it.
        renamed: The names given to its first columns, as in ``CREATE VIEW v (a, b) AS``; empty where the query names
            them.
        columns: Name and SQL type text of each column.
        reads: The tables that it reads, in the order of the text, as they were when the view was made.
    """

    name: str
    view_id: int
    query: str
    renamed: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    reads: tuple[ViewRead, ...]

    @property
    def sql(self) -> str:
        """The statement that makes it."""
        names = f" ({', '.join(map(quoted, self.renamed))})" if self.renamed else ""
        return f"CREATE VIEW {quoted(self.name)}{names} AS\n{self.query}"

    def stale_read(self, reads: Sequence[ViewRead]) -> ViewRead | None:
        """Return a read that has changed since the view was made, or None.

        A read changes when its table is made anew with other columns.
        """
        return next((now for now, then in zip(reads, self.reads, strict=False) if now != then), None)


FindRelation: TypeAlias = Callable[[str], TableDef | ViewDef | ExternalTable]
"""Finds the table, view or external table of a name, and raises UnknownTableError where there is none."""
