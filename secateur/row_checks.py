"""The CHECK conditions of tables, evaluated by DuckDB over the rows that a member is about to store.

It is a database of its own, closed to files, settings and the statements of the process. Members evaluate alike: the
planner admits only conditions of one row whose value is the same at any time and place
(:mod:`secateur.planner.ddl.checks`).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import CheckFailedError, DataError
from secateur.memory_database import open_database
from secateur.partitioning.tables.identifier import quoted
from secateur.partitioning.tables.table import CheckDef, TableDef
from secateur.partitioning.types.struct_offsets import without_struct_offsets

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
        self._sql = f"SELECT {', '.join(items)} FROM (SELECT {', '.join(casts)} FROM stored)"

    def check(self, rows: pa.Table) -> None:
        """Check rows that have all columns of the table.

        Raises:
            CheckFailedError: A condition is FALSE for one of them.
            DataError: A condition cannot be evaluated.

        Cost: about a millisecond, and that of the conditions.
        """
        if not rows.num_rows:
            return
        with _database().cursor() as cursor:
            cursor.register("stored", without_struct_offsets(rows.select(self._columns)))
            try:
                failed = cursor.sql(self._sql).to_arrow_table()
            except duckdb.Error as error:
                raise DataError(
                    f"table {self._table.name}: a CHECK of {self._names} cannot be evaluated for the new rows: {error}",
                    table=self._table.name,
                ) from error
        for check, column in zip(self._table.checks, failed.columns, strict=True):
            row = pc.index(column, True).as_py()
            if row >= 0:
                raise self._failed(check, rows.slice(row, 1))

    @property
    def _names(self) -> str:
        return ", ".join(check.name for check in self._table.checks)

    def _failed(self, check: CheckDef, row: pa.Table) -> CheckFailedError:
        table = self._table
        shown = dict.fromkeys([*table.primary_key, *check.columns, *(column.name for column in table.columns)])
        values = ", ".join(f"{name}: {_shown(row.column(name))}" for name in shown)
        if len(values) > _ROW_SHOWN_MAX:
            values = f"{values[:_ROW_SHOWN_MAX]}..."
        return CheckFailedError(
            f"table {table.name}: the row ({values}) fails CHECK {check.name}: {check.condition}; nothing was changed",
            table=table.name,
            constraint=check.name,
            condition=check.condition,
        )


def _shown(column: pa.ChunkedArray) -> str:
    try:
        value: Any = column[0].as_py()
    except (OverflowError, ValueError):  # a moment outside of the years of Python
        value = column[0]
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _VALUE_SHOWN_MAX else f"{text[:_VALUE_SHOWN_MAX]}..."


@cache
def _database() -> duckdb.DuckDBPyConnection:
    database = open_database(threads="1", memory_limit=_MEMORY_LIMIT, temp_directory="")
    for setting in ("TimeZone = 'UTC'", "enable_external_access = false", "lock_configuration = true"):
        database.execute(f"SET GLOBAL {setting}")
    return database
