"""Writes of whole rows by primary key: what INSERT OR REPLACE does, without its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from secateur.client.key_value.row_keys import RowKeys
from secateur.client.key_value.tables import KeyTable
from secateur.client.loads.load import LoadMode, load_rows
from secateur.errors import ParameterError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.coerce import coerce
from secateur.wire import SHORT_ROWS_MAX, ShortTable, is_short

__all__ = ["put_rows"]


def put_rows(table: KeyTable, rows: Sequence[Any]) -> None:
    """Write rows: each is added, or replaces the one with its key; all become visible at once.

    Raises:
        Error: As :meth:`~secateur.client.loads.table_handle.TableHandle.put_many`.
    """

    def read(keys: RowKeys) -> tuple[TableDef, pa.Table | ShortTable]:
        return keys.definition, _given(keys, rows)

    session = table.session
    control = session.begin_statement()
    try:
        try:
            load_rows(session, *table.read(read), LoadMode.UPSERT, same_table=True)
        except TopologyChangedError:
            # Rows that were made for a dropped table are not valid for the table that has its name now.
            if not table.refresh():
                raise
            load_rows(session, *table.read(read), LoadMode.UPSERT, same_table=True)
    finally:
        session.end_statement(control)


def _given(keys: RowKeys, rows: Sequence[Any]) -> pa.Table | ShortTable:
    """The rows as they are sent: a few as plain values, if those represent them completely."""
    table, types = keys.definition, keys.types
    ordered = [_in_order(table, row) for row in rows]
    columns = [
        [coerce(row[position], column.type, column=column.name) for row in ordered]
        for position, column in enumerate(table.columns)
    ]
    given = ShortTable(columns, len(rows))
    has_all = all(column.nullable or None not in values for column, values in zip(table.columns, columns, strict=True))
    if has_all and 0 < len(rows) <= SHORT_ROWS_MAX and keys.takes_values and is_short(columns, types):
        return given
    return given.to_table([(column.name, column.type) for column in table.columns])


def _in_order(table: TableDef, row: Any) -> Sequence[Any]:
    """The values of a row in the order of the columns; nullable columns that are not named are NULL."""
    if type(row) is not tuple and isinstance(row, Mapping):
        given = {table.column(name).name: value for name, value in row.items()}
        if len(given) < len(row):
            raise ParameterError(f"a row for {table.name} names a column twice: {', '.join(row)}", table=table.name)
        return [given.get(column.name) for column in table.columns]
    if not isinstance(row, (tuple, list)) or len(row) != len(table.columns):
        raise ParameterError(
            f"a row of {table.name} is a mapping of column names to values, or a tuple of its {len(table.columns)}"
            f" values in the order of its columns ({', '.join(column.name for column in table.columns)}), not {row!r}",
            table=table.name,
        )
    return row
