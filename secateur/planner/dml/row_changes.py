"""Queries for :class:`~secateur.engine.sql.row_changes.RowChanges`, before planning.

One member computes such changes for all partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from secateur.engine.sql.row_changes import RowAction
from secateur.partitioning.tables.identifier import quoted
from secateur.partitioning.tables.row_ids import WITH_ROW_IDS
from secateur.partitioning.tables.table import Column, TableDef
from secateur.planner.dml.assignments import Assignments
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.expressions import TextSpan
from secateur.planner.dml.target import ChangeTarget
from secateur.protocol.changes import DuplicateMatchPolicy

Value = tuple[str | TextSpan, ...]
"""An expression, as words of ours and pieces of the user's."""


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
    """

    table: TableDef
    query: Composed
    duplicate_match: DuplicateMatchPolicy
    returning: Composed | None = None
    names_action: bool = False
    is_single_partition: bool = False


def target_text(target: ChangeTarget) -> str:
    """The target as an item of a FROM clause; one without a primary key has its row ids there."""
    schema = f"{quoted(WITH_ROW_IDS)}." if target.table.has_row_ids else ""
    return f"{schema}{quoted(target.table.name)} AS {quoted(target.alias)}"


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
    say_values(
        composer,
        target,
        {
            column.name: values.get(
                column.name, (column_of(target, column.name),) if is_there else default_words(column)
            )
            for column in table.columns
        },
    )


def say_values(composer: Composer, target: ChangeTarget, values: Mapping[str, Value]) -> None:
    """Say one value for each column of the table, each cast to its type, as the dialect does it."""
    for column in target.table.columns:
        composer.say(", CAST((", *values[column.name], f") AS {column.type}) AS {quoted(column.name)}")


def action_text(action: RowAction) -> str:
    """An action as a value."""
    return f"'{action.value}'"
