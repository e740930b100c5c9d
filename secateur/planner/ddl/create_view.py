"""CREATE VIEW.

::

    CREATE [OR REPLACE] VIEW [IF NOT EXISTS] v [(a, b, ...)] AS <query>
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from secateur.engine.sql.select_plan import ScanPlan, SelectPlan
from secateur.errors import ProgrammingError
from secateur.partitioning.tables.table import ExternalTable, TableDef
from secateur.partitioning.types.sql_text import told_apart
from secateur.planner.statement import CreateView
from secateur.planner.system.tables import SYSTEM_TABLES
from secateur.planner.text.positions import syntax_error
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import Token
from secateur.planner.views import FindRelation, ViewDef, ViewRead


def read_create_view(
    cursor: TokenCursor, find: FindRelation, plan: Callable[[Sequence[Token], FindRelation], SelectPlan]
) -> CreateView:
    """Read a CREATE VIEW statement.

    Raises:
        NotSupportedError: A schema in front of the name.
        SqlSyntaxError: It names more columns than the query has.
        Error: The query is refused.
    """
    or_replace, if_not_exists = cursor.creates("VIEW")
    offset = cursor.offset
    name = cursor.name_in_main("the name of a view")
    renamed = cursor.names("a column") if cursor.at("(") else ()
    cursor.expect("AS")
    if cursor.at_end:
        raise cursor.expected("a query")
    query = cursor.rest()

    def find_others(other: str) -> TableDef | ViewDef | ExternalTable:
        """The lookup without the view that is being made, even through other views."""
        relation = find(other)
        if isinstance(relation, ViewDef) and relation.name.casefold() == name.casefold():
            raise ProgrammingError(f"view {relation.name!r} would read itself: a view reads tables and other views")
        return relation

    planned = plan(query, find_others)
    if len(renamed) > len(planned.columns):
        message = f"view {name!r} names {len(renamed)} columns, and its query has {len(planned.columns)}"
        raise syntax_error(message, cursor.sql, offset, len(name))
    names = (*renamed, *(own for own, _ in planned.columns[len(renamed) :]))
    columns = tuple((own, text) for own, (_, text) in zip(told_apart(names), planned.columns, strict=True))
    text = cursor.sql[query[0].start : query[-1].end + 1]
    reads = tuple(_read_of(scan, find) for scan in planned.scans)
    return CreateView(ViewDef(name, 0, text, renamed, columns, reads), or_replace, if_not_exists)


def _read_of(scan: ScanPlan, find: FindRelation) -> ViewRead:
    found = find(scan.table) if scan.system is None else SYSTEM_TABLES[scan.system]
    table = found.table if isinstance(found, ExternalTable) else found
    assert isinstance(table, TableDef)  # a plan has no views
    return ViewRead(scan.table, tuple((column, str(table.column(column).type)) for column in scan.columns))
