"""UPDATE, DELETE and TRUNCATE, which change the rows that a search condition finds.

::

    [WITH ...] UPDATE t [[AS] x] SET a = value, (b, c) = (value, value), ... [FROM tables] [WHERE condition]
      [RETURNING ...]
    [WITH ...] DELETE FROM t [[AS] x] [USING tables] [WHERE condition] [RETURNING ...]
    TRUNCATE [TABLE] t

Each value is cast to the type of its column, as the dialect does; all values are computed from the old row. A row that
matches several rows of FROM takes the values of one of them. Columns of the primary key may be assigned: the row moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from secateur.engine.sql.row_changes import RowAction
from secateur.errors import ProgrammingError
from secateur.planner.binding.functions import UNNESTING
from secateur.planner.dml.assignments import read_assignments
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.row_changes import (
    Change,
    ChangeText,
    action_text,
    column_of,
    of_other_rows,
    read_returning,
    row_changes_items,
    target_text,
)
from secateur.planner.dml.target import ChangeTarget, FindTable, read_relation, read_target
from secateur.planner.dml.values import Value, item
from secateur.planner.statement import PlannedSelect
from secateur.planner.text.positions import located, syntax_error
from secateur.planner.text.syntax import compared_trees, nodes_of
from secateur.planner.text.token_cursor import TextSpan, TokenCursor, read_expression
from secateur.protocol.statements import ChangeKind
from secateur.protocol.tokens import Privilege

_OF_OTHERS: Final = (("CASCADE",), ("RESTRICT",), ("RESTART", "IDENTITY"), ("CONTINUE", "IDENTITY"))
"""Words that other databases allow after the table of TRUNCATE, which would be parsed as its alias."""


@dataclass(frozen=True, slots=True)
class SearchedChange(Change):
    """A parsed UPDATE, DELETE or TRUNCATE.

    Attributes:
        action: UPDATE or DELETE.
        values: The new values by column; none of a DELETE.
        sources: The tables of its FROM or USING clause.
        where: Its WHERE clause, with that word.
    """

    action: RowAction
    values: dict[str, Value]
    sources: TextSpan | None = None
    where: TextSpan | None = None

    @property
    def kind(self) -> ChangeKind:
        """How members change rows where they are."""
        return ChangeKind.DELETE if self.action is RowAction.DELETE else ChangeKind.UPDATE

    @property
    def privileges(self) -> tuple[Privilege, ...]:
        return (Privilege.DELETE if self.action is RowAction.DELETE else Privilege.UPDATE,)

    @property
    def assigned(self) -> list[tuple[str, Value]]:
        return list(self.values.items())

    @property
    def stays(self) -> bool:
        """Whether rows stay in their partitions, so that members can change them in place."""
        moves = any(column in self.table.primary_key for column in self.values)
        return not moves and self.ctes is None and self.sources is None

    def in_partitions(self) -> tuple[Composed, tuple[str, ...]]:
        """The query for complete rows, or keys to delete, that members run where the rows are, and its columns.

        ``UPDATE t SET v = v + 1 WHERE k = 5`` becomes ``FROM t SELECT CAST((v + 1) AS INTEGER) AS "v", "t"."k" WHERE k
        = 5``, so that the planner's treatment of queries (names, types, pruning, positions of errors) applies to
        changes, too. Members run the query where the rows are, and write its result.
        """
        table, values = self.table, self.values
        unchanged = (column.name for column in table.columns if column.name not in values)
        columns = table.primary_key if self.kind is ChangeKind.DELETE else (*values, *unchanged)
        # The target comes first, so that it is the first scan whatever subqueries the values have.
        composer = Composer(self.sql, self.parameters).say(f"FROM {target_text(self.target)} SELECT ")
        for position, name in enumerate(columns):
            composer.say(", " if position else "")
            if name in values:
                # Lists may have any length here: who conforms the rows names the column of one that is wrong.
                composer.say(*item(values[name].words, table.column(name).type.of_any_length, name))
            else:
                composer.say(column_of(self.target, name))
        if self.where is not None:
            composer.say(" ", self.where)
        return composer.finish(), columns

    def row_changes(self) -> Composed:
        """The query for the row changes; deleted rows themselves are read only where they are to be returned."""
        values = {name: value.words for name, value in self.values.items()}
        if self.action is RowAction.DELETE and self.returning is None:
            values = {column.name: ("NULL",) for column in self.table.columns}
        composer = Composer(self.sql, self.parameters, self.ctes)
        composer.say("SELECT ")
        row_changes_items(composer, self.target, (action_text(self.action),), values)
        composer.say(" FROM ")
        if self.sources is not None:
            # Before the target: after it, a subquery among the sources could name columns of the target, which
            # the dialect refuses.
            composer.say(self.sources, ", ")
        composer.say(target_text(self.target))
        if self.where is not None:
            composer.say(" ", self.where)
        return composer.finish()


def read_searched_change(text: ChangeText) -> SearchedChange:
    """Read an UPDATE, DELETE or TRUNCATE statement.

    Raises:
        UnknownTableError, UnknownColumnError: With the position of the name.
        ProgrammingError: A column is assigned twice.
        NotSupportedError: A form that we do not have.
    """
    cursor, find, parameters = text.cursor, text.find, text.parameters
    if cursor.at("TRUNCATE"):
        return SearchedChange(cursor.sql, parameters, _read_truncated(cursor, find), None, None, RowAction.DELETE, {})
    values: dict[str, Value] = {}
    if cursor.accept("UPDATE"):
        action, joins = RowAction.UPDATE, "FROM"
        target = read_target(cursor, find)
        cursor.expect("SET")
        values = read_assignments(cursor, target.table, "FROM", "WHERE", "RETURNING")
    else:
        action, joins = RowAction.DELETE, "USING"
        cursor.expect("DELETE")
        cursor.expect("FROM")
        target = read_target(cursor, find)
    sources = read_expression(cursor, "WHERE", "RETURNING", what="a table") if cursor.accept(joins) else None
    separator = "',', " if values else ""
    where = _read_where(cursor, f"{separator}{joins}, WHERE or the end of the statement")
    returning = read_returning(cursor, target, parameters)
    return SearchedChange(cursor.sql, parameters, target, text.ctes, returning, action, values, sources, where)


def _read_truncated(cursor: TokenCursor, find: FindTable) -> ChangeTarget:
    cursor.expect("TRUNCATE")
    cursor.accept("TABLE")
    if any(cursor.at_ahead(2 * cursor.at_ahead(1, ".") + 1, *words) for words in _OF_OTHERS):
        read_relation(cursor, find)
        raise cursor.unsupported(
            f"TRUNCATE ... {cursor.word()}",
            "there are no foreign keys and no identity columns; leave it out",
        )
    target = read_target(cursor, find)
    cursor.expect_end()
    return target


def _read_where(cursor: TokenCursor, expected: str) -> TextSpan | None:
    start = cursor.offset
    if not cursor.accept("WHERE") and not (cursor.at_end or cursor.at("RETURNING")):
        raise cursor.expected(expected)
    while not (cursor.at_end or cursor.at("RETURNING")):
        cursor.take()
    return TextSpan(start, cursor.end) if start < cursor.end else None


def check_reading(change: SearchedChange, query: Composed) -> None:
    """Have DuckDB confirm that a query is one expression per column over the rows that pass a condition.

    Raises:
        SqlSyntaxError: There is more text after the condition.
        ProgrammingError: An assigned value depends on more than its row.
    """
    (node,) = compared_trees([query.text])
    if node is None:
        return  # it does not parse: binding it will say where
    behind = ("modifiers", "group_expressions", "group_sets", "having", "qualify", "sample")
    is_grouped = node.get("aggregate_handling") != "STANDARD_HANDLING"  # GROUP BY ALL
    source = node.get("from_table") or {}
    if node.get("type") != "SELECT_NODE" or source.get("sample") or any(node.get(key) for key in behind) or is_grouped:
        message = f"{change.action} takes one table and a WHERE clause, and nothing behind it"
        raise syntax_error(message, change.sql, change.target.end)
    for expression in nodes_of(node["select_list"], into_subqueries=False):
        call = of_other_rows(expression)
        if call:
            why = "one value" if call.removesuffix("() is") in UNNESTING else "computed from its own row"
            message = f"an assigned value is {why}: {call} not allowed in SET"
            raise located(ProgrammingError, message, change.sql, change.target.end)


def is_local(select: PlannedSelect) -> bool:
    """Whether members can run the query where the rows are: all other tables that it reads are replicated."""
    return all(scan.replicated and not scan.is_fetched for scan in select.plan.scans[1:])


def check_columns(change: SearchedChange, columns: tuple[str, ...], select: PlannedSelect) -> None:
    """Refuse a query with other columns than were written.

    Raises:
        ProgrammingError: It has, as ``COLUMNS(*)`` makes them.
    """
    if tuple(name for name, _ in select.plan.columns) != columns:
        message = "every assignment takes one value: COLUMNS(...) is not allowed in SET"
        raise located(ProgrammingError, message, change.sql, change.target.end)
