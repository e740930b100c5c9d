"""Finds the form of an ``INSERT ... ON CONFLICT DO UPDATE`` of one row that runs without DuckDB, if it has one.

The planner has to know what the values of DO UPDATE mean, and it knows that of an UPDATE. So the assignments are
planned as those of an UPDATE in which each value of ``excluded`` is replaced by what it stands for: for the row
``VALUES (?, ?)``, ``v + excluded.v`` is ``v + CAST($2 AS BIGINT)``. Only a form that the arrow kernel has is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from secateur.engine.kernels.arrow.expression import ConstantExpression, ParameterExpression
from secateur.engine.kernels.arrow.fragment import ArrowFragment
from secateur.engine.sql.row_upsert import GivenValue, RowUpsert
from secateur.errors import Error
from secateur.partitioning.tables.identifier import folded, quoted
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.binding.parameter_types import TypeUses
from secateur.planner.dml.composed import Composer
from secateur.planner.dml.conflict import DoUpdate
from secateur.planner.dml.expressions import TextSpan
from secateur.planner.dml.insert import Insert, Value, ValuesRows, default_value
from secateur.planner.dml.literal_columns import literal_column
from secateur.planner.dml.row_changes import Value as Words
from secateur.planner.dml.row_changes import column_of, target_text
from secateur.planner.statement import PlannedSelect
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.tokens import Token, TokenKind, tokenize

PlanQuery: TypeAlias = Callable[[str, Sequence[Token], Parameters], PlannedSelect]

_EXCLUDED: Final = "excluded"
_QUERY: Final = re.compile(r"\b(?:SELECT|FROM|TABLE|VALUES|WITH|LAMBDA)\b|->", re.IGNORECASE)
"""Words with which ``excluded`` could be something else than the new row."""


class _NoneError(Exception):
    """The statement has no such form; never leaves this module."""


def find_row_upsert(insert: Insert, columns: Sequence[str], plan: PlanQuery) -> tuple[RowUpsert, TypeUses] | None:
    """The form without DuckDB of an INSERT that changes existing rows, if it has one.

    Args:
        insert: The statement: one whose only row has plain keys, and whose assignments leave keys as they are.
        columns: The columns of the table that its row has, in order.
        plan: Plans a query of the statement.

    Returns:
        The form, and the parameters on whose types it depends; or None, also where the statement is invalid.

    Cost: that of planning an UPDATE, where DO UPDATE computes something or has a condition.
    """
    try:
        return _row_upsert(insert, columns, plan)
    except (_NoneError, Error):  # the query for the row changes says what is wrong
        return None


def _row_upsert(insert: Insert, columns: Sequence[str], plan: PlanQuery) -> tuple[RowUpsert, TypeUses]:
    table = insert.target.table
    names = {folded(name) for name in (table.name, insert.target.alias, *(column.name for column in table.columns))}
    if not isinstance(insert.source, ValuesRows) or _EXCLUDED in names:
        raise _NoneError
    if any(table.column(name).type.is_float for name in table.primary_key):  # NaN, and two zeros
        raise _NoneError
    named = dict(zip(columns, insert.source.values[0], strict=True))
    row = {column.name: named.get(column.name) or default_value(column) for column in table.columns}
    given = tuple(_given(insert, row[column.name], column.type) for column in table.columns)
    assigned: dict[str, GivenValue] = {}
    computed: dict[str, Words] = {}
    condition: Words | None = None
    if isinstance(insert.conflict, DoUpdate):
        for name, place in insert.conflict.assignments.items():
            value = _value_of(insert, place, row, table.column(name))
            if value is None:
                assert place is not None, "DEFAULT is a value"
                computed[name] = _in_terms_of_row(insert, place, row)
            else:
                assigned[name] = _given(insert, value, table.column(name).type)
        if insert.conflict.condition is not None:
            condition = _in_terms_of_row(insert, insert.conflict.condition, row)
    else:
        cells = zip(table.columns, given, strict=True)
        assigned = {column.name: cell for column, cell in cells if column.name in {*columns} - {*table.primary_key}}
    cast = (value.number - 1 for value in (*given, *assigned.values()) if isinstance(value, ParameterExpression))
    uses = TypeUses(unneeded=frozenset(cast))
    if not computed and condition is None:
        return RowUpsert(given, assigned), uses
    fragment, uses_there = _compiled(insert, computed, condition, plan)
    return RowUpsert(given, assigned, fragment), uses | uses_there


def _compiled(
    insert: Insert, computed: Mapping[str, Words], condition: Words | None, plan: PlanQuery
) -> tuple[ArrowFragment, TypeUses]:
    """Plan what the arrow kernel computes from the row that is there."""
    table, key = insert.target.table, insert.target.table.primary_key[0]
    values = computed or {key: (column_of(insert.target, key),)}
    composer = Composer(insert.sql, insert.parameters).say(f"FROM {target_text(insert.target)} SELECT ")
    for position, (name, words) in enumerate(values.items()):
        composer.say(", " if position else "", "CAST((", *words, f") AS {table.column(name).type}) AS {quoted(name)}")
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


def _given(insert: Insert, value: Value, type_: SqlType) -> GivenValue:
    index = value.parameter(insert.parameters)
    if index is not None:
        return ParameterExpression(index + 1, type_)
    text = value.text if value.span is None else insert.sql[value.span.start : value.span.end]
    column = literal_column([text], type_)
    if column is None:
        raise _NoneError
    literal = column[0].as_py()
    return None if literal is None else ConstantExpression(literal, type_)


def _value_of(insert: Insert, span: TextSpan | None, row: Mapping[str, Value], column: Column) -> Value | None:
    """A literal, a parameter, or a value of the row of the type, if that is the whole of an expression; else None."""
    if span is None:
        return default_value(column)
    value = Value(span, literal_column([insert.sql[span.start : span.end]], column.type) is not None)
    if value.is_literal or value.parameter(insert.parameters) is not None:
        return value
    tokens = tokenize(insert.sql[span.start : span.end])
    name = _column_behind(insert, tokens, 0) if len(tokens) == 3 else None
    if name is None or insert.target.table.column(name).type != column.type:
        return None
    return row[name]


def _in_terms_of_row(insert: Insert, span: TextSpan, row: Mapping[str, Value]) -> Words:
    """An expression in which the values of ``excluded`` are those of the row."""
    text = insert.sql[span.start : span.end]
    if _QUERY.search(text):
        raise _NoneError
    tokens, table = tokenize(text), insert.target.table
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
    columns = {column.name.casefold(): column.name for column in insert.target.table.columns}
    return columns.get(name.text.casefold())


def _is_excluded(token: Token) -> bool:
    return token.kind is not TokenKind.STRING and folded(token.text) == _EXCLUDED
