"""Tables that are created for given data: their CREATE TABLE statement, and their end if the data do not come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from secateur.client.loads.arrow_data import as_table
from secateur.client.session import Session
from secateur.errors import Error, NotSupportedError, ParameterError
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.coerce import package_of
from secateur.partitioning.types.column_type import SqlType, type_of_arrow
from secateur.partitioning.types.sql_text import quoted, text_literal
from secateur.protocol.catalog import DropUnusedTable


def create_table_sql(
    name: str,
    columns: Sequence[Column],
    *,
    primary_key: Sequence[str] = (),
    partition_by: str | None = None,
    backups: int | None = None,
    replicated: bool = False,
    change_feed: bool = False,
    or_replace: bool = False,
) -> str:
    """Write the statement that creates a table with given columns.

    Args:
        name: The name of the table.
        columns: The columns, in order. Those of the key become NOT NULL.
        primary_key: The columns of the primary key, without regard to case; none for a table without one, whose rows
            may be there several times.
        partition_by: What stands behind PARTITION BY, such as ``HASH (customer_id) PARTITIONS 16``; None for the
            default of CREATE TABLE.
        backups: How many backups each partition has; None for the default of CREATE TABLE.
        replicated: Whether each member has all rows, instead of partitions.
        change_feed: Whether the table keeps its last changes for those who follow them.
        or_replace: Whether it takes the place of a table of its name.

    Raises:
        ParameterError: The key names no column.
    """
    if isinstance(primary_key, str):
        raise ParameterError(f"primary_key={primary_key!r}: a list of the columns that identify a row")
    names = {column.name.casefold(): column.name for column in columns}
    unknown = [name for name in primary_key if name.casefold() not in names]
    if unknown:
        listed = ", ".join(column.name for column in columns)
        raise ParameterError(f"primary_key: there is no column {unknown[0]!r}; there is {listed}")
    if replicated and (partition_by is not None or backups is not None):
        raise ParameterError("replicated=True: each member has all rows, so there are no partitions and no backups")
    key = [names[name.casefold()] for name in primary_key]
    items = [_column_sql(column, is_key=column.name in key) for column in columns]
    if key:
        items.append(f"PRIMARY KEY ({', '.join(map(quoted, key))})")
    clauses = [
        "REPLICATED" if replicated else "",
        f"PARTITION BY {partition_by}" if partition_by is not None else "",
        f"BACKUPS {backups:d}" if backups is not None else "",
        "WITH (change_feed = true)" if change_feed else "",
    ]
    create = "CREATE OR REPLACE TABLE" if or_replace else "CREATE TABLE"
    return " ".join([f"{create} {quoted(name)} ({', '.join(items)})", *filter(None, clauses)])


def _column_sql(column: Column, *, is_key: bool) -> str:
    not_null = " NOT NULL" if is_key or not column.nullable else ""
    default = "" if column.default is None else f" DEFAULT {column.default}"
    comment = "" if column.comment is None else f" COMMENT {text_literal(column.comment)}"
    return f"{quoted(column.name)} {column.type}{not_null}{default}{comment}"


def columns_of(like: Any) -> list[Column]:
    """Return the columns of a schema, of something that has one, or of table-like data.

    Raises:
        DataError: It is no table.
        NotSupportedError: A column has a type that SQL does not have; the message names it.
    """
    return [Column(field.name, _type_of(field), field.nullable) for field in _schema_of(like)]


def _schema_of(like: Any) -> pa.Schema:
    if isinstance(like, pa.Schema):
        return like
    # Of a lazy frame of polars even to look for the attribute is work.
    is_ours = package_of(type(like)) in ("pyarrow", "secateur")
    found = getattr(like, "schema", None) if is_ours else None
    return found if isinstance(found, pa.Schema) else as_table(like).schema


def _type_of(field: pa.Field) -> SqlType:
    try:
        return type_of_arrow(field.type)
    except Error as error:
        raise NotSupportedError(f"column {field.name!r}: {error.message}") from error


def drop_unused(session: Session, table: TableDef) -> bool:
    """Drop a table that never had a row, of which no load waits at a member, and that has no index and no view.

    It has to be the table as it was created: another one of that name stays, too. Costs two round trips from the
    controller to all members.

    Returns:
        Whether the table is not there any more.

    Raises:
        AuthenticationError: The token of the session may not create tables either.
        Error: A member or the controller could not be reached; the table stays.
    """
    return session.ask(DropUnusedTable(table.name, table.table_id)).message.is_gone


@contextmanager
def dropped_on_failure(session: Session, table: TableDef) -> Iterator[None]:
    """Around the first load into a table that was created for it: if it fails, drop the table, unless it is used.

    A cluster that is out of reach is no reason to hide the first error; the table then stays, without rows.
    """
    try:
        yield
    except BaseException:
        before = session.work_for(None)  # also of a statement that was ended
        try:
            with suppress(Error):
                drop_unused(session, table)
        finally:
            session.work_for(before)
        raise
