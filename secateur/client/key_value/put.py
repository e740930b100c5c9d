"""Writes of whole rows by primary key: what INSERT OR REPLACE does, without its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from secateur.client.key_value.tables import KeyTable, RowKeys
from secateur.client.loads.load import LoadMode, load_rows
from secateur.errors import ParameterError, TopologyChangedError
from secateur.partitioning.tables.conform import MissingColumns
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.python_column import canonical_column
from secateur.wire import SHORT_ROWS_MAX, ShortTable

_ABSENT: Final = object()
"""In place of the value of a column that a row does not name."""


def put_rows(table: KeyTable, rows: Sequence[Any], missing: str | None = None) -> None:
    """Write rows: each is added, or replaces the one with its key; all become visible at once.

    Args:
        table: The table.
        rows: At least one.
        missing: The treatment of columns that no row names, as :meth:`~.table_handle.TableHandle.put` takes it.

    Raises:
        Error: As :meth:`~secateur.client.loads.table_handle.TableHandle.put_many`.
    """

    def read(keys: RowKeys) -> tuple[TableDef, pa.Table | ShortTable]:
        return keys.definition, _given(keys, rows, lacking)

    lacking = MissingColumns.of_load(missing, is_upsert=True)
    session = table.session
    control = session.begin_statement()
    try:
        definition, given = table.read(read)
        try:
            load_rows(session, definition, given, LoadMode.UPSERT, missing=lacking, same_table=True)
        except TopologyChangedError:
            # Rows that were made for a dropped table are not valid for the table that has its name now.
            if not table.refresh(definition):
                raise
            load_rows(session, *table.read(read), LoadMode.UPSERT, missing=lacking, same_table=True)
    finally:
        session.end_statement(control)


def _given(keys: RowKeys, rows: Sequence[Any], missing: MissingColumns) -> pa.Table | ShortTable:
    """The rows as they are sent: a few as plain values, if those represent them completely."""
    table = keys.definition
    absent = None if missing is MissingColumns.NULL and not table.defaults else _ABSENT
    ordered = [_in_order(table, row, absent) for row in rows]
    columns, named, types = [list(values) for values in zip(*ordered, strict=True)], table.columns, keys.types
    is_partial = absent is _ABSENT and any(
        value is _ABSENT
        for row in ordered
        if type(row) is list
        for value in row  # which a mapping has made
    )
    if is_partial and missing is MissingColumns.NULL:
        now = datetime.now(UTC)
        columns = [_with_defaults(table, column, values, now) for column, values in zip(named, columns, strict=True)]
    elif is_partial:
        named = tuple(
            column for column, values in zip(named, columns, strict=True) if not _is_lacking(table, column, values)
        )
        columns = [values for values in columns if values[0] is not _ABSENT]
        types = [column.type for column in named]
    is_short = len(named) == len(table.columns) and len(rows) <= SHORT_ROWS_MAX and keys.takes_values
    if is_short:
        at = keys.uncertain(columns, 0)
        while at < len(columns):
            column = named[at]
            columns[at] = [coerce(value, column.type, column=column.name) for value in columns[at]]
            is_short = is_short and (column.nullable or None not in columns[at])
            at = keys.uncertain(columns, at + 1)
    else:
        columns = [
            [coerce(value, column.type, column=column.name) for value in values]
            for column, values in zip(named, columns, strict=True)
        ]
    if is_short and keys.is_short(columns):
        return ShortTable(columns, len(rows))
    arrays = [canonical_column(values, kind) for kind, values in zip(types, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=[column.name for column in named])


def _with_defaults(table: TableDef, column: Column, values: list[Any], now: datetime) -> list[Any]:
    """The values of a column, with its default, or NULL, in rows that do not name it."""
    places = [at for at, value in enumerate(values) if value is _ABSENT]
    if places:
        default = table.defaults.get(column.name)
        made = [None] * len(places) if default is None else default.values(len(places), now)
        for at, value in zip(places, made, strict=True):
            values[at] = value
    return values


def _is_lacking(table: TableDef, column: Column, values: Sequence[Any]) -> bool:
    """Whether no row names a column.

    Raises:
        ParameterError: Some do, and some do not.
    """
    lacking = sum(value is _ABSENT for value in values)
    if 0 < lacking < len(values):
        raise ParameterError(
            f"table {table.name}: of {len(values)} rows, {lacking} do not name column {column.name}: put rows that"
            " name other columns apart, or pass missing='null' to have NULL there",
            table=table.name,
        )
    return lacking > 0


def _in_order(table: TableDef, row: Any, absent: Any) -> Sequence[Any]:
    """The values of a row in the order of the columns; ``absent`` for columns that it does not name."""
    if type(row) is not tuple and isinstance(row, Mapping):
        given = {table.column(name).name: value for name, value in row.items()}
        if len(given) < len(row):
            raise ParameterError(f"a row for {table.name} names a column twice: {', '.join(row)}", table=table.name)
        return [given.get(column.name, absent) for column in table.columns]
    if not isinstance(row, (tuple, list)) or len(row) != len(table.columns):
        raise ParameterError(
            f"a row of {table.name} is a mapping of column names to values, or a tuple of its {len(table.columns)}"
            f" values in the order of its columns ({', '.join(column.name for column in table.columns)}), not {row!r}",
            table=table.name,
        )
    return row
