"""The keys of a look-up, and the rows they find: equal is what is equal in SQL, whatever the two types are.

DuckDB compares, as it does where the table is asked: a time of day is no date, 0.1 as a double is not 0.1 as a FLOAT,
and -0.0 is 0.0. What is changed before is changed where that is exact, or else becomes NULL, which equals nothing:

- A text becomes the UUID that it writes.
- A whole or decimal number gets the column's type, which DuckDB might fail to bring into one DECIMAL with the other.
- A DECIMAL becomes the nearest DOUBLE where it is compared with one, and a FLOAT the DOUBLE of the same value: that is
  what they are as parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from secateur.connectors.spark.durations import durations
from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.engine.kernels.duckdb.result_types import arrow_type, relation_casts
from secateur.errors import DataError, ProgrammingError
from secateur.partitioning.types.empty_rows import empty_table
from secateur.partitioning.types.row_numbers import row_numbers
from secateur.protocol.statements import ResultColumn

_EXACT: Final = frozenset(
    {
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "DECIMAL"),
    }
)


@dataclass(frozen=True)
class LookupKeys:
    """Compares columns ``k0`` to ``kn`` of keys with columns ``c0`` to ``cn`` of a table.

    Attributes:
        values: The SQL text of the values of each column of keys as they are compared.
        casts: Of the columns of the table, as of ``relation_casts``.
    """

    values: tuple[str, ...]
    casts: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, given: Sequence[pa.Field], columns: Sequence[ResultColumn]) -> LookupKeys:
        """The comparison of columns of a DataFrame with columns of a table.

        Raises:
            DataError: SQL does not compare the two types.
        """
        pairs = list(zip(given, columns, strict=True))
        values = tuple(_value(f"k{number}", *pair) for number, pair in enumerate(pairs))
        casts = relation_casts({f"c{number}": column.type for number, column in enumerate(columns)})
        for number, (field, column) in enumerate(pairs):
            rows = {
                "given": empty_table(pa.schema([(f"k{number}", field.type)])),
                "found": empty_table(pa.schema([(f"c{number}", arrow_type(column.type))])),
            }
            own = [cast for cast in casts if cast[0] == f"c{number}"]
            try:
                # as the table is asked; "=" alone would take more
                default_kernel().run(
                    f"SELECT c{number} = ANY([{values[number]}]) FROM given, found", rows, casts=[("found", own)]
                )
            except ProgrammingError as error:
                raise DataError(
                    f"keys of type {field.type} cannot be looked up in column {column.name!r} of type {column.type}:"
                    " cast the column of the DataFrame",
                    column=column.name,
                ) from error
        return cls(values, casts)

    def of_rows(self, columns: Sequence[pa.ChunkedArray]) -> pa.Table:
        """The keys of some rows as they are compared, and the number of each row."""
        names = [f"k{number}" for number in range(len(columns))]
        given = pa.table([*columns, row_numbers(np.arange(len(columns[0])))], names=[*names, "row"])
        selected = ", ".join(f"{value} AS {name}" for name, value in zip(names, self.values, strict=True))
        return default_kernel().run(f"SELECT {selected}, row FROM given", {"given": given})

    def parameters(self, keys: pa.Table) -> list[list[Any]]:
        """The different values of each column of keys, without NULL."""
        distinct = [f"SELECT DISTINCT k{n} FROM keys WHERE k{n} IS NOT NULL" for n in range(len(self.values))]
        return [
            durations(default_kernel().run(sql, {"keys": keys})[0].combine_chunks()).to_pylist() for sql in distinct
        ]

    def pairs(self, keys: pa.Table, columns: Sequence[pa.ChunkedArray], *, keeps_all: bool) -> pa.Table:
        """The numbers of rows with equal keys, in order.

        Args:
            keys: As of :meth:`of_rows`.
            columns: The columns of rows of the table.
            keeps_all: Whether a row without an equal one is in a pair with NULL.
        """
        names = [f"c{number}" for number in range(len(columns))]
        found = pa.table([*columns, row_numbers(np.arange(len(columns[0])))], names=[*names, "row"])
        equal = " AND ".join(f"k{number} = c{number}" for number in range(len(columns)))
        return default_kernel().run(
            f"SELECT keys.row, found.row FROM keys {'LEFT' if keeps_all else 'INNER'} JOIN found ON {equal}"
            " ORDER BY keys.row, found.row",
            {"keys": keys, "found": found},
            names=["row", "found"],
            casts=[("found", self.casts)],
        )


def _value(name: str, given: pa.Field, column: ResultColumn) -> str:
    """The values of a column of keys as they are compared."""
    kind, of_table = given.type, column.type.partition("(")[0]
    if pa.types.is_null(kind):
        return f"CAST(NULL AS {column.type})"
    if pa.types.is_time(kind):
        return f"CAST({name} AS TIME)"
    if pa.types.is_float32(kind):
        return f"CAST({name} AS DOUBLE)"
    if pa.types.is_string(kind) and of_table == "UUID":
        return f"TRY_CAST({name} AS UUID)"
    if pa.types.is_decimal(kind) and of_table == "DOUBLE":
        return f"CAST(CAST({name} AS VARCHAR) AS DOUBLE)"
    if (pa.types.is_decimal(kind) or pa.types.is_integer(kind)) and of_table in _EXACT:
        converted = f"TRY_CAST({name} AS {column.type})"
        return f"CASE WHEN TRY({converted} = {name}) THEN {converted} END"
    return name
