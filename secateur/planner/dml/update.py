"""UPDATE as a query for the new rows.

::

    [WITH ...] UPDATE t [[AS] x] SET a = value, (b, c) = (value, value), ... [FROM tables] [WHERE condition]
      [RETURNING ...]

Each value is cast to the type of its column, as the dialect does; all values are computed from the old row. A row that
matches several rows of FROM takes the values of one of them. Columns of the primary key may be assigned: the row moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from secateur.engine.sql.row_changes import RowAction
from secateur.partitioning.tables.identifier import quoted
from secateur.partitioning.tables.table import TableDef
from secateur.planner.dml.assignments import Assignment, read_assignments
from secateur.planner.dml.change import ChangeQuery, read_clause
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.expressions import TextSpan, read_expression
from secateur.planner.dml.returning import read_returning
from secateur.planner.dml.row_changes import (
    RowChangesQuery,
    Value,
    action_text,
    column_of,
    row_changes_items,
    target_text,
)
from secateur.planner.dml.target import ChangeTarget, read_target
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.token_cursor import TokenCursor
from secateur.protocol.changes import DuplicateMatchPolicy
from secateur.protocol.statements import ChangeKind


@dataclass(frozen=True, slots=True)
class Update:
    """A parsed UPDATE.

    Attributes:
        target: The table that it changes.
        assignments: The new values of columns.
        ctes: Its WITH clause.
        sources: The tables of its FROM clause.
        where: Its WHERE clause.
        returning: As :func:`~secateur.planner.dml.returning.read_returning`.
    """

    sql: str
    parameters: Parameters
    target: ChangeTarget
    assignments: tuple[Assignment, ...]
    ctes: TextSpan | None
    sources: TextSpan | None
    where: TextSpan | None
    returning: tuple[Composed, bool] | None

    @property
    def stays(self) -> bool:
        """Whether rows stay in their partitions and nothing is returned, so that members can change them in place."""
        moves = any(assignment.column in self.target.table.primary_key for assignment in self.assignments)
        return not moves and self.ctes is None and self.sources is None and self.returning is None

    def in_partitions(self) -> ChangeQuery:
        """The query for complete rows that members run where the rows are."""
        table = self.target.table
        values = assigned_values(self.assignments)
        columns = (*values, *(column.name for column in table.columns if column.name not in values))
        # The target comes first, so that it is the first scan whatever subqueries the values have.
        composer = Composer(self.sql, self.parameters).say(f"FROM {target_text(self.target)} SELECT ")
        for position, name in enumerate(columns):
            composer.say(", " if position else "")
            if name in values:
                composer.say("CAST((", *values[name], f") AS {table.column(name).type}) AS {quoted(name)}")
            else:
                composer.say(column_of(self.target, name))
        if self.where is not None:
            composer.say(" ", self.where)
        return ChangeQuery(self.target, ChangeKind.UPDATE, composer.finish(), columns)

    def row_changes(self) -> RowChangesQuery:
        """The query for the row changes."""
        composer = Composer(self.sql, self.parameters, self.ctes)
        composer.say("SELECT ")
        row_changes_items(composer, self.target, (action_text(RowAction.UPDATE),), assigned_values(self.assignments))
        composer.say(" FROM ")
        if self.sources is not None:
            # Before the target: after it, a subquery among the sources could name columns of the target, which
            # the dialect refuses.
            composer.say(self.sources, ", ")
        composer.say(target_text(self.target))
        if self.where is not None:
            composer.say(" ", self.where)
        query, names_action = self.returning or (None, False)
        return RowChangesQuery(self.target.table, composer.finish(), DuplicateMatchPolicy.FIRST, query, names_action)


def read_update(
    cursor: TokenCursor, parameters: Parameters, find: Callable[[str], TableDef], ctes: TextSpan | None
) -> Update:
    """Read an UPDATE statement.

    Args:
        cursor: At the word UPDATE; its tokens have numbered parameters.
        parameters: As read from the same tokens.
        find: The catalog's lookup by name.
        ctes: The WITH clause in front of it.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError, UnknownColumnError: With the position of the name.
        ProgrammingError: A column is assigned twice.
    """
    cursor.expect("UPDATE")
    target = read_target(cursor, find)
    cursor.expect("SET")
    assignments = read_assignments(cursor, target.table, "FROM", "WHERE", "RETURNING")
    sources = read_expression(cursor, "WHERE", "RETURNING", what="a table") if cursor.accept("FROM") else None
    where = read_clause(cursor, "',', FROM, WHERE or the end of the statement")
    returning = read_returning(cursor, target, parameters)
    return Update(cursor.sql, parameters, target, assignments, ctes, sources, where, returning)


def assigned_values(assignments: tuple[Assignment, ...]) -> dict[str, Value]:
    """The values by column; DEFAULT is NULL."""
    return {
        assignment.column: ("NULL",) if assignment.value is None else (assignment.value,) for assignment in assignments
    }
