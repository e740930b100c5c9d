"""INSERT as a query for row changes, if it changes existing rows or has RETURNING, or in a form without DuckDB.

::

    SELECT CASE WHEN x.k IS NULL THEN 'INSERT' ELSE 'UPDATE' END, x.k, <values>
    FROM (SELECT {'k': ..., 'v': ...} AS excluded FROM <rows> QUALIFY <the first of each key>)
      LEFT JOIN t AS x ON x.k = excluded.k
    WHERE x.k IS NULL OR (<condition of DO UPDATE>)

``excluded`` is a struct, so that a bare name is a column of the table, as the dialect demands, and ``excluded.v`` the
value that was to be inserted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from secateur.engine.kernels.arrow.fragment import ArrowFragment, ConstantExpression, ParameterExpression
from secateur.engine.sql.row_changes import RowAction
from secateur.engine.sql.row_upsert import GivenValue, RowConflict, RowUpsert
from secateur.errors import Error
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.sql_text import folded, quoted, text_literal
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.insert import Insert, ValuesRows
from secateur.planner.dml.literal_insert import literal_column
from secateur.planner.dml.row_changes import action_text, column_of, row_changes_items, target_text
from secateur.planner.dml.target import ChangeTarget
from secateur.planner.dml.values import Value, Words, cast_words, default_value, item
from secateur.planner.statement import PlannedSelect
from secateur.planner.text.parameters import Parameters, TypeUses
from secateur.planner.text.token_cursor import TextSpan
from secateur.planner.text.tokens import Token, TokenKind, tokenize
from secateur.protocol.statements import InsertMode

_KEYS_MAX: Final = 1000
"""Rows of a VALUES clause whose keys are named to the scan of the table, so that it is pruned."""
PlanQuery: TypeAlias = Callable[[str, Sequence[Token], Parameters], PlannedSelect]

_EXCLUDED: Final = "excluded"
_CONFLICTS: Final = {InsertMode.APPEND: RowConflict.REFUSED, InsertMode.IGNORE: RowConflict.KEPT}
_QUERY: Final = re.compile(r"\b(?:SELECT|FROM|TABLE|VALUES|WITH|LAMBDA)\b|->", re.IGNORECASE)
"""Words with which ``excluded`` could be something else than the new row."""


class _NoneError(Exception):
    """The statement has no such form; never leaves this module."""


@dataclass(frozen=True, slots=True)
class InsertedRows:
    """The rows of an INSERT.

    Attributes:
        insert: The statement.
        columns: The columns of the table that its rows have, in order.
        asks_owners: Whether row policies hide keys from its query, so that owners say which DO NOTHING leaves out.
    """

    insert: Insert
    columns: Sequence[str]
    asks_owners: bool = False

    def changes(self) -> Composed:
        """The query for the row changes."""
        insert = self.insert
        composer = Composer(insert.sql, insert.parameters, insert.ctes).say("SELECT ")
        absent = [column.name for column in insert.table.columns if column.name not in self.columns]
        if insert.mode is InsertMode.APPEND or self.asks_owners:
            values: dict[str, Words] = {column.name: (quoted(column.name),) for column in insert.table.columns}
            row_changes_items(composer, insert.target, (action_text(RowAction.INSERT),), values, is_there=False)
            insert.say_rows(composer.say(" FROM "), self.columns, absent)
        else:
            self._say_merged(composer, absent)
        return composer.finish()

    @property
    def keeps_plain_keys(self) -> bool:
        """Whether the keys of the rows are literals and parameters, and no row that is there gets another one."""
        keys = self.insert.table.primary_key
        return self._has_plain_keys and not any(name in keys for name in self._changed())

    def keys(self) -> Composed:
        """The query for the keys of the rows that are there, of an INSERT whose rows have plain keys.

        It reads the partitions of the table that the query for the row changes reads.
        """
        keys = ", ".join(map(quoted, self.insert.table.primary_key))
        composer = Composer(self.insert.sql, self.insert.parameters).say(f"SELECT {keys} ")
        self._say_keys(composer)
        return composer.finish()

    def _changed(self) -> dict[str, Value]:
        """The new values of a row that is there."""
        insert = self.insert
        if insert.update is not None:
            return insert.update.assignments
        if insert.mode is not InsertMode.UPSERT:
            return {}
        given = (name for name in self.columns if name not in insert.table.primary_key)
        return {name: Value(None, False, default=f"{_EXCLUDED}.{quoted(name)}") for name in given}

    def _say_merged(self, composer: Composer, absent: Sequence[str]) -> None:
        """The rows as they are given, or as those that are there are changed by them."""
        insert, target, table = self.insert, self.insert.target, self.insert.table
        keys = table.primary_key
        is_new = f"CASE WHEN {column_of(target, keys[0])} IS NULL THEN "
        changed = self._changed()
        values: dict[str, Words] = {}
        for column in table.columns:
            name = column.name
            stays: Words = (column_of(target, name),)
            then = cast_words(changed[name].words, column.type) if name in changed else stays
            values[name] = (f"{is_new}{_EXCLUDED}.{quoted(name)} ELSE ", *then, " END")
        action = f"{is_new}{action_text(RowAction.INSERT)} ELSE {action_text(RowAction.UPDATE)} END"
        row_changes_items(composer, target, (action,), values)
        fields = ", ".join(f"{text_literal(column.name)}: {quoted(column.name)}" for column in table.columns)
        composer.say(f" FROM (SELECT {{{fields}}} AS {_EXCLUDED} FROM ")
        if isinstance(insert.source, ValuesRows) and len(insert.source.values) == 1:
            insert.say_rows(composer, self.columns, absent)
        else:
            insert.say_rows(composer.say('(SELECT *, row_number() OVER () AS "row" FROM '), self.columns, absent)
            distinct = ", ".join(map(quoted, keys))
            composer.say(f') QUALIFY row_number() OVER (PARTITION BY {distinct} ORDER BY "row") = 1')
        composer.say(') AS "source row" LEFT JOIN ')
        if self._has_plain_keys:
            composer.say("(SELECT * ")
            self._say_keys(composer)
            composer.say(f") AS {quoted(target.alias)}")
        else:
            composer.say(target_text(target))
        composer.say(" ON ", " AND ".join(f"{column_of(target, name)} = excluded.{quoted(name)}" for name in keys))
        if insert.mode is InsertMode.IGNORE:
            composer.say(f" WHERE {column_of(target, keys[0])} IS NULL")
        elif insert.update is not None and insert.update.condition is not None:
            composer.say(f" WHERE {column_of(target, keys[0])} IS NULL OR (", insert.update.condition, ")")

    @property
    def _has_plain_keys(self) -> bool:
        """Whether the keys of the rows are literals and parameters, which have the same value everywhere."""
        source, keys = self.insert.source, self.insert.table.primary_key
        if (
            not isinstance(source, ValuesRows)
            or len(source.values) > _KEYS_MAX
            or not set(keys) <= set(self.columns)
            or self.insert.ctes is not None
        ):
            return False
        return all(row[self.columns.index(name)].is_plain for row in source.values for name in keys)

    def _say_keys(self, composer: Composer) -> None:
        """The table, reduced to the keys of the rows."""
        table, source = self.insert.table, self.insert.source
        assert isinstance(source, ValuesRows)
        composer.say(f"FROM {target_text(ChangeTarget(table, table.name, 0))} WHERE ")
        for number, row in enumerate(source.values):
            composer.say(" OR " if number else "")
            for position, name in enumerate(table.primary_key):
                value = row[self.columns.index(name)]
                composer.say(" AND " if position else "(", f"{quoted(name)} = CAST(")
                composer.say(*value.words, f" AS {table.column(name).type})")
            composer.say(")")

    def upsert(self, plan: PlanQuery) -> tuple[RowUpsert, TypeUses] | None:
        """The form without DuckDB, if it has one.

        The planner has to know what the values of DO UPDATE mean, and it knows that of an UPDATE. So the assignments
        are planned as those of an UPDATE in which each value of ``excluded`` is replaced by what it stands for: for the
        row ``VALUES (?, ?)``, ``v + excluded.v`` is ``v + CAST($2 AS BIGINT)``. Only a form that the arrow kernel has
        is taken. It is asked for only where the one row has plain keys, and the assignments leave keys as they are.

        Returns:
            The form, and the parameters on whose types it depends; or None, also where the statement is invalid.

        Cost: that of planning an UPDATE, where DO UPDATE computes something or has a condition.
        """
        try:
            return self._upsert(plan)
        except (_NoneError, Error):  # the query for the row changes says what is wrong
            return None

    def _upsert(self, plan: PlanQuery) -> tuple[RowUpsert, TypeUses]:
        insert, table = self.insert, self.insert.table
        names = {folded(name) for name in (table.name, insert.target.alias, *(column.name for column in table.columns))}
        if not isinstance(insert.source, ValuesRows) or _EXCLUDED in names:
            raise _NoneError
        if any(table.column(name).type.is_float for name in table.primary_key):  # NaN, and two zeros
            raise _NoneError
        named = dict(zip(self.columns, insert.source.values[0], strict=True))
        row = {column.name: named.get(column.name) or default_value(column) for column in table.columns}
        given = tuple(_given_value(insert, row[column.name], column.type) for column in table.columns)
        if insert.mode in _CONFLICTS:
            return RowUpsert(given, {}, None, _CONFLICTS[insert.mode]), _uses(given)
        assigned: dict[str, GivenValue] = {}
        computed: dict[str, Words] = {}
        for name, written in self._changed().items():
            value = _value_of(insert, written, row, table.column(name))
            if value is None:
                computed[name] = _in_terms_of_row(insert, written.span, row)
            else:
                assigned[name] = _given_value(insert, value, table.column(name).type)
        where = None if insert.update is None else insert.update.condition
        condition = None if where is None else _in_terms_of_row(insert, where, row)
        uses = _uses((*given, *assigned.values()))
        if not computed and condition is None:
            return RowUpsert(given, assigned), uses
        fragment, uses_there = _compiled(insert, computed, condition, plan)
        return RowUpsert(given, assigned, fragment), uses | uses_there


def _uses(values: Iterable[GivenValue]) -> TypeUses:
    """No type is asked of the parameters that become values of columns: they are cast."""
    return TypeUses(unneeded=frozenset(value.number - 1 for value in values if isinstance(value, ParameterExpression)))


def _compiled(
    insert: Insert, computed: Mapping[str, Words], condition: Words | None, plan: PlanQuery
) -> tuple[ArrowFragment, TypeUses]:
    """Plan what the arrow kernel computes from the row that is there."""
    table, key = insert.table, insert.table.primary_key[0]
    values = computed or {key: (column_of(insert.target, key),)}
    composer = Composer(insert.sql, insert.parameters).say(f"FROM {target_text(insert.target)} SELECT ")
    for position, (name, words) in enumerate(values.items()):
        composer.say(", " if position else "", *item(words, table.column(name).type, name))
    if condition is not None:
        composer.say(" WHERE (", *condition, ")")
    update = composer.finish().plan(plan)
    arrow = update.plan.local.arrow
    if (
        arrow is None
        or not arrow.is_row_by_row
        or tuple(name for name, _ in arrow.outputs) != tuple(values)
        or len(update.plan.scans) != 1
        or update.plan.parameter_count != insert.parameters.total
        or update.plan.views
    ):
        raise _NoneError
    return arrow, update.type_uses


def _given_value(insert: Insert, value: Value, type_: SqlType) -> GivenValue:
    if value.parameter is not None:
        return ParameterExpression(value.parameter + 1, type_)
    column = literal_column([value.text(insert.sql)], type_)
    if column is None:
        raise _NoneError
    literal = column[0].as_py()
    return None if literal is None else ConstantExpression(literal, type_)


def _value_of(insert: Insert, value: Value, row: Mapping[str, Value], column: Column) -> Value | None:
    """A value that is a literal or a parameter, or one of the row of the type of its column; else None."""
    text = value.text(insert.sql)
    if value.parameter is not None or literal_column([text], column.type) is not None:
        return value
    tokens = tokenize(text)
    name = _column_behind(insert, tokens, 0) if len(tokens) == 3 else None
    if name is None or insert.table.column(name).type != column.type:
        return None
    return row[name]


def _in_terms_of_row(insert: Insert, span: TextSpan | None, row: Mapping[str, Value]) -> Words:
    """An expression in which the values of ``excluded`` are those of the row."""
    if span is None or _QUERY.search(text := insert.sql[span.start : span.end]):
        raise _NoneError
    tokens, table = tokenize(text), insert.table
    words: list[str | TextSpan] = []
    start = span.start
    for position, token in enumerate(tokens):
        if not _is_excluded(token):
            continue
        name = None if position and tokens[position - 1].text == "." else _column_behind(insert, tokens, position)
        if name is None:
            raise _NoneError
        words.append(TextSpan(start, span.start + token.start))
        words += ["CAST(", *row[name].words, f" AS {table.column(name).type})"]
        start = span.start + tokens[position + 2].end + 1
    return (*words, TextSpan(start, span.end))


def _column_behind(insert: Insert, tokens: Sequence[Token], position: int) -> str | None:
    """The column that ``excluded.column`` names, if that stands there."""
    if len(tokens) < position + 3 or not _is_excluded(tokens[position]) or tokens[position + 1].text != ".":
        return None
    name = tokens[position + 2]
    if name.kind is TokenKind.STRING:
        return None
    columns = {column.name.casefold(): column.name for column in insert.table.columns}
    return columns.get(name.text.casefold())


def _is_excluded(token: Token) -> bool:
    return token.kind is not TokenKind.STRING and folded(token.text) == _EXCLUDED
