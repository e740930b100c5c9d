"""DELETE and TRUNCATE: the keys of the rows to remove.

::

    [WITH ...] DELETE FROM t [[AS] x] [USING tables] [WHERE condition] [RETURNING ...]
    TRUNCATE [TABLE] t
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from secateur.engine.sql.row_changes import RowAction
from secateur.partitioning.tables.table import TableDef
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
from secateur.planner.dml.target import ChangeTarget, read_table, read_target
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.token_cursor import TokenCursor
from secateur.protocol.changes import DuplicateMatchPolicy
from secateur.protocol.statements import ChangeKind


@dataclass(frozen=True, slots=True)
class Delete:
    """A parsed DELETE.

    Attributes:
        target: The table that it changes.
        ctes: Its WITH clause.
        sources: The tables of its USING clause.
        where: Its WHERE clause.
        returning: As :func:`~secateur.planner.dml.returning.read_returning`.
    """

    sql: str
    parameters: Parameters
    target: ChangeTarget
    ctes: TextSpan | None = None
    sources: TextSpan | None = None
    where: TextSpan | None = None
    returning: tuple[Composed, bool] | None = None

    @property
    def stays(self) -> bool:
        """Whether members can execute it where the rows are, unless its condition reads other partitions."""
        return self.ctes is None and self.sources is None and self.returning is None

    def in_partitions(self) -> ChangeQuery:
        """The query for keys that members run where the rows are."""
        keys = self.target.table.primary_key
        composer = Composer(self.sql, self.parameters)
        composer.say(
            f"FROM {target_text(self.target)} SELECT {', '.join(column_of(self.target, name) for name in keys)}"
        )
        if self.where is not None:
            composer.say(" ", self.where)
        return ChangeQuery(self.target, ChangeKind.DELETE, composer.finish(), keys)

    def row_changes(self) -> RowChangesQuery:
        """The query for the row changes; the rows themselves are read only where they are to be returned."""
        table = self.target.table
        unread: dict[str, Value] = (
            {} if self.returning is not None else {column.name: ("NULL",) for column in table.columns}
        )
        composer = Composer(self.sql, self.parameters, self.ctes)
        composer.say("SELECT ")
        row_changes_items(composer, self.target, (action_text(RowAction.DELETE),), unread)
        composer.say(" FROM ")
        if self.sources is not None:
            # Before the target: after it, a subquery among the sources could name columns of the target, which
            # the dialect refuses.
            composer.say(self.sources, ", ")
        composer.say(target_text(self.target))
        if self.where is not None:
            composer.say(" ", self.where)
        query, names_action = self.returning or (None, False)
        return RowChangesQuery(table, composer.finish(), DuplicateMatchPolicy.FIRST, query, names_action)


def read_delete(
    cursor: TokenCursor, parameters: Parameters, find: Callable[[str], TableDef], ctes: TextSpan | None
) -> Delete:
    """Read a DELETE statement.

    Args:
        cursor: At the word DELETE; its tokens have numbered parameters.
        parameters: As read from the same tokens.
        find: The catalog's lookup by name.
        ctes: The WITH clause in front of it.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError: With the position of the name.
        NotSupportedError: A form that we do not have.
    """
    cursor.expect("DELETE")
    cursor.expect("FROM")
    target = read_target(cursor, find)
    sources = read_expression(cursor, "WHERE", "RETURNING", what="a table") if cursor.accept("USING") else None
    where = read_clause(cursor, "USING, WHERE or the end of the statement")
    returning = read_returning(cursor, target, parameters)
    return Delete(cursor.sql, parameters, target, ctes, sources, where, returning)


_OF_OTHERS: Final = (("CASCADE",), ("RESTRICT",), ("RESTART", "IDENTITY"), ("CONTINUE", "IDENTITY"))
"""Words that other databases allow after the table, which would be parsed as its alias."""


def read_truncate(cursor: TokenCursor, parameters: Parameters, find: Callable[[str], TableDef]) -> Delete:
    """Read a TRUNCATE statement, which is a DELETE without a condition.

    Args:
        cursor: At the word TRUNCATE.
        parameters: As read from the same tokens.
        find: The catalog's lookup by name.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError: With the position of the name.
        NotSupportedError: CASCADE, RESTRICT or an identity to restart.
    """
    cursor.expect("TRUNCATE")
    cursor.accept("TABLE")
    if any(cursor.at_ahead(2 * cursor.at_ahead(1, ".") + 1, *words) for words in _OF_OTHERS):
        read_table(cursor, find)
        raise cursor.unsupported(
            f"TRUNCATE ... {cursor.word()}",
            "there are no foreign keys and no identity columns; leave it out",
        )
    target = read_target(cursor, find)
    cursor.expect_end()
    return Delete(cursor.sql, parameters, target)
