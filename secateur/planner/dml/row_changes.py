"""Queries for :class:`~secateur.engine.sql.row_changes.RowChanges`, before planning, and for RETURNING over them.

One member computes such changes for all partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from secateur.engine.sql.row_changes import RowAction
from secateur.errors import ProgrammingError
from secateur.partitioning.tables.row_ids import WITH_ROW_IDS
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.sql_text import quoted
from secateur.planner.binding.functions import UNNESTING, aggregate_names
from secateur.planner.dml.assignments import Assignments
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.target import ChangeTarget
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.syntax import SyntaxNode, nodes_of, parse_query
from secateur.planner.text.token_cursor import TextSpan, TokenCursor, read_expression
from secateur.planner.text.tokens import tokenize
from secateur.protocol.changes import DuplicateMatchPolicy
from secateur.protocol.tokens import Privilege

Value = tuple[str | TextSpan, ...]
"""An expression, as words of ours and pieces of the user's."""
MERGE_ACTION: Final = "merge_action"
"""The function that returns the action on the row, in the RETURNING of a MERGE."""


def default_words(column: Column) -> Value:
    """What DEFAULT means for a column."""
    return (column.default or "NULL",)


def assigned_values(assignments: Assignments, table: TableDef) -> dict[str, Value]:
    """The values by column of a table."""
    return {
        name: default_words(table.column(name)) if place is None else (place,) for name, place in assignments.items()
    }


def places_of(values: Mapping[str, Value]) -> list[tuple[str, TextSpan | None]]:
    """The columns whose values are pieces of the user's as they stand, with their places."""
    return [(name, words[0]) for name, words in values.items() if len(words) == 1 and isinstance(words[0], TextSpan)]


@dataclass(frozen=True, slots=True)
class RowChangesQuery:
    """A change, before planning.

    Attributes:
        table: The table that is changed.
        query: The query for the changes of its rows.
        duplicate_match: The treatment of a row that is found twice.
        returning: The RETURNING query over the changed rows, which reads the table alone; None for none.
        names_action: Whether ``returning`` has one parameter more than the statement: the action of the row.
        is_single_partition: Whether the primary of a partition can execute the change for a key of that partition on
            its own.
        has_plain_keys: Whether it is an INSERT whose rows have literals and parameters as their keys, which stay.
        privileges: What it needs with the table.
    """

    table: TableDef
    query: Composed
    duplicate_match: DuplicateMatchPolicy
    privileges: tuple[Privilege, ...]
    returning: Composed | None = None
    names_action: bool = False
    is_single_partition: bool = False
    has_plain_keys: bool = False


def target_text(target: ChangeTarget) -> str:
    """The target as an item of a FROM clause; its schema says that it is the target, which has its row ids there."""
    return f"{quoted(WITH_ROW_IDS)}.{quoted(target.table.name)} AS {quoted(target.alias)}"


def column_of(target: ChangeTarget, column: str) -> str:
    """A column of the target, as a value."""
    return f"{quoted(target.alias)}.{quoted(column)}"


def row_changes_items(
    composer: Composer, target: ChangeTarget, action: Value, values: Mapping[str, Value], *, is_there: bool = True
) -> None:
    """Write the select list of a query for row changes.

    Args:
        composer: Receives the text.
        target: The table that is changed.
        action: The action of the row.
        values: The new values by column; other columns keep theirs.
        is_there: Whether the target is visible, so that its old key and columns can be named; else columns without a
            value get their default.
    """
    table = target.table
    composer.say("CAST(", *action, ' AS VARCHAR) AS "action"')
    for position, name in enumerate(table.primary_key):
        old = column_of(target, name) if is_there else f"CAST(NULL AS {table.column(name).type})"
        composer.say(f', {old} AS "old {position}"')
    for column in table.columns:
        stays = (column_of(target, column.name),) if is_there else default_words(column)
        words = values.get(column.name, stays)
        # Each is cast to the type of its column, as the dialect does it.
        composer.say(", CAST((", *words, f") AS {column.type}) AS {quoted(column.name)}")


def action_text(action: RowAction) -> str:
    """An action as a value."""
    return f"'{action.value}'"


def read_returning(
    cursor: TokenCursor, target: ChangeTarget, parameters: Parameters, *, with_action: bool = False
) -> tuple[Composed, bool] | None:
    """Read the clause, which ends the statement; None when the statement ends without it.

    ``RETURNING expression, ...`` has the columns that the user wants of the changed rows. It is a query over those rows
    in place of the table, one line for each. It sees the old values of a deleted row, and the new values of every
    other.

    Args:
        cursor: At RETURNING or the end.
        target: The table that is changed.
        parameters: Those of the statement.
        with_action: Whether ``merge_action`` is a column.

    Returns:
        The query, and whether it has the action of the row as a parameter more than the statement.

    Raises:
        SqlSyntaxError: Something else comes.
        ProgrammingError: A value that is not one of a single row.
    """
    if not cursor.accept("RETURNING"):
        cursor.expect_end()
        return None
    start = cursor.offset
    composer = Composer(cursor.sql, parameters).say("SELECT ")
    names_action = False
    while True:
        if with_action and _is_action(cursor):
            cursor.take()
            composer.say(f"CAST(${parameters.total + 1} AS VARCHAR) AS {MERGE_ACTION}")
            names_action = True
        else:
            composer.say(read_expression(cursor, ","))
        if not cursor.accept(","):
            break
        composer.say(", ")
    composer.say(f" FROM {quoted(target.table.name)} AS {quoted(target.alias)}")
    query = composer.finish()
    if any(map(_needs_other_rows, nodes_of(parse_query(query.text, tokenize(query.text)).node))):
        raise cursor.error(
            ProgrammingError,
            "RETURNING takes values of the changed row alone: no aggregates, windows or subqueries",
            start,
        )
    return query, names_action


def _needs_other_rows(node: SyntaxNode) -> bool:
    """Whether an expression is computed of other rows than one, or makes several of it."""
    name = str(node.get("function_name", "")).lower()
    return node.get("class") in ("SUBQUERY", "WINDOW") or name in aggregate_names() or name in UNNESTING


def _is_action(cursor: TokenCursor) -> bool:
    token, behind = cursor.peek(), cursor.peek(1)
    return (
        token is not None
        and token.text.casefold() == MERGE_ACTION
        and (behind is None or (cursor.peek(1) is not None and behind.text == ","))
    )
