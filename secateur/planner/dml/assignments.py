"""The SET clause, ``a = value, (b, c) = (value, DEFAULT), (d, e) = value``, and ON CONFLICT, which has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from secateur.errors import ProgrammingError
from secateur.partitioning.tables.row_ids import check_has_key
from secateur.partitioning.tables.table import TableDef
from secateur.planner.dml.values import Value, of_columns, read_column, read_list, read_new_column, read_value
from secateur.planner.text.token_cursor import CLOSING, OPENING, TextSpan, TokenCursor, read_expression
from secateur.protocol.statements import InsertMode

QUERY_WORDS: Final = ("SELECT", "WITH", "FROM", "VALUES")
"""Words with which a query begins."""


def read_assignments(cursor: TokenCursor, table: TableDef, *ends: str) -> dict[str, Value]:
    """Read a list of assignments.

    Returns:
        The new values by column, as the table spells it.

    Raises:
        UnknownColumnError: The table has no such column; with its position.
        ProgrammingError: A column is assigned twice, or a list has fewer or more values than columns.
    """
    found: dict[str, Value] = {}
    taken: set[str] = set()

    def read_name(cursor: TokenCursor) -> str:
        qualifier = cursor.peek(1)
        if qualifier is not None and qualifier.text == ".":
            cursor.take()
            raise cursor.expected("'=' (columns are assigned by their bare names)")
        return read_new_column(cursor, table, taken, "assigned")

    while True:
        several = cursor.at("(")
        names = cursor.in_parentheses(read_name) if several else [read_name(cursor)]
        cursor.expect("=")
        offset = cursor.offset
        if several and _is_row(cursor, ends):
            cursor.accept("ROW")
            values = read_list(cursor)
            if len(values) != len(names):
                message = f"({', '.join(names)}) = (...) takes one value for each of the {len(names)} columns"
                raise cursor.error(ProgrammingError, message, offset)
        else:  # a list of columns gets the same value
            values = [read_value(cursor, ",", *ends)] * len(names)
        found |= zip(names, of_columns(cursor, values, [table.column(name) for name in names], offset), strict=True)
        if not cursor.accept(","):
            return found


def _is_row(cursor: TokenCursor, ends: tuple[str, ...]) -> bool:
    """Whether a list of values comes next and ends the value: ``(x, y)``, but not ``(x)`` or ``(x, y)[1]``."""
    is_named = cursor.at("ROW", "(")
    if not is_named and not cursor.at("("):
        return False
    depth, commas, ahead = 0, 0, int(is_named)
    while (token := cursor.peek(ahead)) is not None:
        depth += (token.word in OPENING) - (token.word in CLOSING)
        commas += depth == 1 and token.word == ","
        ahead += 1
        if not depth:
            break
    is_whole = cursor.peek(ahead) is None or any(cursor.at_ahead(ahead, word) for word in (",", *ends))
    is_query = any(cursor.at("(", word) for word in QUERY_WORDS)
    return is_whole and not is_query and (is_named or commas > 0)


@dataclass(frozen=True, slots=True)
class DoUpdate:
    """The existing row is changed.

    Attributes:
        assignments: Its new values; they may name columns of the table, and as ``excluded.column`` those of the row
            that was to be inserted.
        condition: Which rows are changed; None for all.
    """

    assignments: dict[str, Value]
    condition: TextSpan | None


def read_conflict(cursor: TokenCursor, table: TableDef, mode: InsertMode) -> tuple[InsertMode, DoUpdate | None]:
    """Read an ON CONFLICT clause; without one, the treatment is that of ``mode``.

    It says what an INSERT does with keys that exist already::

        ON CONFLICT [(key columns)] { DO NOTHING | DO UPDATE SET a = value, ... [WHERE condition] }

    Of rows of one statement that have the same key only the first counts, as in the dialect.

    Raises:
        UnknownColumnError: With the position of the name.
        ProgrammingError: The columns are not those of the primary key, the table has none, or the statement has two
            conflict clauses.
        NotSupportedError: A form that is not supported.
    """
    start = cursor.offset
    if not cursor.accept("ON", "CONFLICT"):
        return mode, None
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
        return InsertMode.IGNORE, None
    if not cursor.accept("UPDATE"):
        raise cursor.expected("NOTHING or UPDATE")
    cursor.expect("SET")
    assignments = read_assignments(cursor, table, "WHERE", "RETURNING")
    condition = read_expression(cursor, "RETURNING", what="a condition") if cursor.accept("WHERE") else None
    return InsertMode.UPSERT, DoUpdate(assignments, condition)


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
    columns = cursor.in_parentheses(lambda cursor: read_column(cursor, table))
    if set(columns) != set(table.primary_key):
        message = (
            f"the only unique key of {table.name} is its primary key ({', '.join(table.primary_key)}): name"
            " those columns, or none"
        )
        raise cursor.error(ProgrammingError, message, offset)
