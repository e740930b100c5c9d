"""``secateur.spark.lookup``: rows of a table for the keys of a DataFrame, fetched from the members that own them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from secateur.client.dbapi.connection import Connection
from secateur.client.execution.snapshot import prepared_query
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.environment import this_environment
from secateur.connectors.spark.failures import noted_errors
from secateur.connectors.spark.read_options import query_of
from secateur.connectors.spark.read_plan import spark_schema
from secateur.connectors.spark.result_rows import durations, spark_table
from secateur.connectors.spark.schema import arrow_type
from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.engine.kernels.duckdb.result_types import arrow_type as delivered_as
from secateur.engine.kernels.duckdb.result_types import relation_casts
from secateur.errors import DataError, ProgrammingError, UnknownColumnError
from secateur.partitioning.types.arrow_layout import empty_table, row_numbers
from secateur.partitioning.types.sql_text import quoted
from secateur.protocol.statements import ResultColumn

_HOW: Final = ("inner", "left")


def lookup(
    df: DataFrame,
    table: str,
    on: Sequence[str],
    how: str = "inner",
    *,
    columns: Sequence[str] | None = None,
    address: str | None = None,
    token: str | None = None,
) -> DataFrame:
    """Join a DataFrame with a table by looking its keys up, instead of reading the table.

    Each task of the DataFrame asks for the keys of one Arrow batch at a time (``spark.sql.execution.arrow
    .maxRecordsPerBatch`` rows, 10,000 by default), and only the owners of their partitions. It pays where the keys are
    few beside the table; for many, :func:`secateur.spark.read` and a join of Spark read each row once.

    Each batch sees the table as it is when the batch is looked up.

    Args:
        df: Rows with the keys. Keys may repeat; a key that is NULL in a column matches nothing. They match the values
            that are equal in SQL, also where the two types differ.
        table: The table or view.
        on: Names of columns that both have: the primary key, the first of its columns, or others. Partitions are pruned
            by those that partition the table. With several columns, members look at the rows that have one of the
            values in each column, so more rows than match may be sent to a task if keys share many values.
        how: ``inner`` leaves out rows without a match; ``left`` keeps them, with NULLs.
        columns: The other columns of the table that are wanted; by default all.
        address: As in :func:`secateur.spark.read`.
        token: Likewise.

    Returns:
        The columns of ``df``, then those of the table that ``on`` does not name. A row for each match.

    Raises:
        ProgrammingError: ``how`` or ``on`` is none of these, or a column of the table has the name of one of ``df``.
        UnknownColumnError: A column of ``on`` is missing in ``df`` or in the table.
        UnknownTableError: There is no such table.
        DataError: SQL does not compare keys of these types.
        Error: As :func:`secateur.spark.read`. Errors of an action are Spark's, with the text of ours.
    """
    if how not in _HOW:
        raise ProgrammingError(f"secateur.spark.lookup: how={how!r}; expected {' or '.join(map(repr, _HOW))}")
    if not on or isinstance(on, str):
        raise ProgrammingError(f"secateur.spark.lookup: on={on!r}; expected a list of names of columns")
    keys = [_name_in(df, name) for name in on]
    endpoint = Endpoint.of(df.sparkSession, address, token)
    with endpoint.session() as session:
        found = prepared_query(session, query_of(table, None if columns is None else [*on, *columns], None), ())
        types = {column.name.casefold(): column for column in found.statement.columns}
    missing = [name for name in on if name.casefold() not in types]
    if missing:
        raise UnknownColumnError(f"{table} has no column {missing[0]!r}; it has {', '.join(types)}", table=table)
    folded = {name.casefold() for name in on}
    others = tuple(column for name, column in types.items() if name not in folded)
    taken = {name.casefold() for name in df.columns}
    for column in others:
        if column.name.casefold() in taken:
            raise ProgrammingError(
                f"both the DataFrame and {table} have a column {column.name!r}, which on= does not name: rename it, or"
                " choose the columns of the table with columns="
            )
    fetched = (*(types[name.casefold()] for name in on), *others)
    given = [pa.field(name, arrow_type(df.schema[name].dataType, column=name)) for name in keys]
    where = " AND ".join(f"{quoted(name)} = ANY(${number})" for number, name in enumerate(on, 1))
    wanted = spark_schema(others)
    task = _Lookup(
        endpoint,
        query_of(table, [column.name for column in fetched], where),
        tuple(keys),
        LookupKeys.of(given, fetched[: len(keys)]),
        others,
        wanted,
        keeps_all=how == "left",
    )
    schema = StructType([*df.schema.fields, *wanted.fields])
    with this_environment(df.sparkSession):
        return df.mapInArrow(task, schema)


def _name_in(df: DataFrame, name: str) -> str:
    """A column of a DataFrame, found without regard to case."""
    for column in df.columns:
        if column.casefold() == name.casefold():
            return str(column)
    raise UnknownColumnError(f"the DataFrame has no column {name!r}; it has {', '.join(df.columns)}", column=name)


@dataclass(frozen=True)
class _Lookup:
    """The work of a task.

    Attributes:
        endpoint: The cluster.
        sql: The query for a batch; parameter ``$n`` has the values of the n-th key column.
        names: The names of the key columns in the DataFrame.
        keys: How they are compared with the first columns of the query.
        columns: The other columns of the query.
        schema: Their types in Spark.
        keeps_all: Whether rows without a match are kept.
    """

    endpoint: Endpoint
    sql: str
    names: tuple[str, ...]
    keys: LookupKeys
    columns: tuple[ResultColumn, ...]
    schema: StructType
    keeps_all: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with noted_errors(), self.endpoint.session(timeout_s=None) as session, Connection(session) as connection:
            for batch in batches:
                if batch.num_rows:
                    yield from self._joined(connection, pa.Table.from_batches([batch]))

    def _joined(self, connection: Connection, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        keys = self.keys.of_rows([rows.column(name) for name in self.names])
        found = connection.execute(self.sql, self.keys.parameters(keys)).fetch_arrow_table()
        count = len(self.names)
        pairs = self.keys.pairs(keys, found.columns[:count], keeps_all=self.keeps_all)
        others = spark_table(found.select(range(count, found.num_columns)), self.columns, self.schema)
        joined = [*rows.take(pairs["row"]).columns, *others.take(pairs["found"]).columns]
        yield from pa.table(joined, names=[*rows.column_names, *others.column_names]).combine_chunks().to_batches()


_EXACT: Final = frozenset(
    {
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "DECIMAL"),
    }
)


@dataclass(frozen=True)
class LookupKeys:
    """Compares columns ``k0`` to ``kn`` of keys with columns ``c0`` to ``cn`` of a table.

    DuckDB compares, as it does where the table is asked: a time of day is no date, 0.1 as a double is not 0.1 as a
    FLOAT, and -0.0 is 0.0. What is changed before is changed where that is exact, or else becomes NULL, which equals
    nothing:

    - A text becomes the UUID that it writes.
    - A whole or decimal number gets the column's type, which DuckDB might fail to bring into one DECIMAL with the
      other.
    - A DECIMAL becomes the nearest DOUBLE where it is compared with one, and a FLOAT the DOUBLE of the same value: that
      is what they are as parameters.

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
                "found": empty_table(pa.schema([(f"c{number}", delivered_as(column.type))])),
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
