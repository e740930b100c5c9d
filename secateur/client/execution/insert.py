"""INSERT from the client: rows from the controller or from a template are sent to their owners.

A template makes them only where the result is certainly that of the dialect: a value of its column's exact type needs
no cast. For any other value the controller evaluates the statement, as it does for every expression.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from secateur.client.dbapi.parameters import ordered_values
from secateur.client.dbapi.rows import as_table
from secateur.client.execution.execute import Params, StatementCall
from secateur.client.execution.select import RunOptions, run_select
from secateur.client.loads.load import LoadMode, LoadResult, load_rows
from secateur.client.session import Session
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


class Insertion(NamedTuple):
    """One set of parameters of an ``INSERT ... VALUES``, and what is known of the statement."""

    prepared: InsertRows | EvaluatedInsert
    params: Params


def insert_values(call: StatementCall[InsertRows | EvaluatedInsert], work: list[StageWork] | None = None) -> LoadResult:
    """Load the rows of an ``INSERT ... VALUES``.

    Args:
        call: The call.
        work: As for :func:`~secateur.client.loads.load.load_rows`.

    Raises:
        Error: The error of the statement for these parameters, or as :func:`~secateur.client.loads.load.load_rows`.
    """
    return _insert(call.session, call.sql, [Insertion(call.statement, call.params)], work, call.started)


def insert_many(session: Session, sql: str, insertions: Sequence[Insertion]) -> int:
    """Load the rows of one statement for many sets of parameters, all at once; returns their number.

    Raises:
        Error: As :func:`insert_values`.
    """
    return _insert(session, sql, insertions, None, time.time()).rows


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
    rows = as_table(selected.result, selected.columns).rename_columns(list(insert.columns))
    mode = LoadMode.of(insert.mode)
    if mode is LoadMode.UPSERT:
        rows = first_of_each_key(conform(rows, insert.table, now=call.now), insert.table)
    loading: list[StageWork] | None = None if work is None else []
    loaded = load_rows(call.session, insert.table, rows, mode, work=loading, now=call.now)
    if work is not None:
        work += [*(selected.profile.work if selected.profile is not None else ()), *(loading or ())]
    return loaded


def _insert(
    session: Session, sql: str, insertions: Sequence[Insertion], work: list[StageWork] | None, started: float
) -> LoadResult:
    first = insertions[0].prepared
    insert = first.insert if isinstance(first, EvaluatedInsert) else first
    try:
        few = _few_rows(insertions, started)
        if few is not None:
            return load_rows(session, insert.table, few, LoadMode.of(insert.mode), same_table=True, work=work)
        runs = groupby(insertions, key=lambda insertion: id(insertion.prepared))  # one template fills all of a run
        rows = [part for _, run in runs for part in _rows(session, sql, list(run))]
        return _load(session, insert, rows, work, started)
    except TopologyChangedError:
        # Rows that were made for a dropped table are not valid for the table that has its name now.
        renewed = [_evaluated(session, sql, params) for _, params in insertions]
        return _load(session, renewed[0].insert, [evaluated.rows for evaluated in renewed], work, started)


def _few_rows(insertions: Sequence[Insertion], started: float) -> ShortTable | None:
    """The rows of a single set of parameters as plain values, if that is the way to send them."""
    if len(insertions) > 1:
        return None
    ((prepared, params),) = insertions
    if isinstance(prepared, EvaluatedInsert):
        return None
    template = prepared.template
    assert template is not None, "an INSERT that is kept has a template"
    ordered = ordered_values(params, template.parameter_count, template.parameter_names)
    return few_filled_rows(prepared.table, template, ordered, started)


def _rows(session: Session, sql: str, insertions: list[Insertion]) -> list[pa.Table]:
    prepared = insertions[0].prepared
    if isinstance(prepared, EvaluatedInsert):
        return [prepared.rows for _ in insertions]
    table, template = prepared.table, prepared.template
    assert template is not None, "an INSERT that is kept has a template"
    ordered = [ordered_values(params, template.parameter_count, template.parameter_names) for _, params in insertions]
    filled = filled_rows(table, template, ordered)
    if filled is not None:
        return [filled]
    one_by_one = [filled_rows(table, template, [values]) for values in ordered]
    return [
        _evaluated(session, sql, insertion.params).rows if rows is None else rows
        for insertion, rows in zip(insertions, one_by_one, strict=True)
    ]


def _evaluated(session: Session, sql: str, params: Params) -> EvaluatedInsert:
    prepared = session.prepare_anew(sql, params)
    if not isinstance(prepared, EvaluatedInsert):
        raise InterfaceError(f"{sql!r} was planned again and is no longer an INSERT: execute it again")
    return prepared


def _load(
    session: Session, insert: InsertRows, rows: Sequence[pa.Table], work: list[StageWork] | None, started: float
) -> LoadResult:
    table = insert.table
    now = datetime.fromtimestamp(started, UTC) if table.defaults else None
    together = rows[0] if len(rows) == 1 else pa.concat_tables([conform(part, table, now=now) for part in rows])
    return load_rows(session, table, together, LoadMode.of(insert.mode), same_table=True, work=work, now=now)


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
