"""``secateur.spark.lookup``: rows of a table for the keys of a DataFrame, fetched from the members that own them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from secateur.client.dbapi.connection import Connection
from secateur.client.execution.snapshot import prepared_query
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.environment import this_environment
from secateur.connectors.spark.failures import noted_errors
from secateur.connectors.spark.read_options import query_of, quoted
from secateur.connectors.spark.result_rows import spark_table
from secateur.connectors.spark.result_schema import spark_schema
from secateur.errors import DataError, ProgrammingError, UnknownColumnError
from secateur.protocol.statements import ResultColumn

__all__ = ["lookup"]

_JOINS: Final = {"inner": "inner", "left": "left outer"}
_TO_PLAIN: Final[dict[str, Callable[[Any], Any]]] = {"UUID": UUID, "UBIGINT": int, "HUGEINT": int}
"""Of the types that Spark holds as others: from a value as Spark has it to one that the column is compared with."""


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
        df: Rows with the keys. Keys may repeat; a key that is NULL in a column matches nothing.
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
        Error: As :func:`secateur.spark.read`. Errors of an action are Spark's, with the text of ours.
    """
    if how not in _JOINS:
        raise ProgrammingError(f"secateur.spark.lookup: how={how!r}; expected {' or '.join(map(repr, _JOINS))}")
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
    where = " AND ".join(f"{quoted(name)} = ANY(${number})" for number, name in enumerate(on, 1))
    task = _Lookup(
        endpoint,
        query_of(table, [column.name for column in fetched], where),
        tuple(keys),
        fetched,
        spark_schema(fetched),
        _JOINS[how],
    )
    schema = StructType([*df.schema.fields, *spark_schema(others).fields])
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
        keys: The names of the key columns in the DataFrame.
        columns: The columns of the query: the key columns, then others.
        schema: Their types in Spark.
        join: The kind of join, as Arrow calls it.
    """

    endpoint: Endpoint
    sql: str
    keys: tuple[str, ...]
    columns: tuple[ResultColumn, ...]
    schema: StructType
    join: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with noted_errors(), self.endpoint.session(timeout_s=None) as session, Connection(session) as connection:
            for batch in batches:
                if batch.num_rows:
                    yield from self._joined(connection, pa.Table.from_batches([batch]))

    def _joined(self, connection: Connection, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        wanted = to_arrow_schema(self.schema, timezone="UTC")
        count = len(self.keys)
        keys = [
            _cast(rows.column(name), column, kind)
            for name, column, kind in zip(self.keys, self.columns, wanted.types, strict=False)
        ]
        found = self._found(connection, keys)
        names = [f"k{number}" for number in range(count)]
        left = pa.table([*keys, pa.array(range(rows.num_rows), pa.int64())], names=[*names, "row"])
        right = pa.table([*found.columns[:count], pa.array(range(found.num_rows), pa.int64())], names=[*names, "found"])
        pairs = left.join(right, keys=names, join_type=self.join).select(["row", "found"])
        pairs = pairs.sort_by([("row", "ascending"), ("found", "ascending")])
        of_rows = rows.take(pairs.column("row"))
        of_found = found.take(pairs.column("found"))
        joined = pa.table(
            [*of_rows.columns, *of_found.columns[count:]], names=[*rows.column_names, *found.column_names[count:]]
        )
        yield from joined.combine_chunks().to_batches()

    def _found(self, connection: Connection, keys: Sequence[pa.ChunkedArray]) -> pa.Table:
        """The rows of the table for some keys, and perhaps others."""
        params = []
        for column, values in zip(self.columns, keys, strict=False):
            convert = _TO_PLAIN.get(column.type)
            plain = values.drop_null().unique().to_pylist()
            params.append(plain if convert is None else [convert(value) for value in plain])
        cursor = connection.execute(self.sql, params)
        return spark_table(cursor.fetch_arrow_table(), self.columns, self.schema)


def _cast(values: pa.ChunkedArray, column: ResultColumn, kind: pa.DataType) -> pa.ChunkedArray:
    """Keys of a DataFrame in the type that the column of the table has in Spark."""
    try:
        keys = values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"keys of type {values.type} cannot be looked up in column {column.name!r} of type {column.type} ({error}):"
            " cast the column of the DataFrame",
            column=column.name,
        ) from error
    return pc.utf8_lower(keys) if column.type == "UUID" else keys
