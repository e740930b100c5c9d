"""The CHECK conditions of tables, evaluated by DuckDB over the rows that a member is about to store.

It is a database of its own, closed to files, settings and the statements of the process. Members evaluate alike: the
planner admits only conditions of one row whose value is the same at any time and place
(:mod:`secateur.planner.ddl.row_expression`).
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import CheckFailedError, DataError
from secateur.forks import forks_wait_for
from secateur.memory_database import ExchangeableRows, open_database
from secateur.partitioning.tables.table import CheckDef, TableDef
from secateur.partitioning.types.arrow_layout import without_struct_offsets
from secateur.partitioning.types.sql_text import quoted

_STORED: Final = "stored"
_FEW_MAX: Final = 2048
_VALUE_SHOWN_MAX: Final = 60
_ROW_SHOWN_MAX: Final = 300
_MEMORY_LIMIT: Final = "256MB"


class RowChecks:
    """The conditions of one table; made once for a table that has some.

    Args:
        table: The table.
    """

    def __init__(self, table: TableDef) -> None:
        self._table = table
        read = {name for check in table.checks for name in check.columns}
        self._columns = [column.name for column in table.columns if column.name in read]
        # Some types are others in Arrow, such as HUGEINT; where they are the same a cast does nothing.
        casts = (f"CAST({quoted(n)} AS {table.column(n).type}) AS {quoted(n)}" for n in self._columns)
        items = (f"({check.condition}) IS FALSE" for check in table.checks)
        self._sql = f"SELECT {', '.join(items)} FROM (SELECT {', '.join(casts)} FROM {_STORED})"
        self._few: _FewRows | None = None
        self._lock = forks_wait_for(threading.Lock())

    def check(self, rows: pa.Table) -> None:
        """Check rows that have all columns of the table.

        Raises:
            CheckFailedError: A condition is FALSE for one of them.
            DataError: A condition cannot be evaluated.

        Cost: half a millisecond, and that of the conditions.
        """
        if not rows.num_rows:
            return
        read = without_struct_offsets(rows.select(self._columns))
        try:
            failed = self._failed_few(read) if rows.num_rows <= _FEW_MAX else self._failed_many(read)
        except duckdb.Error as error:
            raise DataError(
                f"table {self._table.name}: a CHECK of {self._names} cannot be evaluated for the new rows: {error}",
                table=self._table.name,
            ) from error
        for check, column in zip(self._table.checks, failed.columns, strict=True):
            row = pc.index(column, True).as_py()
            if row >= 0:
                raise self._failed(check, rows.slice(row, 1))

    def _failed_few(self, rows: pa.Table) -> pa.Table:
        with self._lock:
            kept, self._few = self._few or _FewRows(self._sql, rows), None
            failed = kept.failed(rows)
            self._few = kept
        return failed

    def _failed_many(self, rows: pa.Table) -> pa.Table:
        """By a cursor of its own, so that no write of few rows waits for it."""
        with _database().cursor() as cursor:
            cursor.register(_STORED, rows)
            return cursor.sql(self._sql).to_arrow_table()

    @property
    def _names(self) -> str:
        return ", ".join(check.name for check in self._table.checks)

    def _failed(self, check: CheckDef, row: pa.Table) -> CheckFailedError:
        table = self._table
        shown = dict.fromkeys([*table.declared_key, *check.columns, *(column.name for column in table.visible_columns)])
        values = ", ".join(f"{name}: {_shown(row.column(name))}" for name in shown)
        if len(values) > _ROW_SHOWN_MAX:
            values = f"{values[:_ROW_SHOWN_MAX]}..."
        return CheckFailedError(
            f"table {table.name}: the row ({values}) fails CHECK {check.name}: {check.condition}; nothing was changed",
            table=table.name,
            constraint=check.name,
            condition=check.condition,
        )


class _FewRows:
    """A bound statement that is run over other rows each time: to bind it takes three times as long as to run it."""

    def __init__(self, sql: str, rows: pa.Table) -> None:
        self._stored = ExchangeableRows(rows.schema)  # apart from the cursor, which would be a cycle
        self._cursor = _database().cursor()
        self._cursor.register(_STORED, self._stored)
        self._relation = self._cursor.sql(sql)

    def failed(self, rows: pa.Table) -> pa.Table:
        self._stored.rows = rows
        try:
            return self._relation.to_arrow_table()
        finally:
            self._stored.rows = None


def _shown(column: pa.ChunkedArray) -> str:
    try:
        value: Any = column[0].as_py()
    except (OverflowError, ValueError):  # a moment outside of the years of Python
        value = column[0]
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _VALUE_SHOWN_MAX else f"{text[:_VALUE_SHOWN_MAX]}..."


@cache
def _database() -> duckdb.DuckDBPyConnection:
    # Without threads of its own: a forked process would wait for its parent's.
    database = open_database(threads="1", async_threads="0", memory_limit=_MEMORY_LIMIT, temp_directory="")
    for setting in ("TimeZone = 'UTC'", "enable_external_access = false", "lock_configuration = true"):
        database.execute(f"SET GLOBAL {setting}")
    return database
