"""``secateur.spark.read``: a table or a query as a DataFrame, pruned before Spark sees a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from secateur.client.dbapi.parameters import Parameters, plain_values
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.environment import runs_beside_us
from secateur.connectors.spark.failures import error_behind
from secateur.connectors.spark.load import register
from secateur.connectors.spark.read_options import LEASE_S, option_of_params, query_of, read_options
from secateur.connectors.spark.read_plan import TASK_BYTES, query_schema
from secateur.connectors.spark.source import SecateurDataSource
from secateur.errors import ProgrammingError


def read(
    spark: SparkSession,
    table: str | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    params: Parameters = (),
    query: str | None = None,
    *,
    address: str | None = None,
    token: str | None = None,
    task_bytes: int = TASK_BYTES,
    snapshot_s: float = LEASE_S,
) -> DataFrame:
    """A table, or the rows of a query, as a DataFrame.

    The planner of the cluster prunes: there are tasks only for partitions that can hold a row, and members that own
    none of them receive nothing. Each task reads from one member, as Arrow. Filters and columns that Spark applies
    afterwards do not prune, so say them here.

    All tasks, and all actions on the DataFrame, read the rows of the moment of its first action: members keep these
    rows until nobody has read them for ``snapshot_s``. An action after that, or after the loss of a member, works while
    the table is unchanged, and is otherwise refused; make a new DataFrame then, which reads the rows of its own time.
    This holds for a table and for a query of one table that neither groups, sorts nor limits rows. Any other query, and
    one of a view, runs in one task, once for each action, as it would run for a client; each of these runs has a time
    of its own.

    Args:
        spark: The session.
        table: The name of a table, view or system table.
        columns: Names of its columns; by default all.
        where: A condition in secateur's SQL, with ``?`` or ``$name`` for parameters.
        params: The parameters of ``where`` or of ``query``.
        query: A SELECT in secateur's SQL, in place of ``table``, ``columns`` and ``where``.
        address: ``cluster.address``; the default is the Spark setting ``spark.secateur.address`` or the variable
            ``SECATEUR_ADDRESS``.
        token: The secret of the cluster, if it has one; the default is ``spark.secateur.token`` or ``SECATEUR_TOKEN``.
        task_bytes: About as many bytes does a task read: a large partition is split, small ones are joined.
        snapshot_s: Seconds for which members keep rows that nobody reads; at most 3600.

    Returns:
        A DataFrame. Columns of a table that are NOT NULL are so in Spark, all others may be NULL. Types are those of
        :mod:`~secateur.connectors.spark.read_plan`.

    Raises:
        ProgrammingError: Neither or both of ``table`` and ``query`` are given, or the query is none.
        UnknownTableError: There is no such table.
        UnknownColumnError: There is no such column.
        ParameterError: The parameters are not those of the statement.
        NotSupportedError: Spark has no type for a column.
        UnreachableError: The cluster does not answer.
        InterfaceError: The address is invalid or missing.

    Errors of an action are Spark's, with the text of ours.
    """
    if (table is None) is (query is None):
        raise ProgrammingError("secateur.spark.read needs a table or a query, and not both")
    if query is not None and (columns is not None or where is not None):
        raise ProgrammingError("secateur.spark.read: a query names its columns and conditions itself")
    endpoint = Endpoint.of(spark, address, token)
    options: dict[str, Any] = {**endpoint.options(), "query": query or query_of(str(table), columns, where)}
    plain = plain_values(params)
    if plain:
        options["params"] = option_of_params(plain)
    options["taskBytes"] = str(task_bytes)
    options["snapshotSeconds"] = str(max(1, round(snapshot_s)))
    reader = spark.read.format(SecateurDataSource.name()).options(**options)
    if runs_beside_us(spark):
        # Asked here, it costs a round trip. Spark would start a process for it, which imports secateur first.
        given, what = read_options(options)
        reader = reader.schema(query_schema(given, replace(what, table=table)))
    register(spark)
    try:
        return reader.load()
    except Exception as failure:
        raise error_behind(failure, table=table or "the query", is_read=True) from failure
