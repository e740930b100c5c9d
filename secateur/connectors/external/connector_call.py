"""Calls a connector's methods, checks their results, and has errors name the connector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from secateur.connectors.external.connector import Connector, ConnectorContext, ConnectorPartition
from secateur.engine.failure import users_traceback
from secateur.errors import DataError, Error, JobFailedError, ProgrammingError
from secateur.partitioning.pruning.row_predicate import RowPredicate
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.column_type import type_of_arrow


@contextmanager
def naming_connector(connector: Connector, table: str, doing: str, member: str) -> Iterator[None]:
    """Say whose error it is: one of user code becomes a JobFailedError with the frames of that code.

    Raises:
        Error: One of our tree, with the connector in front.
        JobFailedError: Any other.
    """
    where = f"connector {connector.title} of table {table}"
    try:
        yield
    except Error as error:
        if error.details.get("connector") == connector.title:
            raise
        details = {**error.details, "connector": connector.title, "table": table, "member": member}
        raise type(error)(f"{where}: {error.message}", **details) from error
    except Exception as error:
        raise JobFailedError(
            f"{where} failed in {doing} on member {member}: {type(error).__name__}: {error}",
            connector=connector.title,
            table=table,
            member=member,
            traceback=users_traceback(error),
        ) from error


def settled_connector(connector: Connector, table: str, context: ConnectorContext) -> Connector:
    """The connector that a table is to keep.

    Raises:
        Error: See :func:`naming_connector`.
        ProgrammingError: It is none.
    """
    with naming_connector(connector, table, "settle()", context.member):
        settled = connector.settle(context)
        if not isinstance(settled, Connector):
            raise ProgrammingError(f"settle() has to return a connector, not {settled!r}")
        return settled


def columns_of(connector: Connector, table: str, context: ConnectorContext) -> tuple[Column, ...]:
    """The columns of the table that a connector is to be, each of which may be NULL.

    Raises:
        Error: See :func:`naming_connector`; NotSupportedError for a type that has no column type.
        ProgrammingError: It has no column, or two of one name.
    """
    with naming_connector(connector, table, "schema()", context.member):
        schema = connector.schema(context)
        if not isinstance(schema, pa.Schema) or not len(schema):
            raise ProgrammingError(f"schema() has to return a pyarrow.Schema with a column, not {schema!r}")
        folded = [name.casefold() for name in schema.names]
        twice = [name for name in schema.names if folded.count(name.casefold()) > 1]
        if twice:
            raise ProgrammingError(
                f"schema() has the columns {' and '.join(twice)}: names differ in more than upper and lower case"
            )
        return tuple(Column(field.name, type_of_arrow(field.type)) for field in schema)


def partitions_of(connector: Connector, table: TableDef, context: ConnectorContext) -> list[ConnectorPartition]:
    """All partitions of a table now, with the values that they declare in their canonical form.

    Raises:
        Error: See :func:`naming_connector`.
        ProgrammingError: A partition is none, or declares values of a column that the table does not have.
        DataError: It declares a value that its column cannot hold.
    """
    types = {column.name: column.type for column in table.columns}
    with naming_connector(connector, table.name, "partitions()", context.member):
        found = []
        for partition in connector.partitions(table.arrow_schema, context):
            if not isinstance(partition, ConnectorPartition):
                raise ProgrammingError(f"partitions() has to return ConnectorPartitions, not {partition!r}")
            unknown = [name for name in partition.values if name not in types]
            if unknown:
                raise ProgrammingError(
                    f"partition {partition.key!r} declares values of {unknown[0]!r}, which is no column of the table;"
                    f" it has {', '.join(types)}"
                )
            values = {name: said.canonical(types[name], name) for name, said in partition.values.items()}
            found.append(ConnectorPartition(partition.key, values))
        keys = {partition.key for partition in found}
        if len(keys) < len(found):
            raise DataError("partitions() returned two partitions with one key: each needs a key of its own")
        return found


def needed_partitions(
    partitions: Sequence[ConnectorPartition], predicate: RowPredicate
) -> tuple[ConnectorPartition, ...]:
    """The partitions that can hold a row that is needed."""
    return tuple(partition for partition in partitions if predicate.keeps(partition.values))
