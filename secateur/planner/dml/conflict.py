"""ON CONFLICT: what an INSERT does with keys that exist already.

::

    ON CONFLICT [(key columns)] { DO NOTHING | DO UPDATE SET a = value, ... [WHERE condition] }

Of rows of one statement that have the same key only the first counts, as in the dialect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from secateur.errors import ProgrammingError
from secateur.partitioning.tables.row_ids import check_has_key
from secateur.partitioning.tables.table import TableDef
from secateur.planner.dml.assignments import Assignments, read_assignments, read_column
from secateur.planner.dml.expressions import TextSpan, read_expression
from secateur.planner.text.token_cursor import TokenCursor
from secateur.protocol.statements import InsertMode


@dataclass(frozen=True, slots=True)
class DoUpdate:
    """The existing row is changed.

    Attributes:
        assignments: Its new values; they may name columns of the table, and as ``excluded.column`` those of the row
            that was to be inserted.
        condition: Which rows are changed; None for all.
    """

    assignments: Assignments
    condition: TextSpan | None


Conflict: TypeAlias = InsertMode | DoUpdate


def read_conflict(cursor: TokenCursor, table: TableDef, mode: InsertMode) -> Conflict:
    """Read an ON CONFLICT clause; without one, return ``mode``.

    Raises:
        SqlSyntaxError: At the first invalid token.
        UnknownColumnError: With the position of the name.
        ProgrammingError: The columns are not those of the primary key, the table has none, or the statement has two
            conflict clauses.
        NotSupportedError: A form that is not supported.
    """
    start = cursor.offset
    if not cursor.accept("ON", "CONFLICT"):
        return mode
    check_conflicts(cursor, table, start)
    if mode is not InsertMode.APPEND:
        raise cursor.error(
            ProgrammingError,
            "INSERT OR ... already decides what happens to existing keys: leave out ON CONFLICT",
            start,
            11,
        )
    if cursor.at("("):
        _read_target(cursor, table)
    if cursor.at("WHERE"):
        raise cursor.unsupported("a condition on the conflict itself", "write DO UPDATE SET ... WHERE condition")
    cursor.expect("DO")
    if cursor.accept("NOTHING"):
        return InsertMode.IGNORE
    if not cursor.accept("UPDATE"):
        raise cursor.expected("NOTHING or UPDATE")
    cursor.expect("SET")
    assignments = read_assignments(cursor, table, "WHERE", "RETURNING")
    condition = read_expression(cursor, "RETURNING", what="a condition") if cursor.accept("WHERE") else None
    return DoUpdate(assignments, condition)


def check_conflicts(cursor: TokenCursor, table: TableDef, offset: int) -> None:
    """Refuse what an INSERT does with keys that exist already, where a table has no key.

    Raises:
        ProgrammingError: It has none; with the offset.
    """
    try:
        check_has_key(table, "no row of an INSERT conflicts with another")
    except ProgrammingError as error:
        raise cursor.error(ProgrammingError, error.message, offset, 2, table=table.name) from None


def _read_target(cursor: TokenCursor, table: TableDef) -> None:
    offset = cursor.offset
    cursor.expect("(")
    columns = cursor.listed(lambda cursor: read_column(cursor, table))
    cursor.expect(")")
    if set(columns) != set(table.primary_key):
        message = (
            f"the only unique key of {table.name} is its primary key ({', '.join(table.primary_key)}): name"
            " those columns, or none"
        )
        raise cursor.error(ProgrammingError, message, offset)
