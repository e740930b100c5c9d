"""INSERT from the client: rows from the controller or from a template are sent to their owners.

A template makes them only where the result is certainly that of the dialect: a value of its column's exact type needs
no cast. For any other value the controller evaluates the statement, as it does for every expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, TypeAlias

import pyarrow as pa

from secateur.client.dbapi.parameters import ordered_values
from secateur.client.execution.execute import StatementCall
from secateur.client.execution.reads import RunOptions
from secateur.client.execution.select import run_select
from secateur.client.loads.load import LoadMode, LoadResult, load_rows
from secateur.errors import DataError, InterfaceError, TopologyChangedError
from secateur.partitioning.tables.conform import conform, first_of_each_key
from secateur.partitioning.tables.row_ids import new_row_ids
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import TEXTUAL
from secateur.partitioning.types.python_column import as_they_stand, canonical_as_it_stands, column_of
from secateur.protocol.metrics import StageWork
from secateur.protocol.statements import (
    EvaluatedInsert,
    InsertRows,
    InsertSelect,
    InsertTemplate,
    Literal,
    SelectStatement,
)
from secateur.wire import SHORT_ROWS_MAX, ShortTable, is_short, travels_short

Insertion: TypeAlias = StatementCall[InsertRows | EvaluatedInsert]
"""One set of parameters of an ``INSERT ... VALUES``, and what is known of the statement."""


def insert_values(calls: Sequence[Insertion], work: list[StageWork] | None = None) -> LoadResult:
    """Load the rows of an ``INSERT ... VALUES``, for all sets of parameters at once.

    Args:
        calls: A call for each set of parameters, at least one, all of the same text.
        work: As for :func:`~secateur.client.loads.load.load_rows`.

    Raises:
        Error: The error of the statement for these parameters, or as :func:`~secateur.client.loads.load.load_rows`.
    """
    first = calls[0].statement
    insert = first.insert if isinstance(first, EvaluatedInsert) else first
    try:
        few = _few_rows(calls)
        if few is not None:
            table, mode = insert.table, LoadMode.of(insert.mode)
            return load_rows(calls[0].session, table, few, mode, same_table=True, work=work)
        runs = groupby(calls, key=lambda call: id(call.statement))  # one template fills all of a run
        return _load(calls[0], insert, [part for _, run in runs for part in _rows(list(run))], work)
    except TopologyChangedError:
        # Rows that were made for a dropped table are not valid for the table that has its name now.
        renewed = [_evaluated(call) for call in calls]
        return _load(calls[0], renewed[0].insert, [evaluated.rows for evaluated in renewed], work)


def insert_select(
    call: StatementCall[InsertSelect[SelectStatement]], work: list[StageWork] | None = None
) -> LoadResult:
    """Run the query of an ``INSERT ... SELECT`` and load its rows. The rows pass through this process.

    Args:
        call: The call.
        work: As for :func:`~secateur.client.loads.load.load_rows`; it gets what the query took as well.

    Raises:
        Error: As :func:`~secateur.client.execution.select.run_select` and
            :func:`~secateur.client.loads.load.load_rows`.
    """
    insert = call.statement
    selected = run_select(call.of(insert.select), RunOptions.ROWS if work is None else RunOptions.ROWS_AND_PROFILE)
    rows = selected.rows.take_table().rename_columns(list(insert.columns))
    mode = LoadMode.of(insert.mode)
    if mode is LoadMode.UPSERT:
        rows = first_of_each_key(conform(rows, insert.table, now=call.now), insert.table)
    loading: list[StageWork] | None = None if work is None else []
    loaded = load_rows(call.session, insert.table, rows, mode, work=loading, now=call.now)
    if work is not None:
        work += [*(selected.profile.work if selected.profile is not None else ()), *(loading or ())]
    return loaded


def _few_rows(calls: Sequence[Insertion]) -> ShortTable | None:
    """The rows of a single set of parameters as plain values, if that is the way to send them."""
    insert = calls[0].statement
    if len(calls) > 1 or isinstance(insert, EvaluatedInsert):
        return None
    template = _template_of(insert)
    return few_filled_rows(insert.table, template, _values_of(calls[0], template), calls[0].started)


def _template_of(insert: InsertRows) -> InsertTemplate:
    assert insert.template is not None, "an INSERT that is kept has a template"
    return insert.template


def _values_of(call: Insertion, template: InsertTemplate) -> list[Any]:
    return ordered_values(call.params, template.parameter_count, template.parameter_names)


def _rows(calls: list[Insertion]) -> list[pa.Table]:
    """The rows of calls of one plan."""
    insert = calls[0].statement
    if isinstance(insert, EvaluatedInsert):
        return [insert.rows for _ in calls]
    template = _template_of(insert)
    ordered = [_values_of(call, template) for call in calls]
    filled = filled_rows(insert.table, template, ordered)
    if filled is not None:
        return [filled]
    one_by_one = [filled_rows(insert.table, template, [values]) for values in ordered]
    return [_evaluated(call).rows if rows is None else rows for call, rows in zip(calls, one_by_one, strict=True)]


def _evaluated(call: Insertion) -> EvaluatedInsert:
    prepared = call.session.prepare_anew(call.sql, call.params)
    if not isinstance(prepared, EvaluatedInsert):
        raise InterfaceError(f"{call.sql!r} was planned again and is no longer an INSERT: execute it again")
    return prepared


def _load(call: Insertion, insert: InsertRows, rows: Sequence[pa.Table], work: list[StageWork] | None) -> LoadResult:
    table = insert.table
    now = call.now if table.defaults else None
    together = rows[0] if len(rows) == 1 else pa.concat_tables([conform(part, table, now=now) for part in rows])
    return load_rows(call.session, table, together, LoadMode.of(insert.mode), same_table=True, work=work, now=now)


def filled_rows(table: TableDef, template: InsertTemplate, values: Sequence[Sequence[Any]]) -> pa.Table | None:
    """Return the rows for some sets of parameters; None when a value is not exactly of its column's type.

    Args:
        table: The table of the rows.
        template: The rows, with parameters that are not bound yet.
        values: Plain parameters in the order of the statement, at least one set.

    Returns:
        The columns named, in the types of the table. NOT NULL is not checked here.

    Cost: some 10 microseconds, and a microsecond for each value.
    """
    columns: list[pa.Array] = []
    for position, name in enumerate(template.columns):
        type_, given = table.column(name).type, _given(template, position, values)
        column = as_they_stand(given, type_, column=name)
        if column is None and type_.contains(TEXTUAL):  # DuckDB would make a STRUCT of a dict, and one type of a list
            column = column_of(given, type_, name=name)
        if column is None:
            return None
        columns.append(column)
    return pa.table(columns, names=list(template.columns))


def few_filled_rows(
    table: TableDef, template: InsertTemplate, values: Sequence[Any], started: float
) -> ShortTable | None:
    """Return a few rows for one set of parameters as plain values of all columns of the table.

    Args:
        table: The table of the rows.
        template: The rows, with parameters that are not bound yet.
        values: Plain parameters in the order of the statement.
        started: ``time.time()`` when the user called.

    Returns:
        The rows, with the default or NULL where the template has no column; None when a value is not exactly of its
        column's type, when the rows are better sent in Arrow, or when the table does not take a NULL.

    Cost: a microsecond for each value.
    """
    count = len(template.rows)
    types = [column.type for column in table.columns]
    if count > SHORT_ROWS_MAX or not travels_short(types):
        return None
    positions = {name.casefold(): position for position, name in enumerate(template.columns)}
    defaults = table.defaults
    columns: list[list[Any]] = []
    for column in table.columns:
        position = positions.get(column.name.casefold())
        plain: list[Any] = new_row_ids(count) if column.hidden else [None] * count
        if position is not None:
            try:
                for number, row in enumerate(template.rows):
                    cell = row[position]
                    given = cell.value if isinstance(cell, Literal) else values[cell]
                    plain[number] = canonical_as_it_stands(given, column.type)
            except DataError:
                return None
        elif defaults and (default := defaults.get(column.name)) is not None:
            plain = default.values(count, datetime.fromtimestamp(started, UTC))
        if None in plain and not column.nullable:
            return None
        columns.append(plain)
    return ShortTable(columns, count) if is_short(columns, types) else None


def _given(template: InsertTemplate, position: int, values: Sequence[Sequence[Any]]) -> list[Any]:
    """The values of one column, of all rows for each set of parameters."""
    cells = [row[position] for row in template.rows]
    return [cell.value if isinstance(cell, Literal) else params[cell] for params in values for cell in cells]
