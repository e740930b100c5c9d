"""INSERT as a query for row changes, if it changes existing rows or has RETURNING.

::

    SELECT CASE WHEN x.k IS NULL THEN 'INSERT' ELSE 'UPDATE' END, x.k, <values>
    FROM (SELECT {'k': ..., 'v': ...} AS excluded FROM <rows> QUALIFY <the first of each key>)
      LEFT JOIN t AS x ON x.k = excluded.k
    WHERE x.k IS NULL OR (<condition of DO UPDATE>)

``excluded`` is a struct, so that a bare name is a column of the table, as the dialect demands, and ``excluded.v`` the
value that was to be inserted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from secateur.engine.sql.row_changes import RowAction
from secateur.partitioning.tables.identifier import quoted
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.conflict import DoUpdate
from secateur.planner.dml.expressions import TextSpan
from secateur.planner.dml.insert import Insert, ValuesRows
from secateur.planner.dml.row_changes import (
    RowChangesQuery,
    action_text,
    assigned_values,
    column_of,
    row_changes_items,
    target_text,
)
from secateur.planner.dml.row_changes import Value as Words
from secateur.protocol.changes import DuplicateMatchPolicy
from secateur.protocol.statements import InsertMode

_KEYS_MAX: Final = 1000
"""Rows of a VALUES clause whose keys are named to the scan of the table, so that it is pruned."""


def insert_row_changes(insert: Insert, columns: Sequence[str]) -> RowChangesQuery:
    """The query for the row changes of an INSERT.

    Args:
        insert: The statement.
        columns: The columns of the table that its rows have, in order.
    """
    table, conflict = insert.target.table, insert.conflict
    made = insert.made_keys(columns)
    query, names_action = insert.returning or (None, False)
    if conflict is InsertMode.APPEND:
        return RowChangesQuery(
            table, _appended(insert, columns, made), DuplicateMatchPolicy.REFUSED, query, names_action
        )
    changed: dict[str, Words] = {}
    condition: TextSpan | None = None
    if isinstance(conflict, DoUpdate):
        changed, condition = assigned_values(conflict.assignments, table), conflict.condition
    elif conflict is InsertMode.UPSERT:
        changed = {name: (f"excluded.{quoted(name)}",) for name in columns if name not in table.primary_key}
    has_keys = _has_plain_keys(insert, columns)
    moves = any(name in table.primary_key for name in changed)
    is_single_partition = has_keys and not moves and insert.returning is None
    composer = _merged(
        insert, columns, made, changed, condition, has_keys=has_keys, updates=conflict is not InsertMode.IGNORE
    )
    return RowChangesQuery(
        table, composer.finish(), DuplicateMatchPolicy.FIRST, query, names_action, is_single_partition
    )


def key_query(insert: Insert, columns: Sequence[str]) -> Composed:
    """The query for the keys of the rows that are there, of an INSERT whose rows have plain keys.

    It reads the partitions of the table that the query for the row changes reads.

    Args:
        insert: The statement.
        columns: As of :func:`insert_row_changes`.
    """
    keys = ", ".join(map(quoted, insert.target.table.primary_key))
    composer = Composer(insert.sql, insert.parameters).say(f"SELECT {keys} ")
    _say_keys(composer, insert, columns)
    return composer.finish()


def _appended(insert: Insert, columns: Sequence[str], made: Sequence[str]) -> Composed:
    """The rows as they are given."""
    composer = Composer(insert.sql, insert.parameters, insert.ctes)
    composer.say("SELECT ")
    values: dict[str, Words] = {name: (quoted(name),) for name in (*columns, *made)}
    row_changes_items(composer, insert.target, (action_text(RowAction.INSERT),), values, is_there=False)
    insert.say_rows(composer.say(" FROM "), columns, made)
    return composer.finish()


def _merged(
    insert: Insert,
    columns: Sequence[str],
    made: Sequence[str],
    changed: dict[str, Words],
    condition: TextSpan | None,
    *,
    has_keys: bool,
    updates: bool,
) -> Composer:
    """The rows as they are given, or as those that are there are changed by them."""
    target = insert.target
    table, keys = target.table, target.table.primary_key
    absent = f"{column_of(target, keys[0])} IS NULL"
    composer = Composer(insert.sql, insert.parameters, insert.ctes)
    composer.say("SELECT ")
    values: dict[str, Words] = {}
    for column in table.columns:
        name = column.name
        then = f"CASE WHEN {absent} THEN excluded.{quoted(name)} ELSE "
        stays: Words = (column_of(target, name),)
        values[name] = (
            (then, "CAST((", *changed[name], f") AS {column.type})", " END")
            if name in changed
            else (then, *stays, " END")
        )
    row_changes_items(
        composer,
        target,
        (f"CASE WHEN {absent} THEN {action_text(RowAction.INSERT)} ELSE {action_text(RowAction.UPDATE)} END",),
        values,
    )
    named = ", ".join(f"'{name.replace(chr(39), chr(39) * 2)}': {quoted(name)}" for name in (*columns, *made))
    nothing = "".join(
        f", '{column.name.replace(chr(39), chr(39) * 2)}': CAST({column.default or 'NULL'} AS {column.type})"
        for column in table.columns
        if column.name not in columns and column.name not in made
    )
    composer.say(f" FROM (SELECT {{{named}{nothing}}} AS excluded FROM ")
    if isinstance(insert.source, ValuesRows) and len(insert.source.values) == 1:
        insert.say_rows(composer, columns, made)
    else:
        insert.say_rows(composer.say('(SELECT *, row_number() OVER () AS "row" FROM '), columns, made)
        distinct = ", ".join(map(quoted, _given(keys, (*columns, *made))))
        composer.say(f') QUALIFY row_number() OVER (PARTITION BY {distinct} ORDER BY "row") = 1')
    composer.say(') AS "source row" LEFT JOIN ')
    if has_keys:
        composer.say("(SELECT * ")
        _say_keys(composer, insert, columns)
        composer.say(f") AS {quoted(target.alias)}")
    else:
        composer.say(target_text(target))
    composer.say(" ON ", " AND ".join(f"{column_of(target, name)} = excluded.{quoted(name)}" for name in keys))
    if not updates:
        composer.say(f" WHERE {absent}")
    elif condition is not None:
        composer.say(f" WHERE {absent} OR (", condition, ")")
    return composer


def _given(keys: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the key columns that the rows have, or another column if they have none.

    Their key is then NULL, which is refused.
    """
    return [name for name in keys if name in columns] or list(columns[:1])


def _has_plain_keys(insert: Insert, columns: Sequence[str]) -> bool:
    """Whether the keys of the rows are literals and parameters, which have the same value everywhere."""
    source, keys = insert.source, insert.target.table.primary_key
    if (
        not isinstance(source, ValuesRows)
        or len(source.values) > _KEYS_MAX
        or not set(keys) <= set(columns)
        or insert.ctes is not None
    ):
        return False
    cells = [row[columns.index(name)] for row in source.values for name in keys]
    return all(cell.is_literal or cell.parameter(insert.parameters) is not None for cell in cells)


def _say_keys(composer: Composer, insert: Insert, columns: Sequence[str]) -> None:
    """The table, reduced to the keys of the rows."""
    table, keys = insert.target.table, insert.target.table.primary_key
    assert isinstance(insert.source, ValuesRows)
    composer.say(f"FROM {quoted(table.name)} WHERE ")
    for number, row in enumerate(insert.source.values):
        composer.say(" OR " if number else "")
        for position, name in enumerate(keys):
            value = row[columns.index(name)]
            composer.say(
                " AND " if position else "(",
                f"{quoted(name)} = CAST(",
                *value.words,
                f" AS {table.column(name).type})",
            )
        composer.say(")")
