"""``secateur.spark.lookup``: rows of a table for the keys of a DataFrame, fetched from the members that own them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from secateur.client.dbapi.connection import Connection
from secateur.client.execution.snapshot import prepared_query
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.environment import this_environment
from secateur.connectors.spark.failures import noted_errors
from secateur.connectors.spark.lookup_keys import LookupKeys
from secateur.connectors.spark.read_options import query_of, quoted
from secateur.connectors.spark.result_rows import spark_table
from secateur.connectors.spark.result_schema import spark_schema
from secateur.connectors.spark.schema import arrow_type
from secateur.errors import ProgrammingError, UnknownColumnError
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
