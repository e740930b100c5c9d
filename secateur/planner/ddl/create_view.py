"""CREATE VIEW, as written.

::

    CREATE [OR REPLACE] VIEW [IF NOT EXISTS] v [(a, b, ...)] AS <query>
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import ProgrammingError
from secateur.partitioning.tables.table import ExternalTable, TableDef
from secateur.partitioning.types.sql_text import told_apart
from secateur.planner.system.tables import SYSTEM_TABLES
from secateur.planner.text.positions import syntax_error
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import Token
from secateur.planner.views import ViewDef, ViewRead


@dataclass(frozen=True, slots=True)
class ViewText:
    """A CREATE VIEW whose query is not planned yet.

    Attributes:
        name: The view's.
        offset: Its place in the text.
        renamed: The names given to its columns.
        query: The tokens of its query.
        or_replace: Whether it replaces a view of that name.
        if_not_exists: Whether an existing view of that name is left alone.
    """

    name: str
    offset: int
    renamed: tuple[str, ...]
    query: tuple[Token, ...]
    or_replace: bool
    if_not_exists: bool

    def finder(
        self, find: Callable[[str], TableDef | ViewDef | ExternalTable]
    ) -> Callable[[str], TableDef | ViewDef | ExternalTable]:
        """Return the catalog's lookup by name without the view that is being made, even through other views."""

        def found(name: str) -> TableDef | ViewDef | ExternalTable:
            relation = find(name)
            if isinstance(relation, ViewDef) and relation.name.casefold() == self.name.casefold():
                raise ProgrammingError(f"view {relation.name!r} would read itself: a view reads tables and other views")
            return relation

        return found

    def view(self, sql: str, plan: SelectPlan, find: Callable[[str], TableDef | ViewDef | ExternalTable]) -> ViewDef:
        """The view.

        Args:
            sql: The text of the statement.
            plan: The plan of the query.
            find: The catalog's lookup by name.

        Raises:
            SqlSyntaxError: It names more columns than the query has.
        """
        if len(self.renamed) > len(plan.columns):
            message = f"view {self.name!r} names {len(self.renamed)} columns, and its query has {len(plan.columns)}"
            raise syntax_error(message, sql, self.offset, len(self.name))
        names = (*self.renamed, *(name for name, _ in plan.columns[len(self.renamed) :]))
        columns = tuple((name, text) for name, (_, text) in zip(told_apart(names), plan.columns, strict=True))
        reads = []
        for scan in plan.scans:
            found = find(scan.table) if scan.system is None else SYSTEM_TABLES[scan.system]
            table = found.table if isinstance(found, ExternalTable) else found
            assert isinstance(table, TableDef)  # a plan has no views
            reads.append(
                ViewRead(scan.table, tuple((column, str(table.column(column).type)) for column in scan.columns))
            )
        return ViewDef(
            self.name, 0, sql[self.query[0].start : self.query[-1].end + 1], self.renamed, columns, tuple(reads)
        )


def read_create_view(cursor: TokenCursor) -> ViewText:
    """Read a CREATE VIEW statement.

    Raises:
        NotSupportedError: A schema in front of the name.
    """
    or_replace, if_not_exists = cursor.creates("VIEW")
    offset = cursor.offset
    name = cursor.name_in_main("the name of a view")
    renamed = cursor.names("a column") if cursor.at("(") else ()
    cursor.expect("AS")
    if cursor.at_end:
        raise cursor.expected("a query")
    return ViewText(name, offset, renamed, cursor.rest(), or_replace, if_not_exists)
